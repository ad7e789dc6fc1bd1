"""The embedder for OpenAI's API and for every server that speaks it, through the official SDK."""

import asyncio
from collections.abc import Mapping, Sequence
from random import SystemRandom

import numpy as np
import structlog
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, omit
from pydantic import SecretStr

from pipeline.embedding.address import Address, address_of
from pipeline.embedding.openai_replies import (
    MalformedReplyError,
    Vector,
    asked_wait,
    in_one_line,
    is_too_large,
    is_transient,
    refusal,
    said_by,
    vectors_in,
)
from pipeline.embedding.packing import pack
from pipeline.errors import PermanentError, SettingsError, TransientError
from pipeline.settings import EmbeddingSettings
from pipeline.types import FloatMatrix

NO_KEY = "no-key"
"""Sent to a server on this machine where no key is set: the SDK insists on one."""

_log = structlog.get_logger(__name__)
_random = SystemRandom()


class _TooLargeError(Exception):
    """The server takes fewer or shorter texts than these in a request."""


class OpenAIEmbedder:
    """Embeds in packed requests, some at once, each tried a few times.

    The SDK retries nothing; the one retry loop is `_request`, within `attempts`. A try ends after
    `timeout` seconds whatever the server sends meanwhile (the SDK's own timeout starts again at
    each byte). `first_wait`, in seconds, is the wait before the second try; it doubles with each.

    Raises SettingsError when the key or the base URL cannot be used.
    """

    def __init__(
        self, settings: EmbeddingSettings, api_key: SecretStr | None, *, first_wait: float = 0.5
    ) -> None:
        self.model = settings.model
        self.dimensions = settings.dimensions
        self._settings = settings
        self._address = address_of(settings.base_url)
        self._key = _checked_key(api_key, self._address)
        self._first_wait = first_wait

    def embed(self, texts: Sequence[str]) -> FloatMatrix:
        """Return vectors of shape (n, d), float32, in the order of the n texts.

        A blank text (the API would refuse its whole request) and a text that is too long for the
        model even alone have a row of NaN. Needs a thread without a running event loop.

        Raises TransientError when the server does not answer, or asks for a longer wait than
        `max_wait`; PermanentError when it refuses, or answers nonsense at every try.
        """
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        found = asyncio.run(self._embed([texts[i] for i in wanted])) if wanted else []
        kept = {i: vector for i, vector in zip(wanted, found, strict=True) if vector is not None}
        return self._in_rows(kept, len(texts))

    def _in_rows(self, found: Mapping[int, Vector], n: int) -> FloatMatrix:
        """Return the vectors in their rows of n, NaN in the others."""
        lengths = {len(vector) for vector in found.values()}
        if len(lengths) > 1:
            shown = ", ".join(map(str, sorted(lengths)))
            raise PermanentError(
                self._in_words(f"returned vectors of different lengths for {self.model}: {shown}")
            )
        vectors = np.full((n, max(lengths, default=0)), np.nan, dtype=np.float32)
        for i, vector in found.items():
            vectors[i] = vector
        return vectors

    async def _embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """Send the requests, at most `concurrency` at once; the first error cancels the others."""
        settings = self._settings
        slots = asyncio.Semaphore(settings.concurrency)
        async with self._client() as client:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._take_turn(slots, client, request))
                        for request in pack(texts, settings.max_inputs, settings.max_tokens)
                    ]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return [vector for task in tasks for vector in task.result()]

    def _client(self) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key=self._key,
            base_url=self._address.url,
            timeout=self._settings.timeout,
            max_retries=0,
        )

    async def _take_turn(
        self, slots: asyncio.Semaphore, client: AsyncOpenAI, texts: Sequence[str]
    ) -> Sequence[Vector | None]:
        async with slots:
            return await self._request_or_split(client, texts)

    async def _request_or_split(
        self, client: AsyncOpenAI, texts: Sequence[str]
    ) -> Sequence[Vector | None]:
        """Halve a request that is too large, down to the text that is too long by itself."""
        try:
            return await self._request(client, texts)
        except _TooLargeError as error:
            if len(texts) == 1:
                _log.warning("text_too_long_to_embed", model=self.model, reason=str(error))
                return [None]
        half = len(texts) // 2
        first = await self._request_or_split(client, texts[:half])
        return [*first, *await self._request_or_split(client, texts[half:])]

    async def _request(self, client: AsyncOpenAI, texts: Sequence[str]) -> list[Vector]:
        tries = 1
        while True:
            last = tries == self._settings.attempts
            try:
                return await self._try_once(client, texts)
            except MalformedReplyError as error:
                if last:
                    raise PermanentError(
                        self._in_words(f"sent a reply of no use: {error}")
                    ) from error
                wait = self._backoff(tries)
            except TransientError as error:
                asked = error.retry_after
                wait = self._backoff(tries) if asked is None else asked
                if last or wait > self._settings.max_wait:
                    raise
            await asyncio.sleep(wait)
            tries += 1

    def _backoff(self, tries: int) -> float:
        """Return the seconds to wait after so many tries: doubling, with half of it random."""
        longest = min(self._first_wait * 2.0 ** (tries - 1), self._settings.max_wait)
        return longest * (1 + _random.random()) / 2

    async def _try_once(self, client: AsyncOpenAI, texts: Sequence[str]) -> list[Vector]:
        """Map the SDK's errors to ours."""
        try:
            async with asyncio.timeout(self._settings.timeout):
                reply = await client.embeddings.with_raw_response.create(
                    model=self.model,
                    input=list(texts),
                    dimensions=self.dimensions or omit,
                    encoding_format="base64",
                )
        except (TimeoutError, APITimeoutError):
            waited = f"did not answer within {self._settings.timeout:g} s"
            raise TransientError(self._in_words(waited)) from None
        except APIConnectionError as error:
            fault = in_one_line(str(error.__cause__ or error), self._key)
            unreachable = f"cannot be reached, or broke off ({fault}): check embedding.base_url"
            raise TransientError(self._in_words(unreachable)) from None
        except APIStatusError as error:
            raise self._mapped(error) from None  # a traceback would quote the server, key and all
        return vectors_in(reply.content, len(texts))

    def _mapped(self, error: APIStatusError) -> Exception:
        said = in_one_line(said_by(error), self._key)
        if is_too_large(error):
            return _TooLargeError(said)
        if is_transient(error):
            return TransientError(
                self._in_words(f"answered {error.status_code}: {said}"),
                retry_after=asked_wait(error.response.headers),
            )
        return refusal(error, self._address.host, self.model, said)

    def _in_words(self, what: str) -> str:
        return f"embedding server {self._address.host} {what}"


def _checked_key(api_key: SecretStr | None, address: Address) -> str:
    key = api_key.get_secret_value().strip() if api_key else ""
    if not key and address.is_loopback:
        return NO_KEY
    if not key:
        raise SettingsError(
            f"OPENAI_API_KEY is not set: {address.host} needs one "
            "(any value will do for a server that does not check it)"
        )
    if not (key.isascii() and key.isprintable()):
        raise SettingsError("OPENAI_API_KEY holds characters that no key has: copy it again")
    return key
