"""What ends a task in the middle of whatever it does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_after(seconds: float, error: type[Exception]) -> Iterator[None]:
    """Raise an error after so many seconds from a signal's handler, as Celery's soft limit does."""

    def interrupt(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
