"""An embedder behind its cache: each text is embedded once, whatever asks for it how often."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.embedding.base import (
    FREE,
    Budget,
    Embedder,
    PaidInVainError,
    check,
    check_shape,
    usable,
)
from pipeline.embedding.cache import VectorCache
from pipeline.errors import TransientError
from pipeline.types import Failure, FloatMatrix


@dataclass(slots=True)
class Stats:
    """What embedding has cost so far; equal texts of a batch count once.

    `hits`: texts whose vector was cached. `misses`: texts sent to the embedder. `calls`: times the
    embedder was called (it may split a call into several requests).
    """

    hits: int = 0
    misses: int = 0
    calls: int = 0


class CachedEmbedder:
    """Takes vectors from the cache, embeds what is missing, and stores what came out well.

    `dimensions` is the length that vectors must have where the embedder does not say it itself.
    `stats` adds up over the object's life: put a fresh one in its place to count anew.
    """

    def __init__(
        self, embedder: Embedder, cache: VectorCache, dimensions: int | None = None
    ) -> None:
        self.model = embedder.model
        self.dimensions = embedder.dimensions or dimensions
        self.stats = Stats()
        self._embedder = embedder
        self._cache = cache

    def embed(
        self, texts: Sequence[str], ids: Sequence[str] | None = None, budget: Budget = FREE
    ) -> tuple[FloatMatrix, dict[int, Failure]]:
        """Return vectors of shape (n, d), float32, in the order of the n texts, and the failures.

        A failure's key is the position of its text, whose row is then NaN or zero; `ids` names the
        texts in the failures (None: by position). With no vector for any text, d may be 0.

        Raises TransientError and PermanentError as the embedder does (PaidInVainError where some
        vectors came and could not be kept), and PermanentError for vectors of the wrong dimension.
        """
        distinct = list(dict.fromkeys(texts))
        row_of = {text: row for row, text in enumerate(distinct)}
        vectors = self._vectors_of(distinct, budget)[[row_of[text] for text in texts]]
        names = [str(i) for i in range(len(texts))] if ids is None else ids
        return vectors, check(vectors, names, self.model, self.dimensions)

    def warm(self, texts: Iterable[str], budget: Budget = FREE) -> None:
        """See to it that the vectors of the texts are cached.

        Embeds nothing while the cache cannot keep it. Raises what `embed` raises.
        """
        distinct = list(dict.fromkeys(texts))
        _, found = self._cache.get_many(distinct)
        if self._cache.keeps:
            self.stats.hits += int(found.sum())
            missing = [distinct[i] for i in np.flatnonzero(~found).tolist()]
            self._embed_and_store(missing, budget)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return the distinct texts that are not cached, without fetching a vector."""
        distinct = list(dict.fromkeys(texts))
        there = self._cache.has_many(distinct)
        return [text for text, is_there in zip(distinct, there, strict=True) if not is_there]

    def _vectors_of(self, distinct: Sequence[str], budget: Budget) -> FloatMatrix:
        vectors, found = self._cache.get_many(distinct)
        missing = np.flatnonzero(~found).tolist()
        self.stats.hits += int(found.sum())
        fresh = self._embed_and_store([distinct[i] for i in missing], budget)
        if not found.any():
            return fresh
        if fresh.shape[1] == vectors.shape[1]:
            vectors[missing] = fresh
        elif usable(fresh).any():
            # The model changed under its name: what was cached is another model's.
            return self._embed_and_store(distinct, budget)
        return vectors

    def _embed_and_store(self, texts: Sequence[str], budget: Budget) -> FloatMatrix:
        if not texts:
            return np.empty((0, self.dimensions or 0), dtype=np.float32)
        self.stats.misses += len(texts)
        self.stats.calls += 1
        kept: list[bool] = []
        try:
            vectors = self._embedder.embed(
                texts, keep=lambda part, found: kept.append(self._store(part, found)), budget=budget
            )
        except TransientError as error:
            if all(kept):
                raise
            raise PaidInVainError(str(error), retry_after=error.retry_after) from error
        check_shape(vectors, len(texts), self.model, self.dimensions)
        return vectors

    def _store(self, texts: Sequence[str], vectors: FloatMatrix) -> bool:
        """Cache the vectors that can be used; False: it could not be done."""
        check_shape(vectors, len(texts), self.model, self.dimensions)
        good = np.flatnonzero(usable(vectors)).tolist()
        return self._cache.set_many([texts[i] for i in good], vectors[good])
