"""The private folder of the servers' sockets: short, wherever the project lies."""

import os
import re
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from cli.embedded.account import Account
from cli.embedded.layout import ROOT, user_name
from pipeline.errors import UsageError

MAX_SOCKET_BYTES = 103
"""Longest socket path that Linux (107) and macOS (103) both take."""

POSTGRES_SOCKET = ".s.PGSQL.5432"
VALKEY_SOCKET = "redis.sock"

_PRIVATE = 0o700
_PLAIN = re.compile(r"[\w./+-]+", re.ASCII)
_FALLBACK = Path("/tmp")  # noqa: S108 - the folder made in it is private and its owner checked


def private_folder(mark: str) -> Path:
    """Return where the sockets of the stack `mark` belong.

    That is in the temporary folder, or in /tmp where that is too long or would need quoting.
    """
    base = Path(tempfile.gettempdir()).resolve()
    longest = base / mark / POSTGRES_SOCKET
    if len(os.fsencode(longest)) > MAX_SOCKET_BYTES or not _PLAIN.fullmatch(str(base)):
        base = _FALLBACK.resolve()
    return base / mark


def make_private_folder(mark: str, account: Account) -> Path:
    """Make the folder for the sockets of the stack `mark` where it is missing; return it.

    Only `account` may enter it. Raises `UsageError` where something else stands in its place.
    """
    folder = private_folder(mark)
    try:
        folder.mkdir(mode=_PRIVATE)
    except FileExistsError:
        _refuse_foreign(folder, account)
    if account.stands_in:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    account.let_reach(folder)
    return folder


def remove_sockets(folder: Path, names: Iterable[str], account: Account) -> None:
    """Remove sockets that no process holds any more, from a folder of the account's own."""
    if _is_own(folder, account):
        for name in names:
            (folder / name).unlink(missing_ok=True)


def remove_if_empty(folder: Path, account: Account) -> None:
    """Remove the folder if it is the account's own and holds no socket of the other server."""
    if _is_own(folder, account):
        with suppress(OSError):
            folder.rmdir()


def folder_in_use(process: psutil.Process, mark: str) -> Path | None:
    """Return the socket folder of a server that runs, from its command line.

    It may differ from `private_folder`'s: the temporary folder depends on the environment. None
    if the process ended meanwhile.
    """
    with suppress(psutil.Error):
        for argument in process.cmdline():
            found = re.search(rf"(?:^|=)(/.*?/{mark})(?:/|$)", argument)
            if found:
                return Path(found[1])
    return None


def _is_own(folder: Path, account: Account) -> bool:
    """Return whether the folder is there, no symbolic link, and the account's."""
    return folder.is_dir() and folder.lstat().st_uid == account.uid and not folder.is_symlink()


def _refuse_foreign(folder: Path, account: Account) -> None:
    status = folder.lstat()
    owners = {account.uid, ROOT} if account.stands_in else {account.uid}
    if not stat.S_ISDIR(status.st_mode):
        fault = "is not a folder"
    elif status.st_uid not in owners:
        fault = f"belongs to user {user_name(status.st_uid)}"
    elif stat.S_IMODE(status.st_mode) != _PRIVATE:
        fault = f"has the permissions {stat.S_IMODE(status.st_mode):o} instead of {_PRIVATE:o}"
    else:
        return
    raise UsageError(
        f"{folder}: the servers' sockets belong here, but it {fault}: remove it, or set TMPDIR"
    )
