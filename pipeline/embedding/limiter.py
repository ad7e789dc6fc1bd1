"""Rate limits that all workers share, in Redis; while it is away, a share for each process."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from redis import Redis
from redis.exceptions import RedisError

from pipeline.embedding.cache import PAUSE, Breaker
from pipeline.embedding.rates import Buckets, Rate

_log = structlog.get_logger(__name__)

# A key holds a limit's TAT and when that was written, both in seconds of the server's clock. Where
# the clock went back since (another server took over, or it was set), so does the TAT: it would
# be ahead by more than was booked. Times have microseconds: Lua's own form of a number has 14
# digits, too few for a time since 1970.
_CLOCK = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local function read(key)
    local arrival, written = string.match(redis.call('GET', key) or '', '^(%S+) (%S+)$')
    if not arrival then return now end
    return math.max(now, arrival - math.max(written - now, 0))
end
local function write(key, arrival)
    local life = math.ceil((arrival - now) * 1000) + 1
    redis.call('SET', key, string.format('%.6f %.6f', arrival, now), 'PX', life)
end
"""

# KEYS: one a limit. ARGV: the longest wait, then cost, burst and interval of each limit. Returns
# the wait; see `Buckets.book`.
_BOOK = f"""{_CLOCK}
local wait, arrivals = 0, {{}}
for i, key in ipairs(KEYS) do
    local cost, burst, interval = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
    arrivals[i] = read(key)
    wait = math.max(wait, arrivals[i] - math.max(burst - cost, 0) * interval - now)
end
local rounded = string.format('%.6f', wait)
wait = tonumber(rounded)
if wait <= tonumber(ARGV[1]) then
    for i, key in ipairs(KEYS) do
        write(key, math.max(now + wait, arrivals[i]) + ARGV[3 * i - 1] * ARGV[3 * i + 1])
    end
end
return rounded
"""

# KEYS: one limit. ARGV: seconds to move its TAT by. Whoever lost it (a flush) has nothing to give
# back.
_CORRECT = f"""{_CLOCK}
local arrival = read(KEYS[1]) + ARGV[1]
if arrival > now then
    write(KEYS[1], arrival)
else
    redis.call('DEL', KEYS[1])
end
"""

_MARGIN = 1.25
"""What tokens are estimated at, over what the last reply says of their bound."""


@dataclass(frozen=True, slots=True)
class Booking:
    """When a request may go out, in seconds from now, and the tokens it was booked with."""

    wait: float
    tokens: float


class Limiter:
    """Requests and tokens a minute to one provider, counted in Redis for all workers.

    Where Redis does not answer, this process keeps to its share, a `workers`-th, in buckets of its
    own; it is logged once an outage, and Redis left alone for `pause` seconds. Redis losing
    everything lets one burst more go out. Tokens are booked by what the last reply used of its
    bound, and put right by each reply.
    """

    def __init__(
        self,
        client: Redis,
        provider_id: str,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        workers: int = 1,
        pause: float = PAUSE,
    ) -> None:
        given = (("requests", requests), ("tokens", tokens))
        limits = {name: limit for name, limit in given if limit is not None}
        self._names = list(limits)
        # One hash tag: a cluster runs no script over keys of several slots.
        self._keys = [f"rw:rate:2:{{{provider_id}}}:{name}" for name in limits]
        self._rates = [Rate.of(limit) for limit in limits.values()]
        self._own = Buckets([Rate.of(limit / workers) for limit in limits.values()])
        self._breaker = Breaker(pause)
        self._book = client.register_script(_BOOK)
        self._correct = client.register_script(_CORRECT)
        self._share = 1.0

    def book(self, most_tokens: int, longest: float) -> Booking:
        """Book a request of at most so many tokens; a wait above `longest` books nothing."""
        if not self._names:
            return Booking(0.0, 0.0)
        tokens = min(1.0, self._share * _MARGIN) * most_tokens
        costs = [1.0 if name == "requests" else tokens for name in self._names]
        wait = self._book_shared(costs, longest)
        return Booking(self._own.book(costs, longest) if wait is None else wait, tokens)

    def correct(self, booking: Booking, most_tokens: int, used: int) -> None:
        """Put right what was booked, by what the provider says of the request."""
        if "tokens" not in self._names:
            return
        self._share = used / max(most_tokens, 1)
        number, change = self._names.index("tokens"), used - booking.tokens
        if not self._breaker.lets_through:
            self._own.correct(number, change)
            return
        try:
            seconds = change * self._rates[number].interval
            self._correct(keys=[self._keys[number]], args=[seconds])
        except RedisError as error:
            self._report(error)

    def _book_shared(self, costs: Sequence[float], longest: float) -> float | None:
        """Book in Redis; None: it does not answer."""
        if not self._breaker.lets_through:
            return None
        numbers = [
            number
            for cost, rate in zip(costs, self._rates, strict=True)
            for number in (cost, rate.burst, rate.interval)
        ]
        try:
            wait = float(self._book(keys=self._keys, args=[longest, *numbers]))
        except RedisError as error:
            self._report(error)
            return None
        self._breaker.succeeded()
        return wait

    def _report(self, error: RedisError) -> None:
        if self._breaker.failed():
            _log.warning("rate_limits_not_shared", error=type(error).__name__, reason=str(error))
