"""How near vectors are, by each of pgvector's distances: roughly for many, precisely for a few.

A float32 matrix product finds the few that can be among the nearest, by a bound of its error; only
those are compared in float64, each pair by a sum of its own, so that a pair's result hangs on
nothing but the pair.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from pipeline.corpus.distances import Distance
from pipeline.types import FloatMatrix

Doubles = NDArray[np.float64]
Columns = NDArray[np.intp]

DIGITS = 12
"""Decimals of a similarity: sums that differ in a processor's last bits are the same."""


@dataclass(frozen=True, slots=True)
class Offered:
    """b vectors held against n questions; closeness is higher for what is nearer.

    `rough`: shape (n, b), off by `margin`, shape (n,), at most. `precise(row, columns)` returns the
    closeness of some of the vectors to one question.
    """

    rough: NDArray[np.floating]
    margin: Doubles
    precise: Callable[[int, Columns], Doubles]


class Similarity(Protocol):
    """The closeness of vectors to some questions'."""

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        """Hold b more vectors, shape (b, d), against the questions; `lengths`: see `lengths_of`."""
        ...

    def score(self, closeness: float) -> float:
        """Return the score that SQL would give."""
        ...


class _Cosine:
    """Cosines; neither side may be of length zero."""

    def __init__(self, questions: FloatMatrix) -> None:
        wide = questions.astype(np.float64)
        self._questions: Doubles = wide / _lengths(wide)[:, np.newaxis]
        self._narrow = self._questions.astype(np.float32)
        # The error of a float32 product of two unit vectors, with the roundings of both: at most
        # (d + 8) / 2^24 (Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1).
        self._margin = np.full(len(questions), (questions.shape[1] + 8) * 2.0**-24)

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        rough = self._narrow @ vectors.T
        rough /= lengths.astype(np.float32)

        def precise(row: int, columns: Columns) -> Doubles:
            products = (_wide(vectors, columns) * self._questions[row]).sum(axis=1)
            cosines = products / lengths[columns]
            rounded: Doubles = np.round(cosines.clip(-1, 1), DIGITS)
            return rounded

        return Offered(rough, self._margin, precise)

    def score(self, closeness: float) -> float:
        return closeness


class _InnerProduct:
    """Inner products."""

    def __init__(self, questions: FloatMatrix) -> None:
        self._narrow = questions
        self._questions = questions.astype(np.float64)
        self._lengths = _lengths(self._questions)
        self._error = (questions.shape[1] + 8) * 2.0**-24

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        def precise(row: int, columns: Columns) -> Doubles:
            products: Doubles = (_wide(vectors, columns) * self._questions[row]).sum(axis=1)
            return _rounded(products, self._lengths[row] * lengths[columns])

        margin = self._error * self._lengths * lengths.max(initial=0)
        return Offered(self._narrow @ vectors.T, margin, precise)

    def score(self, closeness: float) -> float:
        return closeness


class _Euclidean:
    """Squared distances below zero: |q|^2 + |v|^2 - 2 q v."""

    def __init__(self, questions: FloatMatrix) -> None:
        self._narrow = questions
        self._questions = questions.astype(np.float64)
        self._lengths = _lengths(self._questions)
        # Three roundings more than a product's, of terms that add up to (|q| + |v|)^2.
        self._error = (questions.shape[1] + 16) * 2.0**-23

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        rough = 2 * (self._narrow @ vectors.T) - (lengths**2).astype(np.float32)
        rough -= (self._lengths**2).astype(np.float32)[:, np.newaxis]

        def precise(row: int, columns: Columns) -> Doubles:
            apart = _wide(vectors, columns) - self._questions[row]
            squares: Doubles = -(apart * apart).sum(axis=1)
            return _rounded(squares, np.abs(squares))

        margin = self._error * (self._lengths + lengths.max(initial=0)) ** 2
        return Offered(rough, margin, precise)

    def score(self, closeness: float) -> float:
        return -float(np.sqrt(-closeness))


class _Taxicab:
    """Sums of differences, below zero: no matrix product has them, so all are precise at once."""

    def __init__(self, questions: FloatMatrix) -> None:
        self._questions = questions.astype(np.float64)

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        del lengths
        near: Doubles = -cdist(self._questions, vectors.astype(np.float64), "cityblock")

        def precise(row: int, columns: Columns) -> Doubles:
            found: Doubles = near[row, columns]
            return _rounded(found, np.abs(found))

        return Offered(near, np.zeros(len(near)), precise)

    def score(self, closeness: float) -> float:
        return closeness


class _Bits:
    """Of bits as 0 and 1, whose float32 products are exact up to 2^24 of them.

    `near` makes the closeness of the bits that both have, and of those of the one and the other
    added up.
    """

    def __init__(self, questions: FloatMatrix, near: Callable[[Doubles, Doubles], Doubles]) -> None:
        self._questions = (questions > 0).astype(np.float32)
        self._ones = self._questions.sum(axis=1, dtype=np.float64)[:, np.newaxis]
        self._near = near

    def offered(self, vectors: FloatMatrix, lengths: Doubles) -> Offered:
        shared = (self._questions @ vectors.T).astype(np.float64)
        # Bits of length n have n^2 ones.
        near = self._near(shared, self._ones + np.rint(lengths**2))
        return Offered(near, np.zeros(len(near)), lambda row, columns: near[row, columns])

    def score(self, closeness: float) -> float:
        return closeness


def _hamming(shared: Doubles, ones: Doubles) -> Doubles:
    """Return the number of bits that differ, below zero."""
    return 2 * shared - ones


def _jaccard(shared: Doubles, ones: Doubles) -> Doubles:
    """Return the share of the bits that either has, that both have; 0 where neither has any."""
    return np.divide(shared, ones - shared, out=np.zeros_like(shared), where=shared > 0)


SIMILARITIES: Mapping[Distance, Callable[[FloatMatrix], Similarity]] = {
    "cosine": _Cosine,
    "inner_product": _InnerProduct,
    "l2": _Euclidean,
    "l1": _Taxicab,
    "hamming": lambda questions: _Bits(questions, _hamming),
    "jaccard": lambda questions: _Bits(questions, _jaccard),
}
"""Made of the questions' vectors, shape (n, d), none of which holds NaN or infinity."""


def lengths_of(vectors: FloatMatrix) -> Doubles:
    """Return the vectors' Euclidean lengths, each by a sum of its own in float64."""
    return _lengths(vectors.astype(np.float64))


def _lengths(vectors: Doubles) -> Doubles:
    lengths: Doubles = np.sqrt((vectors * vectors).sum(axis=1))
    return lengths


def _wide(vectors: FloatMatrix, columns: Columns) -> Doubles:
    return vectors[columns].astype(np.float64)


def _rounded(values: Doubles, scale: Doubles) -> Doubles:
    """Return values rounded to DIGITS digits of what they were added up from."""
    unit = np.exp2(np.ceil(np.log2(np.maximum(scale, np.finfo(float).tiny)))) * 10.0**-DIGITS
    rounded: Doubles = np.round(values / unit) * unit
    return rounded
