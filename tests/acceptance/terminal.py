"""A command in a terminal of its own: a real pty, of 80 columns, with somebody at the keyboard."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.acceptance.command import Project, without_ours

TIMEOUT = 60
"""Seconds after which a command counts as hanging."""

COLUMNS = 80
ROWS = 60

# Else Ctrl-C would be a character that nobody gets a signal for.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x01\x02]")


class Terminal:
    """What a person sees of a command and types into it."""

    def __init__(self, process: "subprocess.Popen[bytes]", screen: int) -> None:
        self._process = process
        self._screen = screen
        self.seen = ""
        self._read_to = 0

    def wait_for(self, text: str) -> str:
        """Return what was shown since the last time, up to a text; blanks and lines count alike."""
        wanted = re.compile(r"\s+".join(map(re.escape, text.split())))
        deadline = time.monotonic() + TIMEOUT
        while not (found := wanted.search(self.seen, self._read_to)):
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.seen[self._read_to :]}"
            self._read()
        shown = self.seen[self._read_to : found.end()]
        self._read_to = found.end()
        return shown

    def press(self, keys: str) -> None:
        """Type keys, or words and the return key."""
        os.write(self._screen, keys.encode())

    def finish(self) -> int:
        """Return the exit code of a command that ends by itself."""
        deadline = time.monotonic() + TIMEOUT
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end:\n{self.seen[self._read_to :]}"
            self._read()
        self._read()
        return self._process.returncode

    def kill(self) -> None:
        """End the command as a lost connection or a power cut does."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        readable, _, _ = select.select([self._screen], [], [], 0.1)
        if readable:
            with suppress(OSError):  # on Linux the end of a pty is an error
                part = os.read(self._screen, 65_536).decode(errors="replace")
                self.seen += _ESCAPES.sub("", part).replace("\r", "")


@contextmanager
def terminal(project: Project, *arguments: str, **environment: str) -> Iterator[Terminal]:
    """Run a command in a terminal; it is killed in the end if it still runs."""
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    plain = dict.fromkeys(("EDITOR", "VISUAL", "COLUMNS", "LINES"), "")
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, sys.executable, "-m", "cli.main", *arguments],
        cwd=project.folder,
        env=without_ours() | {"TERM": "xterm"} | plain | project.environment | environment,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    shown = Terminal(process, screen)
    try:
        yield shown
    finally:
        shown.kill()
        os.close(screen)
