"""Reciprocal rank fusion against its definition, written out naively with exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.fusion import fuse
from pipeline.types import Ranking

KEYS = st.sampled_from([f"document-{letter}:{number}" for letter in "abcdé" for number in (1, 10)])
KEY_LISTS = st.lists(KEYS, max_size=10, unique=True)
ARMS = st.lists(st.tuples(KEY_LISTS, st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0])), max_size=4)


def ranked(keys: list[str]) -> Ranking:
    return Ranking(keys=keys, scores=[1.0 / n for n in range(1, len(keys) + 1)])


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


@given(arms=ARMS, rrf_k=st.integers(1, 1000))
def test_scores_and_order_are_those_of_the_definition(
    arms: list[tuple[list[str], float]], rrf_k: int
) -> None:
    fused = fuse([ranked(keys) for keys, _ in arms], [weight for _, weight in arms], rrf_k, 100)
    expected = by_definition(arms, rrf_k)
    assert set(fused.keys) == set(expected)
    for key, score in zip(fused.keys, fused.scores, strict=True):
        assert score == pytest.approx(float(expected[key]), rel=1e-15)
    scores = dict(zip(fused.keys, fused.scores, strict=True))
    assert fused.keys == sorted(scores, key=lambda key: (-scores[key], key))


@given(arms=ARMS, limit=st.integers(1, 12))
def test_a_limit_cuts_the_full_fusion(arms: list[tuple[list[str], float]], limit: int) -> None:
    rankings, weights = [ranked(keys) for keys, _ in arms], [weight for _, weight in arms]
    full = fuse(rankings, weights, 60, 100)
    cut = fuse(rankings, weights, 60, limit)
    assert cut == Ranking(keys=full.keys[:limit], scores=full.scores[:limit])


@given(arms=ARMS)
def test_the_order_of_the_arms_does_not_matter(arms: list[tuple[list[str], float]]) -> None:
    forth = fuse([ranked(keys) for keys, _ in arms], [weight for _, weight in arms], 60, 100)
    arms.reverse()
    back = fuse([ranked(keys) for keys, _ in arms], [weight for _, weight in arms], 60, 100)
    assert forth == back


def test_equal_scores_are_ordered_by_key_as_bytes() -> None:
    keys = ["é:1", "a:2", "B:1", "a:10", "a-b:1"]
    fused = fuse([ranked([key]) for key in keys], [1.0] * 5, 60, 5)
    assert fused.keys == sorted(keys, key=str.encode)


def test_a_key_that_an_arm_holds_twice_counts_at_its_first_rank_and_keeps_its_slots() -> None:
    fused = fuse([ranked(["a:1", "a:1", "b:1"])], [1.0], 60, 5)
    assert fused == Ranking(keys=["a:1", "b:1"], scores=[1 / 61, 1 / 63])


def test_every_arm_needs_a_weight() -> None:
    with pytest.raises(ValueError, match="shorter"):
        fuse([ranked(["a:1"]), ranked(["b:1"])], [1.0], 60, 5)
