"""One request to an embedding server, tried a few times, within limits and budget."""

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from random import SystemRandom

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from pipeline.embedding.base import Budget, Keep
from pipeline.embedding.client import api_client
from pipeline.embedding.gate import Gate
from pipeline.embedding.packing import most_tokens
from pipeline.embedding.pricing import cost_of
from pipeline.embedding.refusals import (
    TooLargeError,
    concerns_every_text,
    is_too_large,
    is_transient,
    may_have_billed,
    refusal,
    said_by,
)
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes import SHAPES
from pipeline.embedding.shapes.base import Asked, InputType, Reply, Vector
from pipeline.errors import PermanentError, RecallwatchError, TransientError
from pipeline.providers.address import Address
from pipeline.providers.replies import MalformedReplyError, asked_wait, in_one_line

_random = SystemRandom()


class EndedError(Exception):
    """A request was not sent (again), as another one of its call failed."""


class Call:
    """What the requests of one call to the embedder share, the first `error` of theirs included.

    After an error nothing new begins, but what was sent is waited for, as it is paid for; so is
    what was booked with a rate limit, unless the error is a PermanentError.

    `wait_until`, by the monotonic clock: nothing waits for a rate limit any longer then. Infinite:
    there is nobody to hand work back to, and each request waits as long as it takes. Make it
    within the event loop.
    """

    def __init__(
        self, client: AsyncOpenAI, keep: Keep | None, budget: Budget, wait_until: float
    ) -> None:
        self.client = client
        self.keep = keep
        self.budget = budget
        self.wait_until = wait_until
        self.error: RecallwatchError | None = None
        self._failed = asyncio.Event()
        self._refused = asyncio.Event()

    def fail(self, error: RecallwatchError) -> None:
        """Take note of an error: it ends the call."""
        self.error = self.error or error
        self._failed.set()
        if isinstance(error, PermanentError):
            self._refused.set()

    def check(self) -> None:
        """Raise EndedError when nothing new may begin."""
        if self.error is not None:
            raise EndedError

    async def rest(self, seconds: float) -> None:
        """Wait before a new try; raises EndedError as soon as there is to be none."""
        await _wait_unless(self._failed, seconds)

    async def wait_for_turn(self, seconds: float) -> None:
        """Wait for what was booked; raises EndedError as soon as it was refused for good."""
        await _wait_unless(self._refused, seconds)


async def _wait_unless(ended: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ended.wait()
    if ended.is_set():
        raise EndedError


class Requester:
    """Sends requests; the retry loop here is the only one, as the SDK retries nothing.

    A try ends after `timeout` seconds whatever the server sends meanwhile (the SDK's own timeout
    starts again at each byte). `first_wait`, in seconds, is the wait before the second try; it
    doubles with each.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        address: Address,
        key: str,
        gate: Gate,
        first_wait: float,
        input_type: InputType,
    ) -> None:
        self._settings = settings
        self._shape = SHAPES[settings.provider]
        self._asked = Asked(settings.model, settings.dimensions, input_type, settings.truncate)
        self._address = address
        self._key = key
        self._gate = gate
        self._first_wait = first_wait

    def client(self, texts: int) -> AsyncOpenAI:
        """Return a client for requests of at most so many texts."""
        most = min(texts, self._settings.most_texts)
        return api_client(self._settings, self._address, self._key, most)

    async def request(self, call: Call, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the texts' vectors, in order.

        Raises TooLargeError, and TransientError and PermanentError as `RemoteEmbedder.embed` does;
        EndedError when the call ended before.
        """
        tries = 1
        while True:
            call.check()
            last = tries == self._settings.attempts
            try:
                return await self._try_once(call, texts)
            except MalformedReplyError as error:
                if last:
                    raise PermanentError(
                        self.in_words(f"sent a reply of no use: {error}")
                    ) from error
                wait = self._backoff(tries)
            except _TryAgainError as error:
                wait = self._backoff(tries) if error.asked is None else error.asked
                if last or wait > self._settings.max_wait:
                    raise TransientError(str(error), retry_after=error.asked) from None
            await call.rest(wait)
            tries += 1

    def _backoff(self, tries: int) -> float:
        """Return the seconds to wait after so many tries: doubling, with half of it random."""
        longest = min(self._first_wait * 2.0 ** (tries - 1), self._settings.max_wait)
        return longest * (1 + _random.random()) / 2

    async def _try_once(self, call: Call, texts: Sequence[str]) -> Sequence[Vector]:
        """Send the request when limits and budget let it, and put both right by the reply.

        What is not known to be free counts as spent: it may have been billed.
        """
        most = sum(map(most_tokens, texts))
        booking = self._gate.book(most, self._longest_wait(call))
        if booking.wait > 0:
            await call.wait_for_turn(booking.wait)
            self._gate.check()
        reserved = cost_of(most, self._settings)
        call.budget.reserve(reserved)
        try:
            reply = await self._post(call.client, texts)
        except (TimeoutError, APIConnectionError, APIStatusError) as error:
            if not may_have_billed(error):
                call.budget.settle(reserved, 0.0)
            raise self._mapped(error) from None  # a traceback would quote the server, key and all
        if reply.tokens is not None:
            call.budget.settle(reserved, cost_of(reply.tokens, self._settings))
            self._gate.correct(booking, most, reply.tokens)
        return reply.vectors

    def _longest_wait(self, call: Call) -> float:
        """Return how many seconds a request may wait for a rate limit before the work goes back."""
        if call.wait_until == math.inf:
            return math.inf
        return max(0.0, min(self._settings.max_wait, call.wait_until - time.monotonic()))

    async def _post(self, client: AsyncOpenAI, texts: Sequence[str]) -> Reply:
        async with asyncio.timeout(self._settings.timeout):
            response = await client.post(
                self._shape.path,
                body=self._shape.body(texts, self._asked),
                cast_to=httpx2.Response,
            )
        return self._shape.read(response.content, len(texts))

    def _mapped(self, error: TimeoutError | APIConnectionError | APIStatusError) -> Exception:
        """Return our error for the SDK's; a refusal of any text whatever pauses the provider."""
        if isinstance(error, TimeoutError | APITimeoutError):
            waited = f"did not answer within {self._settings.timeout:g} s"
            return _TryAgainError(self.in_words(waited))
        if isinstance(error, APIConnectionError):
            fault = in_one_line(str(error.__cause__ or error), self._key)
            unreachable = f"cannot be reached, or broke off ({fault}): check embedding.base_url"
            return _TryAgainError(self.in_words(unreachable))
        said = in_one_line(said_by(error), self._key)
        if is_too_large(error):
            return TooLargeError(said)
        if is_transient(error):
            answered = self.in_words(f"answered {error.status_code}: {said}")
            return _TryAgainError(answered, asked_wait(error.response.headers))
        refused = refusal(error, self._address.host, self._settings.model, self._shape.key, said)
        if concerns_every_text(error):
            self._gate.shut(str(refused))
        return refused

    def in_words(self, what: str) -> str:
        """Return what the server did, with its name."""
        return f"embedding server {self._address.host} {what}"


class _TryAgainError(Exception):
    """A try failed for a reason that may pass; `asked` is the wait that the server wants."""

    def __init__(self, message: str, asked: float | None = None) -> None:
        super().__init__(message)
        self.asked = asked
