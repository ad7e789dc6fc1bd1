"""How much of a difference is the measurement's own noise, and how that is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from pipeline.verdict.builds import Deviation, of_builds, of_index_loss
from pipeline.verdict.noise import flip_rate
from pipeline.verdict.resampling import Differences

MOST_FLIPS = 0.5
"""A flip rate above it would leave no room for the opposite direction."""


class Source(StrEnum):
    """Where a flip rate comes from."""

    EXACT = "exact"
    UNTOUCHED = "untouched"
    CALIBRATED = "calibrated"
    INDEX_LOSS = "index_loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseEstimate:
    """The flip rate per question and direction, and what else is known of the noise.

    `measured`: the number of questions that A/A pairs had. `totals`: each metric's sum over them
    in each round; `differences`: each metric's differences from round to round. Both are empty
    where nothing was calibrated. `loss`: the index loss, a share, where that is all there is.
    `notes`: what is to be said of it, as that it is stale.
    """

    source: Source
    flip_rate: float
    measured: int = 0
    totals: Mapping[str, Sequence[float]] = field(default_factory=dict)
    differences: Mapping[str, Differences] = field(default_factory=dict)
    loss: float = 0.0
    notes: Sequence[str] = ()

    def largest_net(self, metric: str, n: int) -> float:
        """Return the largest net loss between two rounds, in n questions' worth; 0 without any.

        Scaled from the questions that were calibrated, as `deviation` is.
        """
        totals = self.totals.get(metric, ())
        return (max(totals) - min(totals)) * n / self.measured if totals else 0.0

    def deviation(self, metric: str, n: int) -> Deviation | None:
        """Return how much whole measurements of n questions vary; None: not at all, or not known.

        It is taken to grow as n does, which it does where questions move together.
        """
        totals = self.totals.get(metric, ())
        if len(totals) > 1:
            spread = float(np.std(totals, ddof=1)) * n / self.measured
            return of_builds(spread, len(totals)) if spread else None
        if self.source is Source.INDEX_LOSS:
            return of_index_loss(self.loss, self.flip_rate, n)
        return None


def exact(n: int) -> NoiseEstimate:
    """Return the estimate for a search that gives the same answer each time, over n questions.

    As if two A/A pairs had shown no flip: f = 1 / (4 n). See
    `pipeline.verdict.noise.UNKNOWN_EXACT_NEEDED`, the net loss of 4 questions that follows.
    """
    return NoiseEstimate(source=Source.EXACT, flip_rate=flip_rate(0, max(n, 1), 2))


def untouched(n: int) -> NoiseEstimate:
    """Return the estimate for an index that answers as it did: nobody built it anew or wrote to it.

    The same convention as `exact`.
    """
    return replace(exact(n), source=Source.UNTOUCHED)


def from_index_loss(missed: int, n: int, loss: float) -> NoiseEstimate:
    """Return a bound of the noise of an index that was never calibrated, from what it misses.

    Of a question alone the rate of losing it to another build is at most that of missing it:
    `missed` of n are hit by exact search and not as served, and one more is counted, as none seen
    is not none. Questions that builds lose together are bounded by `loss`, a share: exact recall
    less served (see `pipeline.verdict.builds.PART_OF_LOSS`).
    """
    rate = min(MOST_FLIPS, (missed + 1) / max(n, 1))
    return NoiseEstimate(source=Source.INDEX_LOSS, flip_rate=rate, loss=max(loss, 0.0))
