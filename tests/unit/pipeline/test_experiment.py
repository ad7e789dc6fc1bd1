import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.experiment import Candidate, compare

SCORES = st.lists(st.floats(0, 1), min_size=3, max_size=3)


def _candidate(name: str, *values: float) -> Candidate:
    return Candidate(name, {"ndcg@10": np.array(values)})


def _with_gain(share: float, n: int = 400) -> tuple[Candidate, Candidate]:
    """Return a baseline at 0.5, and one that is better by 0.5 for a share of n questions."""
    before = np.full(n, 0.5)
    after = before.copy()
    after[: round(share * n)] = 1.0
    return Candidate("before", {"ndcg@10": before}), Candidate("after", {"ndcg@10": after})


def test_the_difference_is_that_of_the_means_and_counts_the_questions_that_moved() -> None:
    found = compare([_candidate("a", 0.0, 0.5, 1.0, 1.0), _candidate("b", 1.0, 1.0, 0.0, 1.0)])

    difference = found.rows[1].differences["ndcg@10"]
    assert found.n == 4
    assert found.rows[0].means == {"ndcg@10": 0.625}
    assert difference.mean == pytest.approx(0.75 - 0.625)
    assert (difference.better, difference.worse) == (2, 1)
    assert found.rows[0].differences == {}


def test_interval_and_p_are_those_that_scipy_finds() -> None:
    rng = np.random.default_rng(5)
    before = rng.random(120)
    after = np.clip(before + rng.normal(0.03, 0.2, 120), 0, 1)

    found = compare([Candidate("a", {"m": before}), Candidate("b", {"m": after})])

    difference = found.rows[1].differences["m"]
    interval = stats.bootstrap(
        (after - before,), np.mean, method="percentile", n_resamples=20_000, rng=rng
    ).confidence_interval
    test = stats.permutation_test(
        (after, before), lambda x, y: np.mean(x - y), permutation_type="samples",
        n_resamples=20_000, rng=rng,
    )  # fmt: skip
    assert difference.interval == pytest.approx((interval.low, interval.high), abs=0.003)
    assert difference.p == pytest.approx(test.pvalue, abs=0.02)


def test_the_best_is_marked_when_its_lead_is_more_than_luck() -> None:
    found = compare(_with_gain(0.2))

    assert found.best == "after"
    assert found.rows[1].differences["ndcg@10"].interval[0] > 0


def test_a_lead_that_may_be_luck_marks_nothing() -> None:
    assert compare([_candidate("a", 0, 1, 0, 1, 0), _candidate("b", 1, 1, 0, 1, 0)]).best is None


def test_a_baseline_that_nothing_beats_is_not_marked() -> None:
    before, after = _with_gain(0.2)

    assert compare([after, before]).best is None


def test_a_second_measure_does_not_decide_unless_it_is_asked_to() -> None:
    before, after = (each.values["ndcg@10"] for each in _with_gain(0.2))
    candidates = [
        Candidate("a", {"recall@10": after, "mrr@10": before}),
        Candidate("b", {"recall@10": before, "mrr@10": after}),
    ]

    assert compare(candidates).best is None
    assert compare(candidates, measure="mrr@10").best == "b"


def test_more_candidates_widen_every_interval() -> None:
    before, after = _with_gain(0.2)
    clones = [Candidate(f"clone {n}", after.values) for n in range(20)]

    alone = compare([before, after]).rows[1].differences["ndcg@10"].interval
    among = compare([before, after, *clones]).rows[1].differences["ndcg@10"].interval

    assert among[0] < alone[0]
    assert among[1] > alone[1]


def test_among_many_candidates_that_are_all_alike_one_is_rarely_marked() -> None:
    """Twenty coin tosses a trial: 95 % intervals one by one would mark one in two of three."""
    rng = np.random.default_rng(11)

    def trial(seed: int) -> bool:
        tosses = rng.integers(0, 2, (21, 300)).astype(float)
        candidates = [Candidate(str(n), {"hit@1": row}) for n, row in enumerate(tosses)]
        return compare(candidates, seed=seed).best is not None

    assert sum(trial(seed) for seed in range(40)) <= 6


def test_equal_input_gives_equal_figures() -> None:
    rng = np.random.default_rng(2)
    candidates = [Candidate(name, {"m": rng.random(50)}) for name in ("a", "b")]

    assert compare(candidates, seed=1) == compare(candidates, seed=1)
    assert compare(candidates, seed=1) != compare(candidates, seed=2)


@given(SCORES, SCORES)
def test_the_interval_holds_the_difference_of_two_candidates(
    before: list[float], after: list[float]
) -> None:
    found = compare([_candidate("a", *before), _candidate("b", *after)])

    difference = found.rows[1].differences["ndcg@10"]
    low, high = difference.interval
    assert low - 1e-9 <= difference.mean <= high + 1e-9
    assert difference.better + difference.worse <= 3


@pytest.mark.parametrize(
    ("candidates", "complaint"),
    [
        ([], "nothing to compare"),
        ([_candidate("a")], "no question"),
        ([_candidate("a", 1), _candidate("a", 1)], "one name"),
        ([_candidate("a", 1), _candidate("b", 1, 0)], "questions"),
        ([_candidate("a", 1), Candidate("b", {"mrr@10": np.ones(1)})], "what was measured"),
    ],
)
def test_candidates_that_do_not_go_together_are_refused(
    candidates: list[Candidate], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        compare(candidates)


def test_a_measure_that_nobody_took_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"mrr@10 was not measured; there are ndcg@10"):
        compare([_candidate("a", 1)], measure="mrr@10")
