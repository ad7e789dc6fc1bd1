import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.embedded.account import Account

STRANGER = Account(uid=54321, gid=54321, stands_in=True)
"""An account that owns nothing: the bits for others decide."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder in a place whose folders above are open to all."""
    folder = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    yield folder
    shutil.rmtree(folder)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_above_are_opened_for_search_only_and_only_where_closed(folder: Path) -> None:
    closed, listed, data = folder / "a", folder / "a" / "b", folder / "a" / "b" / "data"
    data.mkdir(parents=True)
    folder.chmod(0o700)
    closed.chmod(0o750)
    listed.chmod(0o755)
    data.chmod(0o700)
    STRANGER.let_reach(data)
    assert [mode(path) for path in (folder, closed, listed, data)] == [0o701, 0o751, 0o755, 0o700]


def test_the_bit_that_decides_is_the_one_of_the_accounts_group(folder: Path) -> None:
    folder.chmod(0o701)
    member = Account(uid=54321, gid=folder.stat().st_gid, stands_in=True)
    member.let_reach(folder / "data")
    assert mode(folder) == 0o711


def test_an_ordinary_user_changes_no_permission(folder: Path) -> None:
    folder.chmod(0o700)
    Account.own().let_reach(folder / "data")
    Account.own().let_read(folder)
    assert mode(folder) == 0o700


def test_an_installation_made_under_a_closed_umask_is_opened_for_reading(folder: Path) -> None:
    installation = folder / "installation"
    installation.mkdir(mode=0o700)
    program, data = installation / "program", installation / "data.txt"
    program.touch(mode=0o700)
    data.touch(mode=0o600)
    (installation / "link").symlink_to("/nowhere")
    STRANGER.let_read(installation)
    assert [mode(path) for path in (installation, program, data)] == [0o755, 0o755, 0o644]


def test_an_installation_that_is_open_is_left_as_it_is(folder: Path) -> None:
    folder.chmod(0o755)
    private = folder / "notes"
    private.touch(mode=0o600)
    STRANGER.let_read(folder)
    assert mode(private) == 0o600


def test_an_ordinary_user_switches_to_nobody_else() -> None:
    own = Account.own()
    assert (own.uid, own.switch_uid, own.switch_gid, own.switch_groups) == (
        os.geteuid(),
        None,
        None,
        None,
    )


def test_an_account_that_stands_in_keeps_no_group_of_root() -> None:
    assert (STRANGER.switch_uid, STRANGER.switch_gid, STRANGER.switch_groups) == (54321, 54321, [])
