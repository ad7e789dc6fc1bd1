"""The embedder for models behind an API: of OpenAI's shape, TEI's, Voyage's or Cohere's."""

import asyncio
import time
from collections.abc import Mapping, Sequence

import numpy as np
import structlog
from pydantic import SecretStr

from pipeline.embedding.address import address_of, usable_key
from pipeline.embedding.base import FREE, Budget, Keep
from pipeline.embedding.gate import OPEN, Gate
from pipeline.embedding.packing import pack
from pipeline.embedding.rates import Rate
from pipeline.embedding.refusals import TooLargeError
from pipeline.embedding.requester import Call, EndedError, Requester
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType, Vector
from pipeline.errors import PermanentError, RecallwatchError
from pipeline.types import FloatMatrix

PATIENCE = 120.0
"""Seconds after which a call waits for no rate limit any more, unless told otherwise."""

_log = structlog.get_logger(__name__)


class RemoteEmbedder:
    """Embeds in packed requests, some at once, each tried a few times; see `Requester`.

    `input_type` says what the texts are: the API is told, where it asks, and each text gets the
    prefix that the settings have for it. Every request passes `gate`. `patience` is how many
    seconds a call may take and still wait for a rate limit: the rest is then for a later call
    (infinite: it does all).

    Raises SettingsError when the key or the base URL cannot be used.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        api_key: SecretStr | None,
        *,
        gate: Gate = OPEN,
        patience: float = PATIENCE,
        first_wait: float = 0.5,
        input_type: InputType = InputType.QUERY,
    ) -> None:
        self.model = settings.model
        self.dimensions = settings.dimensions
        self._settings = settings
        self._patience = patience
        self._prefix = settings.prefix_of(input_type)
        address, key = address_of(settings), usable_key(api_key, settings)
        self._requester = Requester(settings, address, key, gate, first_wait, input_type)

    def embed(
        self, texts: Sequence[str], *, keep: Keep | None = None, budget: Budget = FREE
    ) -> FloatMatrix:
        """Return vectors of shape (n, d), float32, in the order of the n texts.

        A blank text (the API would refuse its whole request) and a text that is too long for the
        model even alone have a row of NaN. Needs a thread without a running event loop.

        Raises TransientError when the server does not answer, or asks for a longer wait than
        `max_wait`, or a rate limit does; PermanentError when it refuses, or is paused, or answers
        nonsense at every try, and as the budget does.
        """
        wanted = [i for i, text in enumerate(texts) if text.strip()]
        asked = [self._prefix + texts[i] for i in wanted]
        found = asyncio.run(self._embed(asked, keep, budget)) if wanted else []
        kept = {i: vector for i, vector in zip(wanted, found, strict=True) if vector is not None}
        return self._in_rows(kept, len(texts))

    def _in_rows(self, found: Mapping[int, Vector], n: int) -> FloatMatrix:
        """Return the vectors in their rows of n, NaN in the others."""
        lengths = {len(vector) for vector in found.values()}
        if len(lengths) > 1:
            shown = ", ".join(map(str, sorted(lengths)))
            said = f"returned vectors of different lengths for {self.model}: {shown}"
            raise PermanentError(self._requester.in_words(said))
        vectors = np.full((n, max(lengths, default=0)), np.nan, dtype=np.float32)
        for i, vector in found.items():
            vectors[i] = vector
        return vectors

    async def _embed(
        self, texts: Sequence[str], keep: Keep | None, budget: Budget
    ) -> list[Vector | None]:
        """Send the requests, at most `concurrency` at once, and raise the first error of theirs.

        An error that is none of ours, as a time limit is, cancels the others.
        """
        slots = asyncio.Semaphore(self._settings.concurrency)
        async with self._requester.client(len(texts)) as client:
            call = Call(client, keep, budget, time.monotonic() + self._patience)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._take_turn(slots, call, request))
                        for request in self._packed(texts)
                    ]
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        if call.error is not None:
            raise call.error
        return [vector for task in tasks for vector in task.result()]

    def _packed(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Pack the texts, so that no request uses up more than may go out at once."""
        settings = self._settings
        most = settings.most_tokens
        if settings.tokens_per_minute is not None:
            most = min(most, int(Rate.of(settings.tokens_per_minute).burst))
        return list(pack(texts, settings.most_texts, most))

    async def _take_turn(
        self, slots: asyncio.Semaphore, call: Call, texts: Sequence[str]
    ) -> Sequence[Vector | None]:
        """Return the texts' vectors; none once the call failed, whose error they are not for."""
        async with slots:
            try:
                return await self._request_or_split(call, texts)
            except EndedError:
                return []
            except RecallwatchError as error:
                call.fail(error)
                return []

    async def _request_or_split(self, call: Call, texts: Sequence[str]) -> Sequence[Vector | None]:
        """Halve a request that is too large, down to the text that is too long by itself."""
        try:
            found = await self._requester.request(call, texts)
        except TooLargeError as error:
            if len(texts) == 1:
                _log.warning("text_too_long_to_embed", model=self.model, reason=str(error))
                return [None]
        else:
            if call.keep is not None:
                own = [text[len(self._prefix) :] for text in texts]
                call.keep(own, self._in_rows(dict(enumerate(found)), len(found)))
            return found
        half = len(texts) // 2
        first = await self._request_or_split(call, texts[:half])
        return [*first, *await self._request_or_split(call, texts[half:])]
