"""Vectors of texts by any model, each embedded once and kept beside production."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from db import side_vectors
from pipeline.corpus.evidence import text_hash
from pipeline.embedding.base import Budget, Embedder, check_shape, usable
from pipeline.embedding.build import source_of
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import PermanentError
from pipeline.types import FloatMatrix
from workers.context import Context


@dataclass(slots=True)
class Spent:
    """What embedding took: texts that were sent to the model, and seconds of waiting for it."""

    texts: int = 0
    seconds: float = 0.0


class SideVectors:
    """The vectors of one model, of questions or of chunks.

    A vector that came is kept at once, so that a comparison that was broken off goes on where it
    was. Those of the local model are not: making them is cheaper than keeping them.
    """

    def __init__(
        self, ctx: Context, embedding: EmbeddingSettings, input_type: InputType, budget: Budget
    ) -> None:
        self.spent = Spent()
        self._ctx = ctx
        self._embedding = embedding
        self._input_type = input_type
        self._budget = budget
        self._kept = embedding.provider != "local"
        length = embedding.dimensions or "default"
        self._source = f"{source_of(embedding, input_type)} {length}"
        self._embedder: Embedder | None = None

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct texts that have no vector yet; blank ones never get one."""
        distinct = [text for text in dict.fromkeys(texts) if text.strip()]
        if not self._kept:
            return distinct
        hashes = [text_hash(text) for text in distinct]
        with self._ctx.database.begin() as session:
            known = side_vectors.known(session, self._source, hashes)
        return [text for text, one in zip(distinct, hashes, strict=True) if one not in known]

    def of(self, texts: Sequence[str]) -> FloatMatrix:
        """Return vectors of shape (n, d), float32, in the order of the n texts.

        A text that gets none (blank, or too long) has a row of NaN or zeros; with no vector at all
        d may be 0. Raises what the embedder raises: what came before that is kept.
        """
        distinct = list(dict.fromkeys(texts))
        hashes = {text: text_hash(text) for text in distinct}
        found = self._stored(list(hashes.values()))
        lacking = [text for text in distinct if hashes[text] not in found]
        fresh = self._embed(lacking)
        found |= {hashes[text]: row for text, row in zip(lacking, fresh, strict=True)}
        return _in_rows([found[hashes[text]] for text in texts])

    def _stored(self, hashes: Sequence[str]) -> dict[str, side_vectors.Vector]:
        if not self._kept:
            return {}
        with self._ctx.database.begin() as session:
            return side_vectors.found(session, self._source, hashes)

    def _embed(self, texts: Sequence[str]) -> FloatMatrix:
        if not texts:
            return np.empty((0, 0), np.float32)
        if self._embedder is None:
            self._embedder = self._ctx.patient_embedder(self._embedding, self._input_type)
        keep = self._keep if self._kept else None
        started = time.monotonic()
        try:
            vectors = self._embedder.embed(texts, keep=keep, budget=self._budget)
        finally:
            self.spent.seconds += time.monotonic() - started
        self.spent.texts += len(texts)
        check_shape(vectors, len(texts), self._embedder.model, self._embedder.dimensions)
        return vectors

    def _keep(self, texts: Sequence[str], vectors: FloatMatrix) -> None:
        rows = np.flatnonzero(usable(vectors)).tolist()
        with self._ctx.database.begin() as session:
            side_vectors.keep(
                session, self._source, {text_hash(texts[row]): vectors[row] for row in rows}
            )


def _in_rows(found: Sequence[side_vectors.Vector]) -> FloatMatrix:
    """Return the vectors as one matrix; a row of NaN stands for one without numbers."""
    lengths = {len(vector) for vector in found} - {0}
    if len(lengths) > 1:
        shown = " and ".join(map(str, sorted(lengths)))
        raise PermanentError(
            f"the model gave vectors of {shown} dimensions: it is another one by now under the same"
            " name; --forget deletes what was kept"
        )
    rows = np.full((len(found), max(lengths, default=0)), np.nan, np.float32)
    for number, vector in enumerate(found):
        if len(vector):
            rows[number] = vector
    return rows
