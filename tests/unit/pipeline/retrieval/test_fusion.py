"""Fusion by ranks and by scores against the definitions, written out naively."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.retrieval.fusion import Formula, Normalize, Pool, best_first, fuse
from pipeline.types import Ranking

RRF = Formula()
BY_SCORE = Formula("weighted")

KEYS = st.sampled_from([f"document-{letter}:{number}" for letter in "abcdé" for number in (1, 10)])
KEY_LISTS = st.lists(KEYS, max_size=10, unique=True)
WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])
ARMS = st.lists(st.tuples(KEY_LISTS, WEIGHTS), max_size=4)

SCORED = st.dictionaries(KEYS, st.integers(-40, 40).map(lambda n: n / 8), max_size=10)
SCORED_ARMS = st.lists(st.tuples(SCORED, WEIGHTS), min_size=1, max_size=4)


def ranked(keys: list[str]) -> Ranking:
    return Ranking(keys=keys, scores=[1.0 / n for n in range(1, len(keys) + 1)])


def by_score(scores: dict[str, float]) -> Ranking:
    keys = sorted(scores, key=lambda key: (-scores[key], key))
    return Ranking(keys, [scores[key] for key in keys])


def by_definition(arms: list[tuple[list[str], float]], rrf_k: int) -> dict[str, Fraction]:
    keys = {key for ranking, _ in arms for key in ranking}
    return {
        key: sum(
            (
                Fraction(weight) / (rrf_k + ranking.index(key) + 1)
                for ranking, weight in arms
                if key in ranking
            ),
            start=Fraction(0),
        )
        for key in keys
    }


def on_scale(scores: dict[str, float], normalize: Normalize, key: str) -> float:
    """Return what an arm with these scores adds to a key, by SciPy where it has a word for it."""
    values = np.array(list(scores.values()))
    if not scores or (key not in scores and normalize != "z_score"):
        return 0.0
    if normalize == "none":
        return scores[key]
    flat = len(set(values)) == 1
    if normalize == "min_max":
        return 1.0 if flat else (scores[key] - min(values)) / (max(values) - min(values))
    z = dict(zip(scores, [0.0] * len(values) if flat else stats.zscore(values), strict=True))
    return float(z.get(key, min(z.values())))


@given(arms=ARMS, rrf_k=st.integers(1, 1000))
def test_by_rank_scores_and_order_are_those_of_the_definition(
    arms: list[tuple[list[str], float]], rrf_k: int
) -> None:
    rankings, weights = [ranked(keys) for keys, _ in arms], [weight for _, weight in arms]
    fused = fuse(rankings, weights, Formula(rrf_k=rrf_k), 100)
    expected = by_definition(arms, rrf_k)
    assert set(fused.keys) == set(expected)
    for key, score in zip(fused.keys, fused.scores, strict=True):
        assert score == pytest.approx(float(expected[key]), rel=1e-15)
    scores = dict(zip(fused.keys, fused.scores, strict=True))
    assert fused.keys == sorted(scores, key=lambda key: (-scores[key], key))


@pytest.mark.parametrize("normalize", ["min_max", "z_score", "none"])
def test_by_score_scores_and_order_are_those_of_the_definition(normalize: Normalize) -> None:
    @given(arms=SCORED_ARMS)
    def check(arms: list[tuple[dict[str, float], float]]) -> None:
        rankings, weights = [by_score(each) for each, _ in arms], [weight for _, weight in arms]
        fused = fuse(rankings, weights, Formula("weighted", normalize=normalize), 100)
        assert set(fused.keys) == {key for scores, _ in arms for key in scores}
        for key, score in zip(fused.keys, fused.scores, strict=True):
            expected = sum(weight * on_scale(scores, normalize, key) for scores, weight in arms)
            assert score == pytest.approx(expected, rel=1e-12, abs=1e-12)
        scores = dict(zip(fused.keys, fused.scores, strict=True))
        assert fused.keys == sorted(scores, key=lambda key: (-scores[key], key))

    check()


def test_a_single_result_counts_as_the_best_of_its_arm_with_min_max() -> None:
    fused = fuse(
        [Ranking(["a:1", "b:1"], [0.9, 0.8]), Ranking(["c:1"], [0.01])], [1.0, 2.0], BY_SCORE, 5
    )
    assert fused == Ranking(["c:1", "a:1", "b:1"], [2.0, 1.0, 0.0])


def test_with_z_scores_a_key_that_an_arm_lacks_is_no_better_than_its_worst() -> None:
    z_score = Formula("weighted", normalize="z_score")
    fused = fuse(
        [Ranking(["a:1", "b:1"], [3.0, 1.0]), Ranking(["c:1"], [9.0])], [1.0, 1.0], z_score, 5
    )
    assert fused == Ranking(["a:1", "b:1", "c:1"], [1.0, -1.0, -1.0])


@pytest.mark.parametrize("tiny", [5e-324, 1e-200])
def test_differences_too_small_to_be_squared_do_not_break_the_z_score(tiny: float) -> None:
    z_score = Formula("weighted", normalize="z_score")
    fused = fuse([Ranking(["b:1", "a:1"], [tiny, 0.0])], [1.0], z_score, 5)
    assert np.isfinite(fused.scores).all()


@given(arms=ARMS, limit=st.integers(1, 12), formula=st.sampled_from([RRF, BY_SCORE]))
def test_a_limit_cuts_the_full_fusion(
    arms: list[tuple[list[str], float]], limit: int, formula: Formula
) -> None:
    rankings, weights = [ranked(keys) for keys, _ in arms], [weight for _, weight in arms]
    full = fuse(rankings, weights, formula, 100)
    cut = fuse(rankings, weights, formula, limit)
    assert cut == Ranking(keys=full.keys[:limit], scores=full.scores[:limit])


@given(arms=SCORED_ARMS, formula=st.sampled_from([RRF, BY_SCORE]))
def test_the_order_of_the_arms_does_not_matter(
    arms: list[tuple[dict[str, float], float]], formula: Formula
) -> None:
    forth = fuse([by_score(each) for each, _ in arms], [weight for _, weight in arms], formula, 100)
    arms.reverse()
    back = fuse([by_score(each) for each, _ in arms], [weight for _, weight in arms], formula, 100)
    assert forth == back


@given(arms=SCORED_ARMS, data=st.data(), formula=st.sampled_from([RRF, BY_SCORE]))
def test_many_weightings_at_once_give_what_each_gives_alone(
    arms: list[tuple[dict[str, float], float]], data: st.DataObject, formula: Formula
) -> None:
    rankings = [by_score(each) for each, _ in arms]
    one = st.lists(WEIGHTS, min_size=len(arms), max_size=len(arms))
    weights = data.draw(st.lists(one, min_size=1, max_size=5))
    pool = Pool.of(rankings)
    scores = pool.fused(formula, np.array(weights))
    for own, row, order in zip(weights, scores, best_first(scores, 4), strict=True):
        alone = fuse(rankings, own, formula, 4)
        assert [pool.keys[column] for column in order] == alone.keys
        assert row[order].tolist() == alone.scores


def test_equal_scores_are_ordered_by_key_as_bytes() -> None:
    keys = ["é:1", "a:2", "B:1", "a:10", "a-b:1"]
    fused = fuse([ranked([key]) for key in keys], [1.0] * 5, RRF, 5)
    assert fused.keys == sorted(keys, key=str.encode)


def test_a_key_that_an_arm_holds_twice_counts_at_its_first_rank_and_keeps_its_slots() -> None:
    fused = fuse([ranked(["a:1", "a:1", "b:1"])], [1.0], RRF, 5)
    assert fused == Ranking(keys=["a:1", "b:1"], scores=[1 / 61, 1 / 63])


@pytest.mark.parametrize("formula", [RRF, BY_SCORE])
def test_every_arm_needs_a_weight(formula: Formula) -> None:
    with pytest.raises(ValueError, match="2 rankings have 1 weights"):
        fuse([ranked(["a:1"]), ranked(["b:1"])], [1.0], formula, 5)


@pytest.mark.parametrize("formula", [RRF, BY_SCORE])
def test_nothing_found_is_nothing_fused(formula: Formula) -> None:
    assert fuse([ranked([]), ranked([])], [1.0, 1.0], formula, 5) == Ranking([], [])
