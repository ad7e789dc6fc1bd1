"""A limit for what has none of its own: waiting for the answer of a server that is frozen."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def raising_after(seconds: float, error: Callable[[], Exception]) -> Iterator[None]:
    """Raise an error in the middle of whatever the block does after so many seconds.

    The kernel keeps a frozen server's connections alive, and neither libpq nor a socket option ends
    the wait for a reply. What libraries make of the error on its way does not matter. Only the main
    thread hears signals: elsewhere there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    rang = False

    def ring(*_: object) -> None:
        nonlocal rang
        rang = True
        raise error()

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Exception:
        if rang:
            raise error() from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
