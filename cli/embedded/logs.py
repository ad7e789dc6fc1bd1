"""The log files of servers and workers, and the line in them that explains a failure."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 10 * 1024 * 1024
"""A log larger than this is emptied when its process is started anew."""

_TAIL_BYTES = 64 * 1024
_COMPLAINT = re.compile(
    r"fatal|panic|error|can't|cannot|could not|failed|denied|no space|no such|not permitted",
    re.IGNORECASE,
)
_STAMP = re.compile(
    r"^.*?(?=(?:FATAL|PANIC|ERROR): )"  # PostgreSQL
    r"|^\d+:[A-Z] \d\d \w{3} \d{4} [\d:.]+ [.*#-] "  # Valkey
)


@contextmanager
def appending(path: Path) -> Iterator[int]:
    """Open the log for a process to write to; yield the file descriptor."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(log).st_size > MAX_BYTES:
            os.ftruncate(log, 0)
        yield log
    finally:
        os.close(log)


def size_of(path: Path) -> int:
    """Return the size of the log in bytes, 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def explanation(path: Path, since: int = 0) -> str:
    """Return the last line of complaint written after byte `since`, without its time stamp.

    Where no line complains it is the last line; where there is none, an empty string.
    """
    lines = [line.strip() for line in _tail(path, since).splitlines() if line.strip()]
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    found = (complaints or lines or [""])[-1]
    return _STAMP.sub("", found, count=1)


def _tail(path: Path, since: int) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        # A log that was emptied meanwhile is shorter than it was.
        start = since if since <= size else 0
        log.seek(max(start, size - _TAIL_BYTES))
        return log.read().decode(errors="replace")
