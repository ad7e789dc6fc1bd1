"""The formulas against trec_eval, against their definitions, and by their properties."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.scoring import NAMES, Judged, Measure, measures_for, score
from pipeline.types import Level
from tests.unit.pipeline.scoring.asking import Everything, ranked, value
from tests.unit.pipeline.scoring.oracle import SHARED_NAMES, trec_eval
from tests.unit.pipeline.scoring.reference import define

QUALITY = ("hit", "recall", "precision", "mrr", "map", "ndcg", "ndcg_exp")
EVERY_NAME = (*NAMES, "ndcg_exp")
KEYS = [f"d{document}:{chunk}" for document in range(8) for chunk in range(3)]

keys = st.sampled_from(KEYS)
grades = st.integers(-1, 4)
rankings = st.lists(keys, max_size=25, unique=True)
rankings_with_repeats = st.lists(keys, max_size=25)
cutoffs = st.integers(1, 20)
thorough = settings(max_examples=200, deadline=None)


def judgments(threshold: int = 1) -> st.SearchStrategy[dict[str, int]]:
    """Draw judgments of which at least one is relevant."""
    graded = st.dictionaries(keys, grades, max_size=8)
    relevant = st.dictionaries(keys, st.integers(threshold, 4), min_size=1, max_size=4)
    return st.builds(lambda some, surely: some | surely, graded, relevant)


@dataclass(frozen=True)
class Shard:
    expected: Sequence[Mapping[str, int]]
    rankings: Sequence[Sequence[str]]
    threshold: int


@st.composite
def shards(
    draw: st.DrawFn, ranking: st.SearchStrategy[list[str]] = rankings, *, binary: bool = False
) -> Shard:
    """Draw a few questions that can all be scored, and a ranking for each."""
    threshold = 1 if binary else draw(st.integers(1, 3))
    one = st.dictionaries(keys, st.just(1), min_size=1, max_size=8)
    expected = draw(st.lists(one if binary else judgments(threshold), min_size=1, max_size=6))
    size = len(expected)
    return Shard(expected, draw(st.lists(ranking, min_size=size, max_size=size)), threshold)


def values(shard: Shard, measures: Sequence[Measure], k: int, level: Level) -> np.ndarray:
    return score(
        [Judged(expected) for expected in shard.expected],
        [ranked(ranking) for ranking in shard.rankings],
        k=k,
        level=level,
        measures=measures,
        relevance_threshold=shard.threshold,
        live=Everything(),
    ).values


@thorough
@given(st.one_of(shards(), shards(binary=True)), cutoffs)
def test_values_are_those_of_trec_eval(shard: Shard, k: int) -> None:
    shared = [m for m in measures_for(k, (1, 3, 5, 10)) if m.name in SHARED_NAMES]
    ours = values(shard, shared, k, Level.CHUNK)
    for column, measure in enumerate(shared):
        theirs = trec_eval(measure, shard.expected, shard.rankings, shard.threshold)
        np.testing.assert_allclose(
            ours[:, column], theirs, rtol=0, atol=1e-12, err_msg=str(measure)
        )


@thorough
@given(shards(rankings_with_repeats), cutoffs, st.sampled_from(list(Level)))
def test_values_are_those_of_the_definitions_also_with_repeats_documents_and_thresholds(
    shard: Shard, k: int, level: Level
) -> None:
    measures = [Measure(name, depth) for name in EVERY_NAME for depth in {1, (k + 1) // 2, k}]
    ours = values(shard, measures, k, level)
    theirs = [
        [define(m.name, m.k, expected, ranking, level, shard.threshold) for m in measures]
        for expected, ranking in zip(shard.expected, shard.rankings, strict=True)
    ]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@thorough
@given(shards(rankings_with_repeats), cutoffs)
def test_a_question_scores_the_same_to_the_last_bit_whatever_stands_beside_it(
    shard: Shard, k: int
) -> None:
    measures = measures_for(k, (1, 3, 5, 10), exponential=True)
    together = values(shard, measures, k, Level.CHUNK)
    alone = [
        values(Shard([expected], [ranking], shard.threshold), measures, k, Level.CHUNK)[0]
        for expected, ranking in zip(shard.expected, shard.rankings, strict=True)
    ]
    assert np.array_equal(together, np.array(alone))


@given(shards(rankings_with_repeats), cutoffs, st.sampled_from(list(Level)))
def test_every_measure_lies_between_zero_and_one(shard: Shard, k: int, level: Level) -> None:
    measures = measures_for(k, (1, 3, 5, 10), exponential=True)
    ours = values(shard, measures, k, level)
    assert ((ours >= 0) & (ours <= 1)).all()


@given(judgments(), rankings_with_repeats, cutoffs, st.data())
def test_the_order_below_k_changes_nothing(
    expected: dict[str, int], ranking: list[str], k: int, data: st.DataObject
) -> None:
    below = data.draw(st.permutations(ranking[k:]))
    measures = measures_for(k, (1, 3, 5), exponential=True)
    shard = Shard([expected, expected], [ranking, ranking[:k] + below], 1)
    before, after = values(shard, measures, k, Level.CHUNK)
    assert np.array_equal(before, after)


@given(judgments(), rankings_with_repeats, cutoffs, st.sampled_from(["unjudged:0", *KEYS]))
def test_an_irrelevant_result_below_never_raises_a_measure_of_quality(
    expected: dict[str, int], ranking: list[str], k: int, extra: str
) -> None:
    assume(expected.get(extra, 0) <= 0 or extra in ranking)
    shard = Shard([expected, expected], [ranking, [*ranking, extra]], 1)
    before, after = values(shard, [Measure(name, k) for name in QUALITY], k, Level.CHUNK)
    assert (after <= before).all()


@given(judgments(), rankings, cutoffs)
def test_a_relevant_result_moved_to_the_top_never_lowers_a_measure_of_quality(
    expected: dict[str, int], ranking: list[str], k: int
) -> None:
    best = max(expected, key=lambda key: expected[key])
    promoted = [best, *(key for key in ranking if key != best)]
    shard = Shard([expected, expected], [ranking, promoted], 1)
    measures = [Measure(name, k) for name in QUALITY]
    before, after = values(shard, measures, k, Level.CHUNK)
    assert (after >= before - 1e-12).all()


@given(shards(rankings_with_repeats), cutoffs)
def test_hit_says_whether_recall_is_above_zero(shard: Shard, k: int) -> None:
    hit, recall = values(shard, [Measure("hit", k), Measure("recall", k)], k, Level.CHUNK).T
    assert np.array_equal(hit == 1, recall > 0)


@given(shards(rankings_with_repeats))
@pytest.mark.parametrize("name", ["hit", "recall", "mrr", "map"])
def test_a_deeper_cutoff_never_lowers_what_counts_against_all_relevant_keys(
    name: str, shard: Shard
) -> None:
    by_depth = values(shard, [Measure(name, k) for k in range(1, 21)], 20, Level.CHUNK)
    assert (np.diff(by_depth, axis=1) >= 0).all()


@given(judgments(), cutoffs)
def test_the_ideal_order_scores_one(expected: dict[str, int], k: int) -> None:
    ideal = sorted(expected, key=lambda key: -expected[key])
    for name in ("hit", "mrr", "ndcg", "ndcg_exp", "judged"):
        assert value(expected, ideal, f"{name}@{k}") == 1.0


@given(judgments(), rankings_with_repeats, cutoffs)
def test_with_grades_of_one_both_gains_agree(
    expected: dict[str, int], ranking: list[str], k: int
) -> None:
    binary = {key: min(grade, 1) for key, grade in expected.items()}
    linear, exponential = (value(binary, ranking, f"{name}@{k}") for name in ("ndcg", "ndcg_exp"))
    assert linear == pytest.approx(exponential, abs=1e-12)
