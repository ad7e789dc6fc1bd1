"""Open the stack: the one entrance for commands.

Every command that uses the stack holds a shared lock on `users.lock`. Starting, stopping, and
taking or giving back that share happen under `start.lock`. So whoever can turn its share into an
exclusive lock is alone, and stops everything. A killed command loses its locks to the kernel; the
processes it leaves are found, used and stopped by the next one.
"""

import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil
import structlog

from cli.embedded import records, workers
from cli.embedded.account import Account
from cli.embedded.layout import Layout
from cli.embedded.locks import FileLock, exclusive
from cli.embedded.postgres import Postgres
from cli.embedded.valkey import Valkey
from cli.embedded.workers import WorkerProcess
from pipeline.errors import UsageError

log = structlog.get_logger()


@dataclass(frozen=True)
class Servers:
    """Where the servers listen; None for one that was not asked for."""

    database_url: str | None
    redis_url: str | None


class Stack:
    """The embedded stack, as long as `open_stack` holds it open."""

    def __init__(self, layout: Layout, share: FileLock, servers: Servers) -> None:
        self.servers = servers
        self._layout = layout
        self._share = share
        self._workers: dict[str, WorkerProcess] = {}

    def ensure_workers(
        self, command: Sequence[str], env: Mapping[str, str], *, fingerprint: str
    ) -> WorkerProcess:
        """Return a running worker with this fingerprint; start one where there is none.

        `env` is added to this process's environment. Workers with another fingerprint are
        stopped first if no other command uses the stack; otherwise they go on beside the new
        one. Raises `UsageError` when the command cannot be run; whether the worker comes up
        is for the caller to see (`check_workers`, a ping).
        """
        with _explaining(self._layout), exclusive(self._layout.start_lock):
            worker = self._same_worker(fingerprint)
            if worker is None:
                if self._is_only_user():
                    workers.stop_all(self._layout)
                    self._workers.clear()
                worker = workers.start(self._layout, command, env, fingerprint)
        self._workers[fingerprint] = worker
        return worker

    def check_workers(self) -> None:
        """Raise `UsageError` with the log's explanation if a worker of ours has stopped."""
        for worker in self._workers.values():
            if not worker.is_running:
                raise UsageError(
                    f"the worker stopped: {worker.last_words or 'it left no word'}; "
                    f"log: {worker.log_file}"
                )

    def _same_worker(self, fingerprint: str) -> WorkerProcess | None:
        running = workers.find(self._layout)
        return next((worker for worker in running if worker.fingerprint == fingerprint), None)

    def _is_only_user(self) -> bool:
        """Return whether no other command uses the stack. Under the start lock only."""
        alone = self._share.try_to_own()
        self._share.share()
        return alone


@contextmanager
def open_stack(state_dir: Path, *, postgres: bool, valkey: bool) -> Iterator[Stack]:
    """Use the stack whose data live in `state_dir`; start the servers asked for.

    Stops everything at the end unless another command uses it. SIGTERM and SIGHUP end the
    `with` block by `SystemExit`, so that a command that is told to end leaves in order. Raises
    `UsageError` when a server does not start; the message names its log.
    """
    layout = Layout.of(state_dir)
    with _signals_as_exit(), ExitStack() as leaving:
        with _explaining(layout):
            layout.create()
            with exclusive(layout.start_lock):
                share = FileLock(layout.users_lock)
                share.share()
                # From here on, whatever happens, this command gives its share back.
                leaving.callback(_leave, layout, share)
                records.add_self(layout.users, _command_line())
                servers = _start(layout, postgres=postgres, valkey=valkey)
        yield Stack(layout, share, servers)


def all_servers(layout: Layout) -> tuple[Valkey, Postgres]:
    """Return both servers of the stack, running or not, in the order in which they stop."""
    account = Account.for_servers([layout.postgres, layout.valkey])
    return Valkey(layout, account), Postgres(layout, account)


def _start(layout: Layout, *, postgres: bool, valkey: bool) -> Servers:
    """Start what is asked for, both at a time, and wait until they answer."""
    if not postgres and not valkey:
        return Servers(None, None)
    queue, database = all_servers(layout)
    wanted = [server for server, asked in ((queue, valkey), (database, postgres)) if asked]
    for server in wanted:
        server.begin()
    for server in wanted:
        server.wait()
    return Servers(
        database_url=database.url if postgres else None, redis_url=queue.url if valkey else None
    )


def _leave(layout: Layout, share: FileLock) -> None:
    """Give the share back; the last one stops workers and servers. Never raises an `OSError`."""
    try:
        with exclusive(layout.start_lock):
            records.remove_self(layout.users)
            if share.try_to_own():
                workers.stop_all(layout)
                for server in all_servers(layout):
                    server.stop()
    except (OSError, psutil.Error) as error:
        log.warning("stack_not_stopped", state=str(layout.state), error=str(error))
    finally:
        share.close()


def _command_line() -> str:
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


@contextmanager
def _explaining(layout: Layout) -> Iterator[None]:
    """Turn a failure of the file system into one line that names the folder."""
    try:
        yield
    except OSError as error:
        place = error.filename or layout.state
        raise UsageError(
            f"the embedded servers cannot use {place}: {error.strerror or error}: set state_dir "
            "to a folder on a local disk that you may write to"
        ) from error


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by `SystemExit`, unless somebody handles them."""
    caught = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in caught:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
