"""A state folder of its own for each test: these tests break the stack on purpose."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cli.embedded import workers
from cli.embedded.processes import KILL, end
from cli.embedded.stack import all_servers
from cli.embedded.layout import Layout


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


def stop_everything(state: Path) -> None:
    layout = Layout.of(state)
    if state.exists():
        workers.stop_all(layout)
    for server in all_servers(layout):
        end(server.processes(), KILL)
        shutil.rmtree(server.sockets or "", ignore_errors=True)


def pids_of(state: Path) -> set[int]:
    """Return the processes of the stack's servers, their children included."""
    return {
        process.pid for server in all_servers(Layout.of(state)) for process in server.processes()
    }


def is_root() -> bool:
    return os.geteuid() == 0


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
