"""How long a shard, or an alert, waits before it is tried again."""

from pipeline.embedding.base import PaidInVainError
from pipeline.errors import TransientError

LONGEST = 60.0
"""Seconds: the longest wait of a shard that we choose ourselves."""

FIRST_OF_ALERT, LONGEST_OF_ALERT = 60.0, 3600.0
"""Seconds. A sweep rings for it each minute; in a day there are about thirty tries."""


def wait_before_retry(error: Exception, *, attempt: int) -> float:
    """Return seconds to wait after the given attempt (from 1): 2, 4, 8 ... 60.

    A server that asked for more patience (Retry-After) gets it.
    """
    asked = error.retry_after if isinstance(error, TransientError) else None
    # The exponent is kept small, so that no float overflows.
    return max(asked or 0.0, min(2.0 ** min(attempt, 10), LONGEST))


def asks_patience(error: Exception) -> bool:
    """Say whether a server asked to wait (Retry-After): trying again is no attempt used up.

    Unless it would pay again for what was paid for: that is not to go on until the deadline.
    """
    if isinstance(error, PaidInVainError):
        return False
    return isinstance(error, TransientError) and error.retry_after is not None


def wait_before_posting(asked: float | None, *, attempt: int) -> float:
    """Return seconds until an alert is posted again, after the given attempt (from 1).

    A minute, two, four ... an hour; a server that `asked` for more patience gets it.
    """
    return max(asked or 0.0, min(FIRST_OF_ALERT * 2.0 ** min(attempt - 1, 10), LONGEST_OF_ALERT))
