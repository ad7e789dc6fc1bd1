"""File locks. The kernel gives them back when their holder dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """A lock on a file, made where it is missing. Other processes do not inherit it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def share(self) -> None:
        """Wait for a shared lock, in place of the one that is held."""
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def own(self) -> None:
        """Wait for the exclusive lock, in place of the one that is held."""
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_to_own(self) -> bool:
        """Take the exclusive lock if nobody else holds one; return whether it was taken.

        If it was not, the shared lock that was held before may be gone: the kernel gives up the
        old lock before it tries the new one.
        """
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Give back whatever is held."""
        os.close(self._file)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the exclusive lock on `path`; wait for it as long as it takes."""
    lock = FileLock(path)
    try:
        lock.own()
        yield
    finally:
        lock.close()
