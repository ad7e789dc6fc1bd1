"""The noise gate for outcomes that are more than hit or miss: recall of several keys, ndcg.

The same question as `pipeline.verdict.noise` answers, with the differences that A/A pairs showed
in place of whole questions: each of n questions draws one of them, with a random sign (Fisher's
sign flips). The distribution of their sum is computed, not sampled: on a fine grid, by the power
of its characteristic function. What does not stand on the grid is rounded so that noise grows.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pipeline.verdict.resampling import Differences

Floats = NDArray[np.float64]

GRID = 2520
"""Steps of the grid to a question: fractions with denominators up to 10 stand on it exactly."""

_ROUNDING = 1e-6

_DEVIATIONS = 12
_LARGE_JUMPS = 20


@dataclass(frozen=True)
class NoiseSum:
    """The sum of n questions' noise, in questions' worth; above zero is a loss.

    `noise` are the differences of one metric over A/A pairs. One flip of a whole question is
    added to them, as `noise.flip_rate` adds one: none seen is not none.
    """

    noise: Differences
    n: int

    def p_value(self, net_lost: float) -> float:
        """Return the chance that noise alone loses `net_lost` or more; to about 1e-12."""
        return self._tail_from(math.floor(net_lost * GRID + _ROUNDING))

    def needed(self, alpha: float) -> float:
        """Return the least loss above zero that noise alone reaches in at most alpha of runs."""
        losses = self._tails[self._zero + 1 :]
        rare = np.flatnonzero(losses <= alpha)
        return (int(rare[0]) + 1) / GRID

    def visible_drop(self, needed: float, power: float) -> float | None:
        """Return the smallest mean drop, a share, that is found with that power; None: not even 1.

        By the normal approximation, for a drop that takes whole questions: with a drop d the sum
        has the mean n d and the variance n (v + d (1 - d)), v that of the noise.
        """
        variance = float(self._sizes**2 @ self._chances) / GRID**2
        z = float(ndtri(power))
        drops = np.linspace(0, 1, 10_001)
        spread = np.sqrt(self.n * (variance + drops * (1 - drops)))
        found = self.n * drops - z * spread >= needed
        return float(drops[found.argmax()]) if found.any() else None

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Sizes of the differences, in steps of the grid."""
        steps = np.ceil(np.abs(self.noise.values) * GRID - _ROUNDING)
        return np.append(steps, GRID).astype(np.int64)

    @cached_property
    def _chances(self) -> Floats:
        counts = np.append(self.noise.counts, 1).astype(np.float64)
        chances: Floats = counts / counts.sum()
        return chances

    @cached_property
    def _zero(self) -> int:
        """Place of the sum 0 on the grid: half its length, a power of two that holds the sums."""
        deviation = math.sqrt(self.n * float(self._sizes**2 @ self._chances))
        reach = _DEVIATIONS * deviation + _LARGE_JUMPS * GRID
        return 1 << math.ceil(math.log2(reach))

    @cached_property
    def _tails(self) -> Floats:
        """P(sum >= each step of the grid), from the smallest sum to the largest."""
        length = 2 * self._zero
        one = np.zeros(length)
        np.add.at(one, self._sizes, self._chances / 2)
        np.add.at(one, -self._sizes, self._chances / 2)
        # Real, as the distribution is symmetric; sums are then wrapped around the grid's ends.
        sums = np.fft.irfft(np.fft.rfft(one).real ** self.n, length)
        ordered = np.fft.fftshift(sums).clip(min=0)
        tails: Floats = np.cumsum(ordered[::-1])[::-1]
        return tails

    def _tail_from(self, step: int) -> float:
        place = step + self._zero
        if place <= 0:
            return 1.0
        return min(1.0, float(self._tails[place])) if place < len(self._tails) else 0.0
