"""Noise that moves questions together: one build of an index is better or worse as a whole.

The trinomial of `pipeline.verdict.noise` lets each question flip alone. Rebuilt HNSW indexes do
not: their net change varied up to 17 times as much as their flips would give (docs/results.md). So
the net loss between two measurements is also held against how much whole measurements vary.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtr, ndtri, stdtr, stdtrit

PART_OF_LOSS = 0.25
"""Standard deviation of a build's mean, as a part of the index loss, where it was not measured.

It was 0.14 to 0.23 of it on the indexes of docs/results.md.
"""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Standard deviation of the net loss between two measurements of n questions, in questions.

    `rounds`: measurements that it was taken from, 2 or more: Student's t allows for how roughly
    they tell it. None: it is a bound, and the normal distribution holds.
    """

    questions: float
    rounds: int | None = None

    def p_value(self, net_lost: float) -> float:
        """Return the chance that noise alone loses `net_lost` or more; 0 or 1 without deviation."""
        if self.questions == 0:
            return float(net_lost <= 0)
        share = net_lost / self.questions
        # The tail above is that below of the opposite: both distributions are symmetric.
        return float(ndtr(-share) if self.rounds is None else stdtr(self.rounds - 1, -share))

    def needed(self, alpha: float) -> int:
        """Return the least whole loss that noise alone exceeds in at most alpha of runs."""
        below = ndtri(alpha) if self.rounds is None else stdtrit(self.rounds - 1, alpha)
        return math.floor(-float(below) * self.questions) + 1

    def visible_drop(self, n: int, needed: float, power: float) -> float:
        """Return the drop, a share, that reaches `needed` with that power, by the normal.

        With a drop d the net loss has the mean n d and the variance of the noise and n d (1 - d).
        May be above 1: no drop is found.
        """
        z = float(ndtri(power))
        drop = needed / n
        for _ in range(_STEPS):
            spread = math.sqrt(self.questions**2 + n * min(drop, 1) * (1 - min(drop, 1)))
            drop = (needed + z * spread) / n
        return drop


_STEPS = 20
"""Of a fixed point that two or three steps settle to a thousandth of a question."""


def of_builds(totals_deviation: float, rounds: int) -> Deviation:
    """Return what measured builds tell: the difference of two has twice their variance.

    `totals_deviation`: the sample's standard deviation of their totals, in questions.
    """
    return Deviation(math.sqrt(2) * totals_deviation, rounds)


def of_index_loss(loss: float, flip_rate: float, n: int) -> Deviation:
    """Return a bound from an index loss, a share: questions that flip alone, and whole builds."""
    alone = 2 * n * flip_rate
    together = 2 * (PART_OF_LOSS * loss * n) ** 2
    return Deviation(math.sqrt(alone + together))
