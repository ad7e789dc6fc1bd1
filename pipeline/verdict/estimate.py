"""How much of a difference is the measurement's own noise, and how that is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.verdict.noise import flip_rate
from pipeline.verdict.resampling import Differences

MOST_FLIPS = 0.5
"""A flip rate above it would leave no room for the opposite direction."""


class Source(StrEnum):
    """Where a flip rate comes from."""

    EXACT = "exact"
    CALIBRATED = "calibrated"
    INDEX_LOSS = "index_loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseEstimate:
    """The flip rate per question and direction, and what else A/A pairs showed.

    `largest_net`: the largest net loss between two measurements of the same thing, in questions.
    `differences`: what each metric's differences were there; empty where nothing was measured.
    `notes`: what is to be said of it, as that it is stale.
    """

    source: Source
    flip_rate: float
    largest_net: int = 0
    differences: Mapping[str, Differences] = field(default_factory=dict)
    notes: Sequence[str] = ()


def exact(n: int) -> NoiseEstimate:
    """Return the estimate for a search that gives the same answer each time, over n questions.

    As if two A/A pairs had shown no flip: f = 1 / (4 n). See
    `pipeline.verdict.noise.UNKNOWN_EXACT_NEEDED`, the net loss of 4 questions that follows.
    """
    return NoiseEstimate(source=Source.EXACT, flip_rate=flip_rate(0, max(n, 1), 2))


def from_index_loss(missed: int, n: int) -> NoiseEstimate:
    """Return an upper bound of the flip rate: the share of questions that the index misses.

    A question is lost to another build of the index only where that one misses it, so the rate of
    losing is at most that of missing. `missed` of n are hit by exact search and not as served;
    one more is counted, as none seen is not none.
    """
    return NoiseEstimate(
        source=Source.INDEX_LOSS, flip_rate=min(MOST_FLIPS, (missed + 1) / max(n, 1))
    )
