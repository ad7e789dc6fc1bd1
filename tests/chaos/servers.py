"""The suite's own PostgreSQL and Valkey: the embedded ones, to be killed and started again."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from cli.embedded.account import Account
from cli.embedded.layout import ROOT, Layout
from cli.embedded.postgres import Postgres
from cli.embedded.valkey import Valkey

DISK_BYTES = 400 * 1024**2
"""Size of the disk that PostgreSQL has for itself, where one can be mounted."""


class SmallPostgres(Postgres):
    """The embedded PostgreSQL with little log of its own, so that its disk can be small."""

    def command(self, sockets: Path) -> Sequence[str]:
        limits = ("--max_wal_size=96MB", "--min_wal_size=32MB", "--shared_buffers=32MB")
        return [*super().command(sockets), *limits]


class ForgetfulValkey(Valkey):
    """The embedded Valkey without persistence: a killed one has lost the queue."""

    def command(self, sockets: Path) -> Sequence[str]:
        return [*super().command(sockets), "--save", ""]


Server = SmallPostgres | ForgetfulValkey


def server(kind: type[Server], folder: Path) -> Server:
    """Return a server whose data live in `folder`, not started."""
    layout = Layout.of(folder / "state")
    layout.create()
    return kind(layout, Account.for_servers([layout.postgres, layout.valkey]))


def start(one: Server) -> None:
    """Start a server, also one that crashed, and wait until it answers."""
    one.begin()
    one.wait()


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill processes as kill -9 does; one that is gone already is none."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def disk(folder: Path, *, small: bool) -> Iterator[bool]:
    """Make `folder`, a small file system of its own where wanted and allowed; say whether it is."""
    folder.mkdir(mode=0o755)
    options = f"size={DISK_BYTES},mode=0755"
    allowed = small and os.geteuid() == ROOT
    mounted = allowed and _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder)
    try:
        yield mounted
    finally:
        if mounted:
            _run("umount", "--lazy", folder)


def _run(program: str, *arguments: str | Path) -> bool:
    found = shutil.which(program)
    if found is None:
        return False
    return subprocess.run([found, *arguments], check=False, capture_output=True).returncode == 0
