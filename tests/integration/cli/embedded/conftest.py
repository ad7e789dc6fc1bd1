"""A state folder of its own for each test: these tests break the stack on purpose."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.embedded.stack import open_stack
from tests.integration.cli.embedded.support import make_folder, stop_everything


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = make_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def fresh(scratch: Path) -> Iterator[Path]:
    """Give the path of a state folder that does not exist yet; stop in the end what is left."""
    state = scratch / ".recallwatch"
    yield state
    stop_everything(state)


@pytest.fixture(scope="session")
def empty_database() -> Iterator[Path]:
    """Give a data folder of PostgreSQL as a first start leaves it: making one takes a second."""
    folder = make_folder()
    with open_stack(folder, postgres=True, valkey=False):
        pass
    yield folder / "postgres"
    shutil.rmtree(folder)


@pytest.fixture
def state(fresh: Path, empty_database: Path) -> Path:
    """Give a state folder after its first start."""
    fresh.mkdir(mode=0o700)
    subprocess.run(["/bin/cp", "-Rp", empty_database, fresh / "postgres"], check=True)
    return fresh
