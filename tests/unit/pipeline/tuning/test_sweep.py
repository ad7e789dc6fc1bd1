"""Many settings at once, against fusing and scoring each by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.retrieval.fusion import Formula, fuse
from pipeline.retrieval.limits import needed_limit
from pipeline.scoring import Judged, Measure, judgments_at, score
from pipeline.tuning.grid import HybridSetting, grid
from pipeline.tuning.sweep import Conventions, Staged, Sweep
from pipeline.types import Level, Ranking

KEYS = [f"doc:{letter}:{number}" for letter in "abcdef" for number in range(4)]

K = 3
MEASURES = [Measure(name, k) for name in ("ndcg", "recall", "mrr", "hit", "map") for k in (1, K)]

ARM = st.lists(st.sampled_from(KEYS), max_size=16, unique=True).flatmap(
    lambda keys: st.lists(
        st.integers(0, 8).map(lambda n: n / 8), min_size=len(keys), max_size=len(keys)
    ).map(lambda scores: Ranking(keys, sorted(scores, reverse=True)))
)
EXPECTED = st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 4), max_size=6).filter(
    lambda grades: max(grades.values(), default=0) >= 2
)


def conventions(level: Level) -> Conventions:
    return Conventions(K, needed_limit(K, level), level, MEASURES, 2)


def one_by_one(expected: dict[str, int], ranking: Ranking, level: Level) -> list[float]:
    """Return what a run that returned this ranking stores."""
    live = {*expected, *judgments_at(expected, level)}
    scores = score(
        [Judged(expected)], [ranking], k=K, level=level, measures=MEASURES,
        relevance_threshold=2, live=live,
    )  # fmt: skip
    values: list[float] = scores.values[0].tolist()
    return values


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("arms", [2, 3])
def test_each_settings_measures_are_those_of_a_run_with_it(level: Level, arms: int) -> None:
    limit = needed_limit(K, level)
    present = HybridSetting((1.0, 2.5, 0.5)[:arms], Formula("weighted", normalize="none"), 20)
    tried = grid(present, limit)[:: 7 if arms == 2 else 25]

    @settings(max_examples=30, deadline=None)
    @given(rankings=st.lists(ARM, min_size=arms, max_size=arms), expected=EXPECTED)
    def check(rankings: list[Ranking], expected: dict[str, int]) -> None:
        question = Staged(judgments_at(expected, level), rankings)
        values = Sweep(tried, conventions(level)).values(question)
        for setting, found in zip(tried, values.tolist(), strict=True):
            cut = [Ranking(r.keys[: setting.depth], r.scores[: setting.depth]) for r in rankings]
            fused = fuse(cut, setting.weights, setting.formula, limit)
            assert found == one_by_one(expected, fused, level)

    check()


@pytest.mark.parametrize("level", list(Level))
def test_an_arm_alone_is_measured_as_a_run_of_it(level: Level) -> None:
    limit = needed_limit(K, level)

    @settings(max_examples=60, deadline=None)
    @given(rankings=st.lists(ARM, min_size=1, max_size=3), expected=EXPECTED)
    def check(rankings: list[Ranking], expected: dict[str, int]) -> None:
        sweep = Sweep([], conventions(level))
        values = sweep.alone(Staged(judgments_at(expected, level), rankings))
        for ranking, found in zip(rankings, values.tolist(), strict=True):
            cut = Ranking(ranking.keys[:limit], ranking.scores[:limit])
            assert found == one_by_one(expected, cut, level)

    check()


def test_an_arm_that_holds_a_key_twice_gives_up_a_slot_alone() -> None:
    ranking = Ranking(["doc:a:1", "doc:a:1", "doc:b:0"], [3.0, 2.0, 1.0])
    found = Sweep([], conventions(Level.CHUNK)).alone(Staged({"doc:b:0": 2}, [ranking]))
    assert found[0, MEASURES.index(Measure("mrr", K))] == pytest.approx(1 / 3)


def test_nothing_found_by_any_arm_scores_zero() -> None:
    nothing = Ranking([], [])
    tried = grid(HybridSetting((1.0, 1.0), Formula(), 10), K)
    values = Sweep(tried, conventions(Level.CHUNK)).values(
        Staged({"doc:b:0": 2}, [nothing, nothing])
    )
    assert np.array_equal(values, np.zeros((len(tried), len(MEASURES))))
