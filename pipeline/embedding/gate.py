"""What every request to a provider passes: its pause, and the limits that all workers share."""

import hashlib
import json

from pydantic import SecretStr
from redis import Redis

from pipeline.embedding.address import address_of, usable_key
from pipeline.embedding.limiter import Booking, Limiter
from pipeline.embedding.pause import Pause
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import TransientError


class Gate:
    """Lets requests to one provider through, one after the other.

    Redis is asked from the event loop itself, not from a thread: it is near, a call that fails is
    not tried again for a while, and a thread would need a connection of its own.
    """

    def __init__(self, limiter: Limiter | None = None, pause: Pause | None = None) -> None:
        self._limiter = limiter
        self._pause = pause

    def book(self, most_tokens: int, longest: float) -> Booking:
        """Book a request of at most so many tokens: wait as long as it says, then `check`.

        Raises PermanentError while the provider is paused, and TransientError, with the wait, when
        that is more than `longest` seconds.
        """
        self.check()
        if self._limiter is None:
            return Booking(0.0, 0.0)
        booking = self._limiter.book(most_tokens, longest)
        if booking.wait > longest:
            raise TransientError(
                "the rate limit ([embedding] requests_per_minute, tokens_per_minute) leaves no"
                f" room for {booking.wait:.1f} s",
                retry_after=booking.wait,
            )
        return booking

    def check(self) -> None:
        """Raise PermanentError while the provider is paused."""
        if self._pause is not None:
            self._pause.check()

    def correct(self, booking: Booking, most_tokens: int, used: int) -> None:
        """Put right what was booked, by the tokens that the provider says it used."""
        if self._limiter is not None:
            self._limiter.correct(booking, most_tokens, used)

    def shut(self, reason: str) -> None:
        """Have all workers leave the provider alone for a while."""
        if self._pause is not None:
            self._pause.begin(reason)


OPEN = Gate()
"""Lets everything through."""


def provider_id(*parts: str | int | None) -> str:
    """Return what stands for a provider, a model, an account: a hash, as a key is secret."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def build_gate(
    client: Redis, settings: EmbeddingSettings, api_key: SecretStr | None, *, workers: int
) -> Gate:
    """Return the gate before a provider; `workers` share its limits while Redis is away."""
    account = provider_id(address_of(settings).host, settings.model, usable_key(api_key, settings))
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    limiter = Limiter(client, account, requests=requests, tokens=tokens, workers=workers)
    return Gate(limiter if requests or tokens else None, pause_of(client, settings, api_key))


def pause_of(client: Redis, settings: EmbeddingSettings, api_key: SecretStr | None) -> Pause:
    """Return what pauses a provider.

    The dimensions are told apart, as the limits are not: a refusal may be of them alone.
    """
    key = usable_key(api_key, settings)
    known_as = provider_id(address_of(settings).host, settings.model, key, settings.dimensions)
    return Pause(client, known_as)
