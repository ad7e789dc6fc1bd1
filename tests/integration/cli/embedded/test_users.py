"""Root and ordinary users: who runs the servers, and who may use whose."""

import os
import pwd
from pathlib import Path

import psutil
import psycopg
import pytest

from cli.embedded.account import UNPRIVILEGED, Account
from cli.embedded.layout import Layout
from cli.embedded.postgres import installation
from cli.embedded.sockets import private_folder
from cli.embedded.stack import open_stack
from cli.embedded.status import inspect
from cli.embedded.valkey import binary
from pipeline.errors import UsageError
from tests.integration.cli.embedded.support import Command, is_alive, needs_root, pids_of

NOBODY = "nobody"


@pytest.fixture
def home(scratch: Path) -> Path:
    """Give a folder of the user nobody, who may reach it and the binaries."""
    user = pwd.getpwnam(NOBODY)
    home = scratch / "home"
    home.mkdir()
    os.chown(home, user.pw_uid, user.pw_gid)
    account = Account(user.pw_uid, user.pw_gid, stands_in=True)
    account.let_reach(home)
    for folder in (binary().parent, *installation()):
        account.let_read(folder)
    return home


@needs_root
def test_root_runs_the_servers_as_an_existing_unprivileged_account(state: Path) -> None:
    with open_stack(state, postgres=True, valkey=True):
        seen = inspect(state)
        assert seen.postgres is not None
        assert seen.valkey is not None
        for pid in (seen.postgres.pid, seen.valkey.pid):
            assert psutil.Process(pid).username() in UNPRIVILEGED
            assert set(psutil.Process(pid).uids()) != {0}


@needs_root
def test_root_opens_the_folders_above_the_data_for_search_only(scratch: Path, fresh: Path) -> None:
    assert scratch.stat().st_mode & 0o777 == 0o700
    with open_stack(fresh, postgres=True, valkey=False):
        pass
    assert scratch.stat().st_mode & 0o777 == 0o701
    assert fresh.stat().st_mode & 0o777 == 0o711
    assert (fresh / "postgres").stat().st_mode & 0o777 == 0o700
    assert (fresh / "log").stat().st_mode & 0o777 == 0o700


@needs_root
def test_root_takes_back_data_that_a_copy_made_its_own(state: Path) -> None:
    with open_stack(state, postgres=True, valkey=False):
        pass
    for path in (state / "postgres", *(state / "postgres").rglob("*")):
        os.chown(path, 0, 0, follow_symlinks=False)
    with open_stack(state, postgres=True, valkey=False) as stack:
        psycopg.connect(str(stack.servers.database_url)).close()
        assert (state / "postgres").stat().st_uid != 0


@needs_root
def test_root_keeps_to_the_account_that_owns_the_data(fresh: Path) -> None:
    user = pwd.getpwnam(NOBODY)
    fresh.mkdir()
    (fresh / "valkey").mkdir()
    os.chown(fresh / "valkey", user.pw_uid, user.pw_gid)
    with open_stack(fresh, postgres=False, valkey=True):
        seen = inspect(fresh)
        assert seen.valkey is not None
        assert psutil.Process(seen.valkey.pid).uids().real == user.pw_uid


@needs_root
def test_without_an_account_to_stand_in_root_gets_one_clear_error(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.embedded.account.UNPRIVILEGED", ())
    with (
        pytest.raises(UsageError, match=r"does not run as root.*ordinary user, or set DATABASE"),
        open_stack(fresh, postgres=True, valkey=False),
    ):
        pass


@needs_root
def test_an_ordinary_user_runs_the_servers_as_oneself(home: Path) -> None:
    command = Command(home / ".recallwatch", user=NOBODY)
    assert "error" not in command.said
    for server in ("postgres", "valkey"):
        assert psutil.Process(command.said[server]).username() == NOBODY
    # Nothing was opened for others: nobody but the user runs anything.
    assert (home / ".recallwatch").stat().st_mode & 0o777 == 0o700
    pids = [command.said["postgres"], command.said["valkey"]]
    assert command.leave() == 0
    assert not any(is_alive(pid) for pid in pids)


@needs_root
def test_the_stack_of_another_user_is_refused_in_both_directions(home: Path, fresh: Path) -> None:
    theirs = home / ".recallwatch"
    assert Command(theirs, "v", user=NOBODY).leave() == 0
    with (
        pytest.raises(UsageError, match="belong to user nobody, and this is root"),
        open_stack(theirs, postgres=False, valkey=True),
    ):
        pass
    with open_stack(fresh, postgres=False, valkey=True):
        refused = Command(fresh, "v", user=NOBODY)
        assert str(fresh) in refused.said["error"]
        assert refused.leave() == 2


@needs_root
def test_a_folder_without_write_permission_is_one_clear_error(scratch: Path) -> None:
    scratch.chmod(0o755)
    refused = Command(scratch / "new", user=NOBODY)
    assert "new: Permission denied" in refused.said["error"]
    assert refused.leave() == 2


@needs_root
def test_a_socket_folder_that_belongs_to_another_user_is_refused(fresh: Path) -> None:
    folder = private_folder(Layout.of(fresh).mark)
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    try:
        with (
            pytest.raises(UsageError, match=r"it belongs to user 12345: remove it, or set TMPDIR"),
            open_stack(fresh, postgres=True, valkey=True),
        ):
            pass
    finally:
        folder.rmdir()
    assert not pids_of(fresh)


def test_a_symbolic_link_in_the_place_of_the_socket_folder_is_refused(
    fresh: Path, scratch: Path
) -> None:
    folder = private_folder(Layout.of(fresh).mark)
    folder.symlink_to(scratch)
    try:
        with (
            pytest.raises(UsageError, match="it is not a folder"),
            open_stack(fresh, postgres=False, valkey=True),
        ):
            pass
    finally:
        folder.unlink()
