"""The formulas: from a table of grades, n questions by k ranks, to the measures at every rank.

Sums along the ranks are cumulative, so that all cutoffs share them and each question is added up in
rank order, by itself. A matrix product would be as fast, but its last bit depends on how many
questions stand beside it: the same question could then score differently in another shard.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.scoring.measures import Measure

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GradeTable:
    """What n rankings, cut to k, hold. Shapes are (n, k) by rank and (n,) by question.

    `grades` has NaN where a slot is unjudged or empty; `repeated` marks the slots whose key stood
    higher up already. `ideal` has the positive grades of the expected keys, best first, then zeros.
    `returned` counts the slots that are filled, `relevant` the expected keys whose grade is at
    least `threshold`: one or more for every question, or its recall is NaN.
    """

    grades: Floats
    repeated: Flags
    ideal: Floats
    returned: Counts
    relevant: Counts
    threshold: int

    @cached_property
    def ranks(self) -> Counts:
        """The ranks 1 to k, shape (k,)."""
        return np.arange(1, self.grades.shape[1] + 1)

    @cached_property
    def gains(self) -> Floats:
        """The grade of each slot, or 0 where it is negative, unknown or already credited."""
        return np.where(~self.repeated & (self.grades > 0), self.grades, 0.0)

    @cached_property
    def found(self) -> Flags:
        """The slots where a relevant key is credited."""
        return self.gains >= self.threshold

    @cached_property
    def found_so_far(self) -> Counts:
        """How many relevant keys are credited down to each rank."""
        return np.cumsum(self.found, axis=1)


def hit(table: GradeTable) -> Floats:
    """1 where any relevant key is found, else 0 (trec_eval's success)."""
    return (table.found_so_far > 0).astype(np.float64)


def recall(table: GradeTable) -> Floats:
    """Relevant keys found / all relevant keys, also where those are more than the cutoff."""
    return table.found_so_far / table.relevant[:, np.newaxis]


def precision(table: GradeTable) -> Floats:
    """Relevant keys found / cutoff, also where fewer were returned (trec_eval's P)."""
    return table.found_so_far / table.ranks


def reciprocal_rank(table: GradeTable) -> Floats:
    """1 / rank of the first relevant key, 0 above that rank and where there is none."""
    first = table.found.argmax(axis=1)[:, np.newaxis] + 1
    return np.where(table.found_so_far > 0, 1.0 / first, 0.0)


def average_precision(table: GradeTable) -> Floats:
    """Sum of the precisions at the relevant ranks / all relevant keys (trec_eval's map_cut)."""
    at_relevant_ranks = np.where(table.found, precision(table), 0.0)
    return np.cumsum(at_relevant_ranks, axis=1) / table.relevant[:, np.newaxis]


def ndcg(table: GradeTable) -> Floats:
    """NDCG with linear gain and the discount log2(rank + 1) (trec_eval's ndcg_cut).

    Järvelin and Kekäläinen, ACM TOIS 20(4), 2002. The ideal is over all positive grades.
    """
    return _normalised(table.gains, table.ideal)


def ndcg_exponential(table: GradeTable) -> Floats:
    """NDCG with the gain 2^grade - 1 (Burges et al., ICML 2005).

    Both sides are scaled by 2^-(best grade), which cancels out: a grade of 1,024 would overflow.
    """
    best = table.ideal[:, :1]
    nothing = np.exp2(-best)
    return _normalised(np.exp2(table.gains - best) - nothing, np.exp2(table.ideal - best) - nothing)


def judged(table: GradeTable) -> Floats:
    """Share of the returned slots whose key has a judgment, of any grade (ir_measures' Judged).

    A repeated key is as judged as it was the first time. An empty ranking has 0.
    """
    return _share_of_returned(~np.isnan(table.grades), table)


def duplicates(table: GradeTable) -> Floats:
    """Share of the returned slots whose key stood higher up already. An empty ranking has 0."""
    return _share_of_returned(table.repeated, table)


def _normalised(gains: Floats, ideal: Floats) -> Floats:
    discounts = np.log2(np.arange(2, gains.shape[1] + 2))
    return np.asarray(
        np.cumsum(gains / discounts, axis=1) / np.cumsum(ideal / discounts, axis=1), np.float64
    )


def _share_of_returned(slots: Flags, table: GradeTable) -> Floats:
    # An empty ranking counts 0 slots: dividing those by 1 gives the 0 that is meant.
    returned = np.clip(table.returned[:, np.newaxis], 1, table.ranks)
    return np.asarray(np.cumsum(slots, axis=1) / returned, np.float64)


FORMULAS: Mapping[str, Callable[[GradeTable], Floats]] = {
    "hit": hit,
    "recall": recall,
    "precision": precision,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "ndcg": ndcg,
    "ndcg_exp": ndcg_exponential,
    "judged": judged,
    "duplicates": duplicates,
}
"""The formula of each measure: a table to values of shape (n, k), one for every cutoff up to k."""


def evaluate(table: GradeTable, measures: Sequence[Measure]) -> Floats:
    """Return the value of each measure for each question, shape (n, len(measures)).

    No measure's cutoff may lie deeper than the table.
    """
    by_rank = {name: FORMULAS[name](table) for name in {measure.name for measure in measures}}
    values = np.empty((len(table.grades), len(measures)))
    for column, measure in enumerate(measures):
        values[:, column] = by_rank[measure.name][:, measure.k - 1]
    return values
