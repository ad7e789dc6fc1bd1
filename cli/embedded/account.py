"""The account that the servers run under: PostgreSQL refuses to run as root."""

import os
import pwd
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import structlog

from cli.embedded.layout import ROOT

UNPRIVILEGED = ("postgres", "nobody")
"""Existing accounts that stand in for root, in order of preference."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Account:
    """Who the servers run as: this process's own user, or a stand-in when that is root."""

    uid: int
    gid: int
    stands_in: bool

    @classmethod
    def own(cls) -> Self:
        """Return the user of this process."""
        return cls(os.geteuid(), os.getegid(), stands_in=False)

    @classmethod
    def for_servers(cls, data_folders: Iterable[Path]) -> Self:
        """Return who has to run the servers whose data are, or will be, in `data_folders`."""
        if os.geteuid() != ROOT:
            return cls.own()
        for folder in data_folders:
            if folder.exists() and folder.stat().st_uid != ROOT:
                return cls(folder.stat().st_uid, folder.stat().st_gid, stands_in=True)
        return cls._unprivileged() or cls.own()

    @classmethod
    def _unprivileged(cls) -> Self | None:
        for name in UNPRIVILEGED:
            with suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(entry.pw_uid, entry.pw_gid, stands_in=True)
        return None

    @property
    def switch_uid(self) -> int | None:
        """The user to switch to when a process is started; None: no switch."""
        return self.uid if self.stands_in else None

    @property
    def switch_gid(self) -> int | None:
        """The group to switch to when a process is started; None: no switch."""
        return self.gid if self.stands_in else None

    @property
    def switch_groups(self) -> list[int] | None:
        """The further groups to switch to when a process is started; None: no switch."""
        return [] if self.stands_in else None

    def give(self, folder: Path) -> None:
        """Make the account the owner of `folder` and of all that is in it."""
        if not self.stands_in or folder.lstat().st_uid == self.uid:
            return
        for root, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(Path(root, name), self.uid, self.gid, follow_symlinks=False)
        # Last, so that an interrupted change is done again.
        os.chown(folder, self.uid, self.gid, follow_symlinks=False)

    def let_reach(self, path: Path) -> None:
        """Let the account search the folders above `path`, where it may not; no more than that."""
        for folder in reversed(path.parents if self.stands_in else []):
            if not self._may_search(folder):
                status = folder.stat()
                folder.chmod(stat.S_IMODE(status.st_mode) | self._search_bit(status))
                log.info("search_permission_added", folder=str(folder), account=self.uid)

    def let_read(self, installation: Path) -> None:
        """Let the account read and run what is in `installation`, where it may not.

        One made under a umask of 077 is closed to others as a whole: the folder's own permission
        tells. It is changed last, so that an interrupted change is done again.
        """
        self.let_reach(installation)
        if not self.stands_in or self._may_search(installation):
            return
        for path in (*installation.rglob("*"), installation):
            if not path.is_symlink():
                mode = stat.S_IMODE(path.stat().st_mode)
                # What the owner may read or run, all may.
                path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
        log.warning("read_permission_added", folder=str(installation), account=self.uid)

    def _may_search(self, folder: Path) -> bool:
        status = folder.stat()
        return bool(status.st_mode & self._search_bit(status))

    def _search_bit(self, status: os.stat_result) -> int:
        """Return the one of the three permission bits that decides for the account."""
        if status.st_uid == self.uid:
            return stat.S_IXUSR
        return stat.S_IXGRP if status.st_gid == self.gid else stat.S_IXOTH
