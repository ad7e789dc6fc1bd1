"""A provider that refused for good is left alone by all workers, for a while."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from redis import Redis
from redis.exceptions import RedisError

from pipeline.embedding.cache import PAUSE, Breaker
from pipeline.errors import PermanentError

LASTS = 300
"""Seconds that a pause lasts, unless somebody starts or resumes a batch before."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Paused:
    """Why a provider is left alone, and for how many more seconds."""

    reason: str
    seconds: float


class Pause:
    """One provider's pause, a key in Redis that holds the reason.

    Where Redis does not answer nobody is held back: each worker hears the refusal itself.
    """

    def __init__(self, client: Redis, provider_id: str, *, pause: float = PAUSE) -> None:
        self._client = client
        self._key = f"rw:pause:1:{provider_id}"
        self._breaker = Breaker(pause)

    def look(self) -> Paused | None:
        """Return the pause that is on; None: there is none."""
        reason = self._ask(lambda: self._client.get(self._key))
        if not isinstance(reason, bytes):
            return None
        left = self._ask(lambda: self._client.pttl(self._key))
        milliseconds = left if isinstance(left, int) else 0
        return Paused(reason.decode(errors="replace"), max(milliseconds, 0) / 1000)

    def check(self) -> None:
        """Raise PermanentError, with the reason, while the provider is paused."""
        reason = self._ask(lambda: self._client.get(self._key))
        if isinstance(reason, bytes):
            raise PermanentError(reason.decode(errors="replace"))

    def begin(self, reason: str) -> None:
        """Have all workers leave the provider alone."""
        self._ask(lambda: self._client.set(self._key, reason, ex=LASTS))

    def lift(self) -> None:
        """Let the provider be asked again: somebody put right what it refused, or says so."""
        self._ask(lambda: self._client.delete(self._key))

    def _ask(self, call: Callable[[], object]) -> object:
        """Return what a call of Redis does; None while it does not answer."""
        if not self._breaker.lets_through:
            return None
        try:
            answer = call()
        except RedisError as error:
            if self._breaker.failed():
                name, reason = type(error).__name__, str(error)
                _log.warning("provider_pause_not_shared", error=name, reason=reason)
            return None
        self._breaker.succeeded()
        return answer
