"""Paired statistics from the distinct differences of two runs and how often each occurs.

A metric takes few values, so the differences of a million questions are some hundred distinct
ones, which SQL's GROUP BY counts. Drawing a resample of n questions with replacement and counting
its values is one multinomial draw; flipping the signs of c equal differences is one binomial draw.
A test then costs what the distinct differences cost, whatever n is.

Random figures come from NumPy's default generator and a seed: equal input, seed and NumPy give
equal figures.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln

from pipeline.verdict.compare import Change

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Alternative = Literal["two-sided", "less"]

_CELLS = 512
_EXACT_SUMS = 1 << 16
_DRAWN_AT_ONCE = 1 << 20
_TIE_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Differences:
    """The distinct differences, ascending, of shape (d,), and how many questions have each."""

    values: Floats
    counts: Counts

    @classmethod
    def of(cls, values: ArrayLike, counts: ArrayLike) -> Self:
        """Take finite values, in any order, and their counts; equal values are added up.

        The order is made canonical, as SQL's is not fixed and a seeded draw depends on it. Raises
        ValueError for unequal shapes, values that are not finite, negative counts, or no question.
        """
        given = np.asarray(values, dtype=np.float64)
        number = np.asarray(counts, dtype=np.int64)
        if given.ndim != 1 or given.shape != number.shape:
            raise ValueError(f"values and counts differ in shape: {given.shape}, {number.shape}")
        if not np.isfinite(given).all() or (number < 0).any():
            raise ValueError("a difference is not finite, or a count is below zero")
        used = number > 0
        if not used.any():
            raise ValueError("there is no question to compare")
        distinct, place = np.unique(given[used], return_inverse=True)
        totals = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(totals, place, number[used])
        return cls(distinct, totals)

    @classmethod
    def from_raw(cls, differences: ArrayLike) -> Self:
        """Take one difference a question, of shape (n,). Raises ValueError as `of` does."""
        raw = np.asarray(differences, dtype=np.float64)
        return cls.of(raw, np.ones(raw.shape, dtype=np.int64))

    @property
    def n(self) -> int:
        """Return the number of questions."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Return the mean difference, in the metric's own unit."""
        return float(self.values @ self.counts / self.n)


def bootstrap_interval(
    differences: Differences, *, seed: int, level: float = 0.95, resamples: int = 10_000
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean, low and high, in the metric's unit.

    Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. More than 512 distinct
    differences are first gathered into 512 cells of equal width, each standing at its members'
    mean: the centre stays, and the variance loses at most a quarter of a squared width (for
    differences between -1 and 1: 4e-6). Equal differences give two equal bounds.
    """
    if len(differences.values) == 1:
        value = float(differences.values[0])
        return value, value
    values, counts = _gathered(differences.values, differences.counts)
    n = differences.n
    generator = np.random.default_rng(seed)
    means = np.concatenate(
        [
            generator.multinomial(n, counts / n, size=draws) @ values / n
            for draws in _batches(resamples, len(values))
        ]
    )
    outside = (1 - level) / 2
    low, high = np.quantile(means, [outside, 1 - outside])
    return float(low), float(high)


def sign_flip_p(
    differences: Differences,
    *,
    seed: int,
    resamples: int = 10_000,
    alternative: Alternative = "two-sided",
) -> float:
    """Return the p-value of the paired sign-flip test that the differences centre on zero.

    Fisher's test (The Design of Experiments, 1935, section 21): without an effect each difference
    is as likely with either sign. "less" asks whether the mean fell. Exact while the sums that
    can come about stay few (16 non-zero differences of any size, 65,535 of one size); beyond
    that Monte Carlo, (b + 1) / (m + 1) with m resamples (Good, Permutation Tests). p = 1 when no
    difference is non-zero: zeros carry no sign.
    """
    moved = differences.values != 0
    if not moved.any():
        return 1.0
    values, counts = differences.values[moved], differences.counts[moved]
    values = values / np.abs(values).max()
    sizes, numbers = _by_size(values, counts)
    observed = float(values @ counts)
    null = _all_sums(sizes, numbers)
    if null is not None:
        sums, chances = null
        return min(1.0, float(chances[_as_extreme(sums, observed, alternative)].sum()))
    sums = _drawn_sums(sizes, numbers, resamples, seed)
    beyond = int(np.count_nonzero(_as_extreme(sums, observed, alternative)))
    return (beyond + 1) / (resamples + 1)


def with_statistics(change: Change, differences: Differences, seed: int) -> Change:
    """Return a change with its interval and p-value; `differences` are now minus before."""
    return replace(
        change,
        interval=bootstrap_interval(differences, seed=seed),
        p=sign_flip_p(differences, seed=seed),
    )


def mcnemar_exact(lost: int, won: int) -> float:
    """Return McNemar's two-sided exact p: of lost + won changed questions half should be lost.

    Twice the binomial tail from the larger count on, at most 1 (McNemar 1947; the exact form is
    the sign test). Raises ValueError for negative counts.
    """
    if lost < 0 or won < 0:
        raise ValueError(f"{lost} lost and {won} won: counts cannot be below zero")
    if lost == won:
        return 1.0
    larger, smaller = max(lost, won), min(lost, won)
    return min(1.0, 2 * float(betainc(larger, smaller + 1, 0.5)))


def seed_of(run_a: int | str, run_b: int | str, metric: str) -> int:
    """Return a 64-bit seed from what is compared: the same two runs always give the same figures.

    Python's own `hash` differs between processes.
    """
    identity = "\0".join((str(run_a), str(run_b), metric))
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8])


def _gathered(values: Floats, counts: Counts) -> tuple[Floats, Counts]:
    """Return at most `_CELLS` values: the means of cells of equal width, and their counts."""
    if len(values) <= _CELLS:
        return values, counts
    low, high = values.min(), values.max()
    cells = ((values - low) / (high - low) * _CELLS).astype(np.int64).clip(max=_CELLS - 1)
    inside = np.bincount(cells, weights=counts, minlength=_CELLS)
    sums = np.bincount(cells, weights=counts * values, minlength=_CELLS)
    filled = inside > 0
    return sums[filled] / inside[filled], inside[filled].astype(np.int64)


def _batches(resamples: int, width: int) -> Iterator[int]:
    """Split the resamples so that a batch of rows of that width stays in a few megabytes.

    The generator's stream does not depend on the split.
    """
    rows = max(1, _DRAWN_AT_ONCE // width)
    for start in range(0, resamples, rows):
        yield min(rows, resamples - start)


def _by_size(values: Floats, counts: Counts) -> tuple[Floats, Counts]:
    """Return the distinct |difference| and how many questions have each, in either direction."""
    by_size = Differences.of(np.abs(values), counts)
    return by_size.values, by_size.counts


def _all_sums(sizes: Floats, counts: Counts) -> tuple[Floats, Floats] | None:
    """Return every sum that flipped signs can give and its probability; None when too many.

    c differences of one size a add a (2 B - c) with B binomial(c, 1/2): the sizes are convolved
    one after the other, and equal sums merged.
    """
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        if len(sums) * (count + 1) > _EXACT_SUMS:
            return None
        plus = np.arange(count + 1)
        steps, weights = size * (2 * plus - count), _fair_binomial_pmf(plus, count)
        sums, chances = _merged(np.add.outer(sums, steps), np.multiply.outer(chances, weights))
    return sums, chances


def _fair_binomial_pmf(successes: Counts, n: int) -> Floats:
    logs = -gammaln(successes + 1) - gammaln(n - successes + 1)
    weights = np.exp(logs - logs.max())
    pmf: Floats = weights / weights.sum()
    return pmf


def _merged(sums: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Add up the chances of sums that are equal but for rounding."""
    _, first, place = np.unique(
        sums.ravel().round(_TIE_DIGITS), return_index=True, return_inverse=True
    )
    totals: Floats = np.bincount(place, weights=chances.ravel()).astype(np.float64)
    return sums.ravel()[first], totals


def _drawn_sums(sizes: Floats, counts: Counts, resamples: int, seed: int) -> Floats:
    """Return random sums under flipped signs, of shape (resamples,).

    Many sizes are gathered by their squares, which keeps the variance of the sum as it is.
    """
    squares, counts = _gathered(sizes**2, counts)
    sizes = np.sqrt(squares)
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [
            (2 * generator.binomial(counts, 0.5, size=(draws, len(sizes))) - counts) @ sizes
            for draws in _batches(resamples, len(sizes))
        ]
    )


def _as_extreme(sums: Floats, observed: float, alternative: Alternative) -> NDArray[np.bool_]:
    """Return which sums are at least as extreme as the observed; ties count, but for rounding."""
    tie = 10.0**-_TIE_DIGITS
    if alternative == "less":
        return sums <= observed + tie
    return np.abs(sums) >= abs(observed) - tie
