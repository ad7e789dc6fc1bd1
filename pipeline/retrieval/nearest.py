"""The nearest of many vectors, for many questions at once, whatever order the vectors come in.

A float32 matrix product finds the few vectors that can be among the nearest; only those are
compared in float64, each pair by a sum of its own. So neither the block a vector came in nor the
order in which a matrix product adds up decides between two that are almost equally near.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.types import FloatMatrix, Ranking

Doubles = NDArray[np.float64]
Columns = NDArray[np.intp]

DIGITS = 12
"""Decimals of a similarity: sums that differ in a processor's last bits are the same."""


class Nearest:
    """The `limit` nearest by cosine, of the vectors offered so far, for each of n questions.

    Ties are ordered by the keys' code points, as PostgreSQL's collation "C" does. Neither the
    questions' vectors, shape (n, d), nor the ones offered may be of length zero or hold NaN.
    Memory: `limit` keys a question and, while b vectors are offered, b * (16 d + 9 n) bytes.
    """

    def __init__(self, questions: FloatMatrix, limit: int) -> None:
        wide = questions.astype(np.float64)
        self._questions: Doubles = wide / _lengths(wide)[:, np.newaxis]
        self._narrow = self._questions.astype(np.float32)
        self._limit = limit
        # The error of a float32 product of two unit vectors, with their own rounding: at most
        # (d + 8) / 2^24 (Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1).
        self._margin = (questions.shape[1] + 8) * 2.0**-24
        self._best: list[list[tuple[float, str]]] = [[] for _ in questions]
        self._floor = np.full(len(questions), -np.inf)

    def offer(self, keys: Sequence[str], vectors: FloatMatrix) -> None:
        """Take b more vectors, shape (b, d), with their keys."""
        wide = vectors.astype(np.float64)
        lengths = _lengths(wide)
        rough = self._narrow @ (vectors / lengths.astype(np.float32)[:, np.newaxis]).T
        for row, columns in self._candidates(rough):
            # A product and a sum along each row: a pair's result hangs on nothing but the pair.
            cosines = (wide[columns] * self._questions[row]).sum(axis=1) / lengths[columns]
            self._keep(row, keys, columns, np.round(cosines.clip(-1, 1), DIGITS))

    def rankings(self) -> list[Ranking]:
        """Return a ranking a question; scores are cosine similarities."""
        return [
            Ranking([key for _, key in best], [-distance for distance, _ in best])
            for best in self._best
        ]

    def _candidates(self, rough: FloatMatrix) -> Iterator[tuple[int, Columns]]:
        """Yield the questions that may have nearer vectors now, and the columns of those."""
        floor = self._floor - self._margin
        not_full = np.flatnonzero(np.isneginf(floor))
        if len(not_full) and rough.shape[1] > self._limit:
            within = np.partition(rough[not_full], -self._limit, axis=1)[:, -self._limit]
            floor[not_full] = within - 2 * self._margin
        rows, columns = np.nonzero(rough >= floor[:, np.newaxis].astype(np.float32))
        touched, starts = np.unique(rows, return_index=True)
        yield from zip(touched.tolist(), np.split(columns, starts)[1:], strict=True)

    def _keep(self, row: int, keys: Sequence[str], columns: Columns, cosines: Doubles) -> None:
        """Merge vectors into a question's nearest."""
        not_below = cosines >= self._floor[row]
        found = zip(cosines[not_below].tolist(), columns[not_below].tolist(), strict=True)
        best = self._best[row]
        best += [(-cosine, keys[column]) for cosine, column in found]
        best.sort()
        del best[self._limit :]
        if len(best) == self._limit:
            self._floor[row] = -best[-1][0]


def _lengths(vectors: Doubles) -> Doubles:
    lengths: Doubles = np.sqrt((vectors * vectors).sum(axis=1))
    return lengths
