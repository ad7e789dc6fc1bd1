"""A state folder of its own for each test: these tests break the stack on purpose."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.embedded.support import make_folder, stop_everything


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = make_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def state(scratch: Path) -> Iterator[Path]:
    """Give the path of a state folder that does not exist yet; stop in the end what is left."""
    state = scratch / ".recallwatch"
    yield state
    stop_everything(state)
