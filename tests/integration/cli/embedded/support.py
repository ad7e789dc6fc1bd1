"""A command that uses the stack, under the test's control, and a look at its processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from cli.embedded import workers
from cli.embedded.layout import Layout
from cli.embedded.processes import KILL, end
from cli.embedded.stack import all_servers

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")

SCRIPT = """
import json, os, pwd, sys
from pathlib import Path

import structlog

from cli.embedded.stack import open_stack
from cli.embedded.status import inspect
from pipeline.errors import RecallwatchError

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
state, wishes, user, worker = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
if user:
    # Not before everything is imported: the interpreter may lie where the user cannot go.
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
try:
    with open_stack(state, postgres="p" in wishes, valkey="v" in wishes) as stack:
        if worker:
            stack.ensure_workers(worker[1:], {}, fingerprint=worker[0])
        seen = inspect(state)
        print(json.dumps({
            "database_url": stack.servers.database_url,
            "redis_url": stack.servers.redis_url,
            "postgres": seen.postgres and seen.postgres.pid,
            "valkey": seen.valkey and seen.valkey.pid,
            "workers": {worker.label: worker.pid for worker in seen.workers},
            "users": [user.pid for user in seen.users],
        }), flush=True)
        sys.stdin.readline()
except RecallwatchError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit(error.exit_code)
"""

MEMORY = Path("/dev/shm")  # noqa: S108 - only folders made by mkdtemp in it are used


def make_folder() -> Path:
    """Make a folder, closed to others as `mktemp -d` makes it, in memory where there is room.

    Not pytest's own: other sessions of it take away the search permission that root's
    PostgreSQL needs there.
    """
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**30
    return Path(tempfile.mkdtemp(prefix="stack-", dir=MEMORY if roomy else None))


class Command:
    """A process that opens the stack, says what it found, and waits to be told to leave.

    `wishes` holds p for PostgreSQL and v for Valkey; `worker` a fingerprint and a command line.
    """

    def __init__(
        self,
        state: Path,
        wishes: str = "pv",
        *,
        user: str = "",
        worker: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(state), wishes, user, *worker],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said: dict[str, Any] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> dict[str, Any]:
        """What it found once the stack was open, or its error."""
        if self._said is None:
            assert self._process.stdout is not None
            self._said = json.loads(self._process.stdout.readline())
        return self._said

    def leave(self) -> int:
        """Let it end in order; return its exit code."""
        assert self.said
        self._process.communicate("leave\n", timeout=60)
        return self._process.returncode

    def send(self, number: signal.Signals) -> int:
        """Send it a signal once the stack is open; return its exit code."""
        assert self.said
        self._process.send_signal(number)
        self._process.communicate(timeout=60)
        return self._process.returncode

    def kill(self) -> None:
        """End it by kill -9, with the stack open."""
        self.send(signal.SIGKILL)


def pids_of(state: Path) -> set[int]:
    """Return the processes of the stack's servers, their children included."""
    servers = all_servers(Layout.of(state))
    return {process.pid for server in servers for process in server.processes()}


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop_everything(state: Path) -> None:
    layout = Layout.of(state)
    workers.stop_all(layout)
    for server in all_servers(layout):
        end(server.processes(), KILL)
        server.stop()
