"""Rate limits: when the next request may go out, so that no minute sees more than its limit.

This is the Generic Cell Rate Algorithm (ITU-T I.371): a limit is a clock, the theoretical arrival
time or TAT, that each request pushes ahead by what it uses. `pipeline.embedding.limiter` does the
same in Redis for all workers; the buckets here serve one process while Redis is away.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

PERIOD = 60.0
"""Seconds that a limit counts over."""

_DIGITS = 6
"""Decimals of a wait in seconds."""

_SHARE_AT_ONCE = 10
"""A tenth of a minute's limit may go out at once, the rest evenly."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit a minute: `burst` units may go at once, and one more every `interval` seconds.

    Providers count over windows that we do not know, so that no window of a minute may see more
    than the limit: the burst and what a minute adds to it make up the limit together.
    """

    burst: float
    interval: float

    @classmethod
    def of(cls, limit: float) -> "Rate":
        """Return the rate that keeps to `limit` units in any minute; `limit` is above 0."""
        burst = max(1.0, math.floor(limit / _SHARE_AT_ONCE))
        # In less than a minute fewer than burst + 60 / interval go out, which whole units below
        # limit + 1 keep to the limit.
        return cls(burst, PERIOD / (limit + 1 - burst))


class Buckets:
    """The limits of one process: a request goes out when all of them let it."""

    def __init__(self, rates: Sequence[Rate], clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._clock = clock
        self._arrivals = [-math.inf] * len(rates)

    def book(self, costs: Sequence[float], longest: float) -> float:
        """Return in how many seconds a request may go out that uses up `costs`, one a limit.

        It is booked for then, unless that is more than `longest` seconds away: nothing is booked
        in that case. A request above a limit's burst waits for all of it, and makes the next wait.
        """
        now = self._clock()
        each = list(zip(self._arrivals, self._rates, costs, strict=True))
        may_go = [arrival - max(r.burst - cost, 0.0) * r.interval for arrival, r, cost in each]
        # Rounded, so that no rest of a sum is a wait.
        wait = round(max([0.0, *(at - now for at in may_go)]), _DIGITS)
        if wait <= longest:
            self._arrivals = [
                max(now + wait, arrival) + cost * r.interval for arrival, r, cost in each
            ]
        return wait

    def correct(self, number: int, change: float) -> None:
        """Add to what was used up of a limit, or give it back where `change` is below 0."""
        self._arrivals[number] += change * self._rates[number].interval
