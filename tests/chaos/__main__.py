"""`python -m tests.chaos`: see --help."""

import sys

from tests.chaos.command import main

sys.exit(main())
