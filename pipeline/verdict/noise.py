"""The exact noise gate: how often would a system that did not change lose this many questions.

Of n paired questions each is lost with probability p_lost, won with p_won, else unchanged,
independently. Net lost D = lost - won; under "nothing changed" p_lost = p_won = f, the flip rate
per question and direction. Real noise is over-dispersed (a rebuilt index moves questions
together), so a caller with A/A pairs also asks for more than the largest net loss seen in them.
"""

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, xlog1py, xlogy

Floats = NDArray[np.float64]

ALPHA = 0.001
"""Chance of a false alarm a run: with weekly runs at most 1 - 0.999^52, about 5 %, a year."""

UNKNOWN_EXACT_NEEDED = 4
"""Net lost questions needed on exact recall when its flip rate was never measured.

A convention, with this ground: it is what two A/A pairs without a single flip would ask for.
They give f = 1 / (4 n), a quarter of a question expected to be lost, and `net_lost_needed` is then
4 at every n from 5 on; in large sets it stays 4 while n f is between 0.21 and 0.48.
"""

_MAX_FLIP_RATE = 0.5
_NEGLIGIBLE = 1e-20
_DROP_STEP = 1e-4
_DISPLAY_STEPS = 200
_ROUNDING = 1e-9


def tail(n: int, p_lost: float, p_won: float, at_least: int) -> float:
    """Return P(D >= at_least) for n questions: the trinomial's tail, to about 9 digits.

    Conditional on how many questions changed, the number lost is binomial (McNemar's
    conditioning); the tail is the sum over that number, itself binomial. All terms are positive,
    so that small tails keep their digits. Raises ValueError for impossible n or probabilities.
    """
    _check(n, p_lost, p_won)
    p_changed = min(1.0, p_lost + p_won)
    share_lost = p_lost / (p_lost + p_won) if p_changed else 0.5
    changed = _likely_counts(n, p_changed)
    lost_at_least = np.ceil((changed + at_least) / 2)
    terms = _binomial_pmf(changed, n, p_changed) * _binomial_tail(
        lost_at_least, changed, share_lost
    )
    return min(1.0, float(terms.sum()))


def p_value(n: int, flip_rate: float, net_lost: int) -> float:
    """Return the one-sided p: the chance that noise alone loses `net_lost` or more of n."""
    return tail(n, flip_rate, flip_rate, net_lost)


def net_lost_needed(n: int, flip_rate: float, alpha: float = ALPHA) -> int | None:
    """Return the smallest c > 0 with P(D >= c) <= alpha under noise, in questions.

    None when noise loses all n questions more often than that. A flip rate of 0 gives 1, as any
    loss is then real: a claim that no number of A/A pairs supports, see `flip_rate`.
    """
    candidates = range(1, n + 1)
    place = bisect_left(candidates, -alpha, key=lambda c: -p_value(n, flip_rate, c))
    return candidates[place] if place < n else None


def power(n: int, flip_rate: float, drop: float, needed: int) -> float:
    """Return the chance that a true drop (a share, 0.03 = 3 points) loses `needed` or more.

    Noise goes on: p_lost = flip_rate + drop, p_won = flip_rate. A drop above 1 - 2 flip_rate is
    cut to that, the most that leaves room for the noise.
    """
    return tail(n, flip_rate + min(drop, _largest_drop(flip_rate)), flip_rate, needed)


def visible_drop(n: int, flip_rate: float, needed: int, power: float = 0.8) -> float | None:
    """Return the smallest true drop (a share) found with that power, to 1e-4 and never below it.

    None when even the largest drop is not: the set is too small, or too noisy, to show any.
    """

    def found(drop: float) -> bool:
        return tail(n, flip_rate + drop, flip_rate, needed) >= power

    low, high = 0.0, _largest_drop(flip_rate)
    if not found(high):
        return None
    while high - low > _DROP_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def half_points(drop: float) -> float:
    """Return a drop (a share) in points, rounded up to the half point: 0.0312 gives 3.5."""
    return math.ceil(drop * _DISPLAY_STEPS - _ROUNDING) / 2


def flip_rate(flips: int, n: int, pairs: int) -> float:
    """Return the flip rate per question and direction: (flips + 1) / (2 n pairs), at most 0.5.

    `flips` counts the questions whose hit changed, in either direction, over all A/A pairs (two
    measurements of the same thing) of n questions. Zero flips seen is not f = 0: with no flip in
    N chances a rate up to about 3 / N is still likely (the rule of three), and f = 0 would make
    one lost question an alarm. The added flip keeps f above zero, less so the more was measured.
    Raises ValueError when there is nothing to divide by, or more flips than chances.
    """
    chances = n * pairs
    if n < 1 or pairs < 1 or not 0 <= flips <= chances:
        raise ValueError(f"{flips} flips of {n} questions in {pairs} A/A pairs cannot be")
    return min(_MAX_FLIP_RATE, (flips + 1) / (2 * chances))


def _check(n: int, p_lost: float, p_won: float) -> None:
    if n < 0:
        raise ValueError(f"n is {n}: questions cannot be fewer than none")
    if not (p_lost >= 0 and p_won >= 0 and p_lost + p_won <= 1 + _ROUNDING):
        raise ValueError(f"lost with {p_lost} and won with {p_won} are no probabilities together")


def _largest_drop(flip_rate: float) -> float:
    if not 0 <= flip_rate <= _MAX_FLIP_RATE:
        raise ValueError(f"flip rate {flip_rate} is outside 0 to {_MAX_FLIP_RATE}")
    return 1 - 2 * flip_rate


def _likely_counts(n: int, p: float) -> Floats:
    """Return the counts 0..n around the mean, without the ends that hold under 1e-20 together.

    Bernstein's inequality: P(|X - n p| >= t) <= 2 exp(-t^2 / (2 (n p (1 - p) + t / 3))); solved
    for t. Some 4,000 counts at n = 1,000,000 and p = 0.06, so memory hardly grows with n.
    """
    exponent = math.log(2 / _NEGLIGIBLE)
    reach = exponent / 3 + math.sqrt((exponent / 3) ** 2 + 2 * n * p * (1 - p) * exponent)
    first = max(0, math.floor(n * p - reach))
    last = min(n, math.ceil(n * p + reach))
    return np.arange(first, last + 1, dtype=np.float64)


def _binomial_pmf(counts: Floats, n: int, p: float) -> Floats:
    """Return P(X = count); their sum is 1, which takes out the rounding of the log-gammas."""
    logs = (
        xlogy(counts, p) + xlog1py(n - counts, -p) - gammaln(counts + 1) - gammaln(n - counts + 1)
    )
    weights = np.exp(logs - logs.max())
    pmf: Floats = weights / weights.sum()
    return pmf


def _binomial_tail(at_least: Floats, n: Floats, p: float) -> Floats:
    """Return P(X >= at_least): the regularised incomplete beta function I_p(a, n - a + 1)."""
    inside = np.clip(at_least, 1, np.maximum(n, 1))
    values: Floats = betainc(inside, np.maximum(n, 1) - inside + 1, p)
    return np.where(at_least <= 0, 1.0, np.where(at_least > n, 0.0, values))
