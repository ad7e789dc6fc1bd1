"""The nearest of many vectors, for many questions at once, whatever order the vectors come in.

Neither the block that a vector came in nor the order in which a matrix product adds up decides
between two that are almost equally near: see `pipeline.retrieval.similarities`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.corpus.distances import Distance
from pipeline.retrieval.similarities import (
    SIMILARITIES,
    Columns,
    Doubles,
    Offered,
    lengths_of,
)
from pipeline.types import FloatMatrix, Ranking

_NARROW = 2.0**-22
"""More than what rounding a closeness to float32 changes it by, as a share of it."""


class Nearest:
    """The `limit` nearest by a distance, of the vectors offered so far, for each of n questions.

    Ties are ordered by the keys' code points, as PostgreSQL's collation "C" does. Neither the
    questions' vectors, shape (n, d), nor the ones offered may hold NaN or infinity; for cosines
    none may be of length zero. Memory: `limit` keys a question and, while b vectors are offered,
    b * (8 d + 9 n) bytes, or with l1 and bits b * (8 d + 16 n).
    """

    def __init__(self, questions: FloatMatrix, limit: int, distance: Distance = "cosine") -> None:
        self._similarity = SIMILARITIES[distance](questions)
        self._limit = limit
        self._best: list[list[tuple[float, str]]] = [[] for _ in questions]
        self._floor = np.full(len(questions), -np.inf)

    def offer(
        self, keys: Sequence[str], vectors: FloatMatrix, lengths: Doubles | None = None
    ) -> None:
        """Take b more vectors, shape (b, d), with their keys and, if known, `lengths_of` them."""
        known = lengths_of(vectors) if lengths is None else lengths
        offered = self._similarity.offered(vectors, known)
        for row, columns in self._candidates(offered):
            self._keep(row, keys, columns, offered.precise(row, columns))

    def rankings(self) -> list[Ranking]:
        """Return a ranking a question; scores are those of `VectorRetriever`."""
        score = self._similarity.score
        return [
            Ranking([key for _, key in best], [score(-distance) for distance, _ in best])
            for best in self._best
        ]

    def _candidates(self, offered: Offered) -> Iterator[tuple[int, Columns]]:
        """Yield the questions that may have nearer vectors now, and the columns of those."""
        rough, margin = offered.rough, offered.margin
        floor = self._floor - margin
        not_full = np.flatnonzero(np.isneginf(floor))
        if len(not_full) and rough.shape[1] > self._limit:
            within = np.partition(rough[not_full], -self._limit, axis=1)[:, -self._limit]
            floor[not_full] = within - 2 * margin[not_full]
        known = np.isfinite(floor)
        floor[known] -= _NARROW * np.abs(floor[known])
        rows, columns = np.nonzero(rough >= floor[:, np.newaxis].astype(rough.dtype))
        touched, starts = np.unique(rows, return_index=True)
        yield from zip(touched.tolist(), np.split(columns, starts)[1:], strict=True)

    def _keep(self, row: int, keys: Sequence[str], columns: Columns, near: Doubles) -> None:
        """Merge vectors into a question's nearest."""
        not_below = near >= self._floor[row]
        found = zip(near[not_below].tolist(), columns[not_below].tolist(), strict=True)
        best = self._best[row]
        best += [(-closeness, keys[column]) for closeness, column in found]
        best.sort()
        del best[self._limit :]
        if len(best) == self._limit:
            self._floor[row] = -best[-1][0]
