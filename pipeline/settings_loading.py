"""Load the settings: defaults, over them recallwatch.toml, over that the environment.

The only reader of either. What is wrong is said in one line a fault: which file or environment
variable, which key, what was given, what is allowed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.v1.utils import deep_update

from pipeline.errors import SettingsError
from pipeline.settings import ENVIRONMENT_ONLY, Settings
from pipeline.settings_faults import explain, unknown_key
from pipeline.settings_sources import Environment, find_file, flatten, read_file

DEFAULT = "default"


@dataclass(frozen=True)
class LoadedSettings:
    """The effective settings, and where each came from.

    `origins`: dotted key -> "default", the file's name, or "environment DATABASE_URL".
    `file`: the settings file, if there is one. `root`: its folder, else the current one;
    `settings.state_dir` is already resolved against it.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    root: Path
