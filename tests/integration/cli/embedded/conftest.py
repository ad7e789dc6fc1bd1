"""A state folder of its own for each test: these tests break the stack on purpose."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.embedded.support import stop_everything


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Give a folder in the temporary folder, closed to others as `mktemp -d` makes it.

    Not pytest's own: other sessions of it take away the search permission that root's
    PostgreSQL needs there.
    """
    folder = Path(tempfile.mkdtemp(prefix="stack-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def state(scratch: Path) -> Iterator[Path]:
    """Give the path of a state folder that does not exist yet; stop in the end what is left."""
    state = scratch / ".recallwatch"
    yield state
    stop_everything(state)
