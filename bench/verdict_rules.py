"""The rules that `bench.verdicts` tries side by side. Pure.

Every rule alarms when net lost = lost - won reaches a number of questions. McNemar's number depends
on how many changed, those of calibrated rules on the calibration, the others' on neither.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.verdict_trials import Counts, Trials
from pipeline.verdict import estimate, noise
from pipeline.verdict.noise_rule import answer
from pipeline.verdict.resampling import mcnemar_exact

Needed = NDArray[np.float64]
"""Net lost questions that a rule needs, one a trial or one for all; infinite: it never alarms."""

FEW_ROUNDS = 5
"""Four A/A pairs, the fewest that the product takes for a calibration."""

MAX_DROP = 0.02
MCNEMAR_ALPHA = 0.05
RUNS_A_YEAR = 52

_ROUNDING = 1e-9


class Rule(StrEnum):
    """The rules by the names that the tables give them."""

    PLAIN = "plain"
    MCNEMAR = "McNemar"
    KNOWN = "ours, f known"
    FEW = "ours, 4 A/A"
    MANY = "ours, 12 A/A"
    BOUND = "ours, loss"
    ALONE = "4 A/A, no t"


def needed(trials: Trials, flip_rate: float) -> dict[Rule, Needed]:
    """Return the net loss that each rule needs, but for McNemar's: see `mcnemar_needed`.

    `flip_rate`: the known one. 0 means exact search that was never calibrated. BOUND is left out
    where the trials do not know what the index missed.
    """
    n = trials.n
    known = noise.net_lost_needed(n, flip_rate) if flip_rate else noise.UNKNOWN_EXACT_NEEDED
    few, some_totals = _counted(trials, FEW_ROUNDS), trials.totals[:, :FEW_ROUNDS]
    many = _counted(trials, trials.totals.shape[1])
    few = np.maximum(few, np.ptp(some_totals, axis=1) + 1)
    many = np.maximum(many, np.ptp(trials.totals, axis=1) + 1)
    needs = {
        Rule.PLAIN: np.array(math.floor(MAX_DROP * n + _ROUNDING) + 1.0),
        Rule.KNOWN: np.array(np.inf if known is None else known),
        Rule.FEW: np.maximum(few, student_needed(some_totals)),
        Rule.MANY: np.maximum(many, student_needed(trials.totals)),
        Rule.ALONE: few,
    }
    if trials.missed is not None and trials.found_more is not None:
        pairs = zip(trials.missed.tolist(), trials.found_more.tolist(), strict=True)
        needs[Rule.BOUND] = np.array([_bounded(n, *pair) for pair in pairs])
    return needs


@cache
def _bounded(n: int, missed: int, found_more: int) -> float:
    """Return what the noise rule asks for with nothing but an index loss."""
    noise_of = estimate.from_index_loss(missed, n, (missed - found_more) / n)
    least = answer(n, 0, noise_of, noise.ALPHA).needed
    return math.inf if least is None else least


def _counted(trials: Trials, rounds: int) -> Needed:
    """Return what the trinomial asks for with the flip rate of the first rounds."""
    pairs = rounds - 1
    totals = trials.flips[:, :pairs].sum(axis=1).tolist()
    rates = [noise.flip_rate(flips, trials.n, pairs) for flips in totals]
    return np.array([_least(trials.n, rate) for rate in rates])


@cache
def _least(n: int, flip_rate: float) -> float:
    least = noise.net_lost_needed(n, flip_rate)
    return math.inf if least is None else least


def student_needed(totals: Counts) -> Needed:
    """Return what Student's t asks for after rounds with so many hits each.

    Shape (trials, rounds) in, (trials,) out. The difference of two measurements has twice their
    variance; where that is known from m rounds alone, and hits are normal, it exceeds
    t(m - 1, alpha) times its estimated deviation with chance alpha.
    """
    deviation = math.sqrt(2) * totals.std(axis=1, ddof=1)
    beyond = float(stats.t.isf(noise.ALPHA, totals.shape[1] - 1))
    least: Needed = np.floor(beyond * deviation) + 1
    return least


@cache
def mcnemar_needed(most: int) -> Needed:
    """Return the net loss at which McNemar's p is at most 0.05, by how many changed: 0 to `most`.

    Infinite where even losing all that changed is not enough (5 or fewer).
    """
    least = np.full(most + 1, np.inf)
    for changed in range(most + 1):
        lost = (changed + 1) // 2
        while lost <= changed and mcnemar_exact(lost, changed - lost) > MCNEMAR_ALPHA:
            lost += 1
        if lost <= changed:
            least[changed] = 2 * lost - changed
    return least


def alarm_shares(trials: Trials, needs: Mapping[Rule, Needed]) -> dict[Rule, float]:
    """Return the share of the trials in which each rule alarms."""
    net, changed = trials.lost - trials.won, trials.lost + trials.won
    mcnemar = mcnemar_needed(int(changed.max(initial=0)))[changed]
    now = {**needs, Rule.MCNEMAR: mcnemar}
    return {rule: float((net >= least).mean()) for rule, least in now.items()}


def exact_false_alarms(n: int, flip_rate: float, needs: Mapping[Rule, Needed]) -> dict[Rule, float]:
    """Return the chance that each rule alarms on an unchanged system, from the trinomial itself.

    Where a rule's need depends on its calibration, the mean over the calibrations in `needs`.
    """

    def chance(least: Needed) -> float:
        values, counts = np.unique(least[np.isfinite(least)], return_counts=True)
        tails = [noise.tail(n, flip_rate, flip_rate, int(value)) for value in values]
        return float(np.dot(tails, counts)) / least.size

    found = {rule: chance(least) for rule, least in needs.items()}
    return {**found, Rule.MCNEMAR: _mcnemar_false_alarm(n, flip_rate)}


def _mcnemar_false_alarm(n: int, flip_rate: float) -> float:
    changed = np.arange(n + 1)
    least = mcnemar_needed(n)
    lost = np.where(np.isfinite(least), (changed + least) / 2, n + 1)
    beyond = stats.binom.sf(lost - 1, changed, 0.5)
    return float(stats.binom.pmf(changed, n, 2 * flip_rate) @ beyond)


def a_year(a_run: float, runs: int = RUNS_A_YEAR) -> float:
    """Return the chance of at least one alarm in a year of runs, each with chance `a_run`."""
    return -math.expm1(runs * math.log1p(-a_run)) if a_run < 1 else 1.0
