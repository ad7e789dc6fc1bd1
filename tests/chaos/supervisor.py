"""Start what died, as systemd would: workers, beats and servers."""

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from pipeline.errors import UsageError
from tests.chaos.servers import Server, start

EVERY = 0.1
"""Seconds between two looks."""


@dataclass
class Service:
    """A worker or a beat; `held` keeps it down."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log_file: Path
    held: bool = False
    process: "subprocess.Popen[bytes] | None" = None
    starts: int = 0

    @property
    def pid(self) -> int | None:
        running = self.process is not None and self.process.poll() is None
        return self.process.pid if running and self.process else None

    def leader(self) -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid) if self.pid else None
        return None

    def children(self) -> list[psutil.Process]:
        """Return the processes of its pool; none while it is down."""
        leader = self.leader()
        with suppress(psutil.NoSuchProcess):
            return leader.children() if leader else []
        return []

    def family(self) -> list[psutil.Process]:
        leader = self.leader()
        return [leader, *self.children()] if leader else []

    def hold(self) -> None:
        """Kill it as kill -9 does, and keep it down."""
        self.held = True
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def revive(self) -> None:
        """Start it unless it runs, or is held down."""
        if self.held or self.pid is not None:
            return
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=dict(self.environment), stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.starts += 1


class Supervisor:
    """Looks at its services and servers ten times a second, in a thread of its own."""

    def __init__(self, services: Sequence[Service], servers: Sequence[Server]) -> None:
        self.services = services
        self.servers = servers
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor")

    def __enter__(self) -> Self:
        for service in self.services:
            service.revive()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ending.wait(EVERY):
            for server in self.servers:
                _try(partial(_revive, server))
            for service in self.services:
                _try(service.revive)


def _revive(server: Server) -> None:
    if server.find() is None:
        start(server)


def _try(action: Callable[[], None]) -> None:
    # A server that does not start yet (its disk is full) is tried again at the next look.
    with suppress(UsageError, OSError, psutil.Error):
        action()


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes whose environment holds the mark: workers, and children they left."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get("CHAOS_MARK") == mark:
                found.append(process)
    return found
