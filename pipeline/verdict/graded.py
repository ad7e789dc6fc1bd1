"""The noise gate for outcomes that are more than hit or miss: recall of several keys, ndcg.

The same question as `pipeline.verdict.noise` answers, with the differences that A/A pairs showed
in place of whole questions: each of n questions draws one of them, with a random sign.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pipeline.verdict.resampling import Differences

DRAWS = 100_000
"""Random sums; a p of 0.001 is then known to about 10 %."""

_AT_ONCE = 1 << 22


def sign_flip_noise_p(noise: Differences, n: int, net_lost: float, *, seed: int) -> float:
    """Return the chance that noise alone loses `net_lost` or more over n questions.

    `net_lost` is a sum of differences, in questions' worth. (b + 1) / (m + 1) of m random sums.
    """
    sums = _sums(noise, n, seed)
    return (int(np.count_nonzero(sums >= net_lost - 1e-9)) + 1) / (len(sums) + 1)


def net_lost_needed(noise: Differences, n: int, alpha: float, *, seed: int) -> float:
    """Return the least sum that noise alone reaches in a share of at most alpha of runs."""
    return float(np.quantile(_sums(noise, n, seed), 1 - alpha, method="higher"))


def visible_drop(noise: Differences, n: int, needed: float, power: float = 0.8) -> float | None:
    """Return the smallest mean drop, a share, that is found with that power; None: not even 1.

    By the normal approximation, for a drop that takes whole questions: with a drop d the sum has
    the mean n d and the variance n (v + d (1 - d)), v that of the noise.
    """
    variance = float((noise.values**2) @ noise.counts / noise.n)
    z = float(norm.ppf(power))
    drops = np.linspace(0, 1, 10_001)
    reached = n * drops - z * np.sqrt(n * (variance + drops * (1 - drops))) >= needed
    return float(drops[reached.argmax()]) if reached.any() else None


def _sums(noise: Differences, n: int, seed: int) -> NDArray[np.float64]:
    """Return random sums of n differences with random signs, and one flip more than was seen.

    The flip added, of the largest size, is `noise.flip_rate`'s: none seen is not none.
    """
    sizes = np.abs(np.append(noise.values, 1.0))
    counts = np.append(noise.counts, 1).astype(np.float64)
    values = np.concatenate([sizes, -sizes])
    chances = np.concatenate([counts, counts]) / (2 * counts.sum())
    generator = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // len(values))
    parts = [
        generator.multinomial(n, chances, size=min(rows, DRAWS - start)) @ values
        for start in range(0, DRAWS, rows)
    ]
    return np.concatenate(parts)
