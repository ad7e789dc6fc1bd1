"""Candidates held against a baseline over the same questions: how much better, and is it luck.

Pure: what was measured comes in, figures go out. Used wherever settings, models or chunkings are
tried side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.verdict.resampling import (
    Differences,
    bootstrap_interval,
    seed_of,
    sign_flip_p,
)

Floats = NDArray[np.float64]

LEVEL = 0.95
"""How sure the intervals of a table are, all together."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do it, and what was measured.

    `values` maps a measure, as `ndcg@10`, to one value a question, of shape (n,): the same
    questions in the same order for all candidates. `facts` are what else is worth knowing, by the
    name that a table gives them: a price, dimensions, seconds; they are shown, not compared.
    """

    name: str
    values: Mapping[str, Floats]
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure's mean less the baseline's, over the same questions.

    `interval` is where the difference would lie for other questions of this kind, in the
    measure's unit. `p` is the two-sided sign-flip p-value of no difference, of this one alone.
    `better` and `worse` count the questions that moved.
    """

    mean: float
    interval: tuple[float, float]
    p: float
    better: int
    worse: int

    @property
    def is_above_luck(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.interval[0] > 0


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate's means and, by measure, its differences; the baseline has none."""

    name: str
    means: Mapping[str, float]
    differences: Mapping[str, Difference]
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a comparison of candidates found, over `n` questions; the first row is the baseline.

    `measure` is the one that decides. `best` is the candidate with its highest mean, where that is
    better than the baseline by more than luck; else None.
    """

    n: int
    measure: str
    rows: Sequence[Row]
    best: str | None


def compare(
    candidates: Sequence[Candidate], *, measure: str | None = None, seed: int = 0
) -> Experiment:
    """Hold each candidate against the first; `measure` decides, the first one by default.

    The more candidates, the likelier the best of them is so by chance. So the intervals are
    widened by Bonferroni's rule: each is of level 1 - 0.05 / (candidates beside the baseline), and
    all of them hold together in 95 of 100 experiments. Equal input and seed give equal figures.

    Raises ValueError where there is no candidate or no question, names are the same, or candidates
    differ in their measures or in the number of questions.
    """
    _check(candidates)
    baseline, others = candidates[0], candidates[1:]
    level = 1 - (1 - LEVEL) / max(1, len(others))
    deciding = measure or next(iter(baseline.values))
    if deciding not in baseline.values:
        raise ValueError(f"{deciding} was not measured; there are {', '.join(baseline.values)}")
    rows = [
        _row(baseline, {}),
        *(_row(each, _differences(each, baseline, level, seed)) for each in others),
    ]
    return Experiment(len(baseline.values[deciding]), deciding, rows, _best(rows, deciding))


def _check(candidates: Sequence[Candidate]) -> None:
    if not candidates:
        raise ValueError("there is nothing to compare")
    if len({each.name for each in candidates}) < len(candidates):
        raise ValueError("two candidates have one name")
    first = candidates[0]
    shapes = {values.shape for each in candidates for values in each.values.values()}
    if any(each.values.keys() != first.values.keys() for each in candidates):
        raise ValueError("candidates differ in what was measured")
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(f"candidates differ in their questions: shapes {sorted(shapes)}")
    if shapes == {(0,)}:
        raise ValueError("there is no question to compare")


def _row(candidate: Candidate, differences: Mapping[str, Difference]) -> Row:
    means = {measure: float(values.mean()) for measure, values in candidate.values.items()}
    return Row(candidate.name, means, differences, candidate.facts)


def _differences(
    candidate: Candidate, baseline: Candidate, level: float, seed: int
) -> dict[str, Difference]:
    return {
        measure: _difference(
            values - baseline.values[measure],
            level,
            seed_of(f"{seed} {baseline.name}", candidate.name, measure),
        )
        for measure, values in candidate.values.items()
    }


def _difference(moved: Floats, level: float, seed: int) -> Difference:
    differences = Differences.from_raw(moved)
    return Difference(
        mean=differences.mean,
        interval=bootstrap_interval(differences, seed=seed, level=level),
        p=sign_flip_p(differences, seed=seed),
        better=int(np.count_nonzero(moved > 0)),
        worse=int(np.count_nonzero(moved < 0)),
    )


def _best(rows: Sequence[Row], measure: str) -> str | None:
    """Return the name of the row with the highest mean where its lead is more than luck."""
    best = max(rows, key=lambda row: row.means[measure])
    if measure in best.differences and best.differences[measure].is_above_luck:
        return best.name
    return None
