"""What PostgreSQL and Valkey have in common: found, started, waited for, stopped."""

import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import Path
from typing import ClassVar

import psutil
import structlog

from cli.embedded.account import Account
from cli.embedded.layout import Layout
from cli.embedded.logs import explanation, size_of
from cli.embedded.processes import Steps, bearing_mark, end, is_alive, spawn
from cli.embedded.sockets import (
    folder_in_use,
    make_private_folder,
    private_folder,
    remove_if_empty,
    remove_sockets,
)
from pipeline.errors import UsageError

START_SECONDS = 120.0
"""How long a server may take to recover from a crash or to load its data."""

SILENT_SECONDS = 30.0
"""How long a server that already ran may leave its socket unanswered before it is replaced."""

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""All that servers see of the environment: PGPORT and its like would change what they do."""

_POLL_SECONDS = 0.01
_LOW_SPACE_BYTES = 50 * 1024 * 1024

log = structlog.get_logger()


class Condition(Enum):
    """What a server says when it is asked."""

    READY = auto()
    BUSY = auto()
    SILENT = auto()


class Server(ABC):
    """One server of the stack. All but `find` has to happen under the start lock."""

    title: ClassVar[str]
    name: ClassVar[str]
    program: ClassVar[str]
    socket_names: ClassVar[tuple[str, ...]]
    stop_steps: ClassVar[Steps]
    """How to end it in order."""
    emergency_steps: ClassVar[Steps]
    """How to end one that does not answer, and what a crash left behind."""

    def __init__(self, layout: Layout, account: Account) -> None:
        self.layout = layout
        self.account = account
        self.log_file = layout.log(self.name)
        self.sockets: Path | None = None
        self._process: psutil.Process | None = None
        self._was_found = False
        self._log_start = 0

    @property
    @abstractmethod
    def pid_file(self) -> Path:
        """The file in which the server itself writes its process id, in the first line."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients connect; known once the server was found or started."""

    @abstractmethod
    def ask(self) -> Condition:
        """Ask the server how it is, over its socket."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder ready for a start, whatever a crash left in it."""

    @abstractmethod
    def command(self, sockets: Path) -> Sequence[str]:
        """Return the command line, which holds the stack's mark."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The data folder."""

    def mend(self) -> bool:
        """Repair what kept the server from starting; return whether another try is worth it."""
        return False

    def find(self) -> psutil.Process | None:
        """Return the running server of this stack, or None.

        The process must be the one that the data folder's pid file names, and carry the mark of
        the stack: a file left by a crash says nothing, even if its number lives on as another
        process, and a server whose data folder was removed is none.
        """
        named = self._named_pid()
        for process in self.processes() if named else ():
            if process.pid == named:
                self.sockets = folder_in_use(process, self.layout.mark)
                return process if self.sockets else None
        return None

    def begin(self) -> None:
        """Start the server unless it runs. `wait` tells when it can be used."""
        self._process = self.find()
        self._was_found = self._process is not None
        if self._process is None:
            self._launch()

    def wait(self) -> None:
        """Wait until the server answers. Raises `UsageError` with the log's explanation."""
        started = time.monotonic()
        while (condition := self.ask()) is not Condition.READY:
            waited = time.monotonic() - started
            if self._process is None or not is_alive(self._process):
                self._try_again()
            elif self._was_found and condition is Condition.SILENT and waited > SILENT_SECONDS:
                log.warning("silent_server_replaced", server=self.name, pid=self._process.pid)
                self._end_leftovers()
                self._try_again()
            elif waited > START_SECONDS:
                raise UsageError(
                    f"{self.title} does not answer after {START_SECONDS:.0f} seconds; "
                    f"its log: {self.log_file}"
                )
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Stop the server and whatever a crash left of it."""
        running = self.find()
        if running is not None:
            end([running], self.stop_steps)
        self._end_leftovers()
        folder = self.sockets or private_folder(self.layout.mark)
        remove_sockets(folder, self.socket_names, self.account)
        remove_if_empty(folder, self.account)

    def reason(self) -> str:
        """Return why the last start failed, from the log."""
        reason = explanation(self.log_file, self._log_start) or "it ended without a word"
        free = shutil.disk_usage(self.layout.state).free
        if free < _LOW_SPACE_BYTES:
            return f"{reason} (the disk has {free // 1024**2} MB left)"
        return reason

    def _launch(self) -> None:
        self._log_start = size_of(self.log_file)
        self._end_leftovers()
        self.prepare()
        self.sockets = make_private_folder(self.layout.mark, self.account)
        remove_sockets(self.sockets, self.socket_names, self.account)
        self._process = spawn(
            self.command(self.sockets),
            log_file=self.log_file,
            account=self.account,
            folder=self.folder,
            environment=ENVIRONMENT,
        )
        log.info("server_started", server=self.name, pid=self._process.pid)

    def _try_again(self) -> None:
        """Start anew if the server had run before or could be mended; raise otherwise."""
        if not self._was_found and not self.mend():
            raise UsageError(f"{self.title} did not start: {self.reason()}; log: {self.log_file}")
        self._was_found = False
        self._launch()

    def _end_leftovers(self) -> None:
        """End every process that bears the mark.

        A server that dies by kill -9 leaves its children: PostgreSQL's would still write to the
        data. And one whose data folder was removed under it still holds the socket.
        """
        end(self.processes(), self.emergency_steps)

    def processes(self) -> list[psutil.Process]:
        """Return all processes that bear the mark: the server, its children, what is left."""
        return list(bearing_mark(self.program, self.layout.mark, self.account))

    def _named_pid(self) -> int | None:
        try:
            return int(self.pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
