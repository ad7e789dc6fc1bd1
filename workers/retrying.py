"""How long a shard waits before it is tried again."""

from pipeline.errors import TransientError

LONGEST = 60.0
"""Seconds: the longest wait that we choose ourselves."""


def wait_before_retry(error: Exception, *, attempt: int) -> float:
    """Return seconds to wait after the given attempt (from 1): 2, 4, 8 ... 60.

    A server that asked for more patience (Retry-After) gets it.
    """
    asked = error.retry_after if isinstance(error, TransientError) else None
    # The exponent is kept small: an alert is tried so often that a float would overflow.
    return max(asked or 0.0, min(2.0 ** min(attempt, 10), LONGEST))
