import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.embedded.account import Account
from cli.embedded.layout import user_name
from cli.embedded.sockets import POSTGRES_SOCKET, make_private_folder, private_folder
from pipeline.errors import UsageError

MARK = "recallwatch-0-0123456789"
TMP = Path("/tmp").resolve()  # noqa: S108 - the fallback itself


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the temporary folder a short one of the test's own."""
    folder = Path(tempfile.mkdtemp(dir=TMP))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_the_folder_is_made_in_the_temporary_folder_and_closed_to_others(base: Path) -> None:
    folder = make_private_folder(MARK, Account.own())
    assert folder == base / MARK
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make_private_folder(MARK, Account.own()) == folder


@pytest.mark.parametrize("name", ["x" * 60, "with space", "comma,", "per%cent", "ümlaut"])
def test_a_temporary_folder_too_long_or_in_need_of_quoting_is_passed_by(
    base: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    odd = base / name
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    folder = private_folder(MARK)
    assert folder == TMP / MARK
    assert len(os.fsencode(folder / POSTGRES_SOCKET)) <= 103


def test_the_limit_is_that_of_the_socket_with_the_longest_name(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 103 - len(f"{base}//{MARK}/{POSTGRES_SOCKET}")
    for length, expected in [(room, base / ("x" * room)), (room + 1, TMP)]:
        monkeypatch.setattr(tempfile, "tempdir", str(base / ("x" * length)))
        assert private_folder(MARK) == expected / MARK


def test_a_symbolic_link_is_refused(base: Path) -> None:
    (base / MARK).symlink_to(base)
    with pytest.raises(UsageError, match="is not a folder: remove it, or set TMPDIR"):
        make_private_folder(MARK, Account.own())


def test_a_file_is_refused(base: Path) -> None:
    (base / MARK).touch()
    with pytest.raises(UsageError, match="is not a folder"):
        make_private_folder(MARK, Account.own())


def test_a_folder_that_others_may_enter_is_refused(base: Path) -> None:
    (base / MARK).mkdir()
    (base / MARK).chmod(0o755)
    with pytest.raises(UsageError, match="has the permissions 755 instead of 700"):
        make_private_folder(MARK, Account.own())


def test_a_folder_of_another_user_is_refused(base: Path) -> None:
    (base / MARK).mkdir(mode=0o700)
    stranger = Account(uid=os.geteuid() + 1, gid=os.getegid(), stands_in=False)
    with pytest.raises(UsageError, match=f"belongs to user {user_name(os.geteuid())}"):
        make_private_folder(MARK, stranger)
