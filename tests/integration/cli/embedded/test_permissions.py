"""What the embedded stack leaves on disk, and who else may look at it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.embedded.stack import open_stack

OTHERS = stat.S_IRWXG | stat.S_IRWXO
KEPT_OPEN = {".gitignore"}


def open_to_others(folder: Path) -> list[Path]:
    """Return the files below a folder that another user who knows their names could use."""
    found = []
    for place, folders, files in os.walk(folder):
        if Path(place) != folder and not Path(place).stat().st_mode & OTHERS:
            folders.clear()
            continue
        paths = [Path(place, name) for name in files]
        found += [path for path in paths if path.lstat().st_mode & OTHERS]
    return found


@pytest.fixture
def loose_umask() -> Iterator[None]:
    """Start from the loosest umask that there is."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("loose_umask")
def test_what_the_stack_keeps_is_closed_to_others(fresh: Path) -> None:
    with open_stack(fresh, postgres=True, valkey=True) as stack:
        assert {path.name for path in open_to_others(fresh)} <= KEPT_OPEN
        sockets = Path(str(stack.servers.database_url).partition("host=")[2])
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert stat.S_IMODE(fresh.stat().st_mode) in {0o700, 0o711}  # root's servers have to pass
        assert (fresh / "users.json").is_file()
