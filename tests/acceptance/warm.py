"""Commands that start at once: forks of a process that has imported what commands import.

A command takes a second of the processor to import its libraries, and the tests run hundreds. A
fork is a process like any other (its own pid, session, folder, environment, streams); what it does
from `cli.main.main` on is what the installed command does. Import-time settings are not shared:
`workers.app`, which reads them when it is imported, is not imported here.

    python -m tests.acceptance.warm SOCKET
"""

import importlib
import json
import os
import pkgutil
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

READS_SETTINGS = "workers.app"
LARGEST = 1 << 20


class Command:
    """A command that was started here: what `subprocess.Popen` offers of it."""

    def __init__(self, connection: socket.socket, pid: int, out: int, err: int) -> None:
        self.pid = pid
        self.stdout: IO[str] = os.fdopen(out, encoding="utf-8")
        self._err: IO[str] = os.fdopen(err, encoding="utf-8")
        self._connection = connection
        self.returncode: int | None = None

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Return what it wrote until it ended; raises TimeoutError."""
        texts: dict[IO[str], str] = {}
        readers = [
            threading.Thread(target=lambda s=stream: texts.update({s: s.read()}), daemon=True)
            for stream in (self.stdout, self._err)
        ]
        for reader in readers:
            reader.start()
        ends = time.monotonic() + timeout
        self.wait(timeout)
        for reader in readers:
            reader.join(max(0.0, ends - time.monotonic()))
            if reader.is_alive():
                raise TimeoutError(f"the command's streams were open for {timeout} seconds")
        self.stdout.close()
        self._err.close()
        return texts[self.stdout], texts[self._err]

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, as Popen's: -N where signal N ended it; raises TimeoutError."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            status = self._connection.recv(16)
            self._connection.close()
            self.returncode = os.waitstatus_to_exitcode(int(status))
        return self.returncode

    def poll(self) -> int | None:
        """Return its exit code; None: it runs."""
        with suppress(TimeoutError, BlockingIOError):
            return self.wait(0)
        return None

    def terminate(self) -> None:
        """Ask it to end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


class Starter:
    """Starts commands from a warm process, which is started with the first of them."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the warm process; commands go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    def start(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Command:
        """Start `recallwatch WORDS` in this folder, with this environment and no input."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address(environment))
        out, err = os.pipe(), os.pipe()
        try:
            asked = json.dumps([list(words), str(folder), dict(environment)]).encode()
            connection.sendall(len(asked).to_bytes(8, "big"))
            socket.send_fds(connection, [b"."], [out[1], err[1]])
            connection.sendall(asked)
        finally:
            os.close(out[1])
            os.close(err[1])
        return Command(connection, int.from_bytes(connection.recv(8), "big"), out[0], err[0])

    def _address(self, environment: Mapping[str, str]) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="warm-")
            address = str(Path(self._folder.name) / "socket")
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(address)
                listening.listen(64)
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(listening.fileno()), str(os.getpid())],
                    pass_fds=[listening.fileno()],
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        return str(Path(self._folder.name) / "socket")


def _preload() -> None:
    """Import all that commands import, but what reads settings at import."""
    import cli  # noqa: PLC0415 - only the warm process needs it

    sys.modules[READS_SETTINGS] = None  # type: ignore[assignment]  # importing it raises
    for module in pkgutil.walk_packages(cli.__path__, "cli."):
        with suppress(ImportError):
            importlib.import_module(module.name)
    del sys.modules[READS_SETTINGS]
    for name in ("alembic.command", "celery.app.amqp", "celery.app.control", "celery.app.events",
                 "kombu.transport.redis"):  # fmt: skip
        importlib.import_module(name)


def _serve(listening: socket.socket, parent: int) -> None:
    """Fork for each connection, and tell it how the command ended; end with the parent."""
    connections: dict[int, socket.socket] = {}
    listening.settimeout(0.02)
    while os.getppid() == parent:
        while connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with suppress(OSError), connections.pop(pid) as connection:
                connection.sendall(str(status).encode())
        with suppress(TimeoutError):
            connection, _ = listening.accept()
            pid = _fork(connection, [listening, *connections.values()])
            connection.sendall(pid.to_bytes(8, "big"))
            connections[pid] = connection


def _fork(connection: socket.socket, others: Sequence[socket.socket]) -> int:
    """Start the command that a connection asks for, and return its pid."""
    connection.settimeout(None)
    size = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
    _, streams, _, _ = socket.recv_fds(connection, 1, 2)
    words, folder, environment = json.loads(connection.recv(size, socket.MSG_WAITALL))
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        return pid
    for each in (connection, *others):
        each.close()
    os.setsid()
    os.dup2(streams[0], 1)
    os.dup2(streams[1], 2)
    for stream in streams:
        os.close(stream)
    # As the interpreter makes them when it starts.
    encoding = sys.stdout.encoding
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding, "backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    random.seed()
    sys.argv = ["recallwatch", *words]
    from cli.main import main  # noqa: PLC0415 - imported before

    sys.exit(main(words))


if __name__ == "__main__":
    _preload()
    _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
