"""Bootstrap, sign flips and McNemar against SciPy and against counting every case."""

import itertools
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from pipeline.verdict.resampling import (
    Alternative,
    Differences,
    bootstrap_interval,
    mcnemar_exact,
    seed_of,
    sign_flip_p,
)

TWELFTHS = st.integers(-12, 12).map(lambda number: Fraction(number, 12))
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "less")


def recall_differences(n: int, seed: int) -> NDArray[np.float64]:
    """Draw what two runs' recall differs by: mostly nothing, else thirds and quarters."""
    steps = np.array([-1, -0.5, -1 / 3, -0.25, 0, 0.25, 1 / 3, 0.5, 1])
    chances = [0.02, 0.04, 0.03, 0.03, 0.8, 0.02, 0.02, 0.03, 0.01]
    return np.random.default_rng(seed).choice(steps, size=n, p=chances)


def scipy_interval(raw: NDArray[np.float64], level: float) -> tuple[float, float]:
    interval = stats.bootstrap(
        (raw,), np.mean, method="percentile", n_resamples=10_000, confidence_level=level,
        batch=500, rng=np.random.default_rng(99),
    ).confidence_interval  # fmt: skip
    return float(interval.low), float(interval.high)


def scipy_sign_flip_p(
    raw: Sequence[float] | NDArray[np.float64], alternative: str, resamples: float = np.inf
) -> float:
    tested = stats.permutation_test(
        (np.asarray(raw),), np.mean, permutation_type="samples", alternative=alternative,
        vectorized=True, n_resamples=resamples, batch=500, rng=np.random.default_rng(99),
    )  # fmt: skip
    return float(tested.pvalue)


def counted_sign_flip_p(raw: Sequence[Fraction], alternative: str) -> float:
    """Flip one sign after the other, in fractions, and count the sums: exact for any data."""
    sums = Counter({Fraction(0): 1})
    for difference in raw:
        flipped: Counter[Fraction] = Counter()
        for total, ways in sums.items():
            flipped[total + difference] += ways
            flipped[total - difference] += ways
        sums = flipped
    observed = sum(raw, Fraction(0))
    extreme = [
        ways
        for total, ways in sums.items()
        if (total <= observed if alternative == "less" else abs(total) >= abs(observed))
    ]
    return float(Fraction(sum(extreme), 2 ** len(raw)))


def floats(fractions: Sequence[Fraction]) -> list[float]:
    return [float(fraction) for fraction in fractions]


def test_differences_are_grouped_and_keep_n_and_mean() -> None:
    raw = recall_differences(500, seed=1)
    grouped = Differences.from_raw(raw)
    assert grouped.values.tolist() == sorted(set(raw.tolist()))
    assert grouped.counts.tolist() == [(raw == value).sum() for value in grouped.values]
    assert grouped.n == 500
    assert grouped.mean == pytest.approx(raw.mean(), abs=1e-15)


def test_the_order_of_the_groups_and_empty_ones_change_no_figure() -> None:
    one = Differences.of([-0.5, 0.0, 0.25], [12, 300, 9])
    other = Differences.of([0.0, 0.25, 0.125, -0.5, 0.0], [100, 9, 0, 12, 200])
    assert bootstrap_interval(one, seed=3) == bootstrap_interval(other, seed=3)
    assert sign_flip_p(one, seed=3) == sign_flip_p(other, seed=3)


@pytest.mark.parametrize(
    ("values", "counts", "message"),
    [
        ([0.1, 0.2], [1], "shape"),
        ([[0.1]], [[1]], "shape"),
        ([float("nan")], [1], "finite"),
        ([float("inf")], [1], "finite"),
        ([0.1], [-1], "below zero"),
        ([0.1], [0], "no question"),
        ([], [], "no question"),
    ],
)
def test_what_is_no_set_of_differences_is_refused(
    values: list[float], counts: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Differences.of(values, counts)


@pytest.mark.parametrize(("n", "level"), [(40, 0.95), (300, 0.95), (300, 0.8)])
def test_the_interval_agrees_with_scipys_percentile_bootstrap(n: int, level: float) -> None:
    raw = recall_differences(n, seed=n)
    ours = bootstrap_interval(Differences.from_raw(raw), seed=5, level=level)
    # Two bounds of 10,000 resamples each lie about 0.04 standard errors apart by chance.
    tolerance = 0.15 * raw.std() / np.sqrt(n)
    assert ours == pytest.approx(scipy_interval(raw, level), abs=tolerance)


def test_more_distinct_differences_than_cells_give_the_same_interval() -> None:
    raw = np.random.default_rng(4).normal(-0.4, 0.2, 2_000).clip(-1, 1)
    ours = bootstrap_interval(Differences.from_raw(raw), seed=5)
    tolerance = 0.15 * raw.std() / np.sqrt(len(raw))
    assert ours == pytest.approx(scipy_interval(raw, 0.95), abs=tolerance)


@given(st.lists(TWELFTHS, min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_the_bounds_cut_off_a_fortieth_of_all_possible_resamples(raw: list[Fraction]) -> None:
    low, high = bootstrap_interval(Differences.from_raw(floats(raw)), seed=8, resamples=5_000)
    means = np.array([sum(drawn) / len(raw) for drawn in itertools.product(raw, repeat=len(raw))])
    exact = means.astype(np.float64)
    share, by_chance = 0.025, 0.01
    assert (exact < low - 1e-9).mean() <= share + by_chance
    assert (exact <= low + 1e-9).mean() >= share - by_chance
    assert (exact > high + 1e-9).mean() <= share + by_chance
    assert (exact >= high - 1e-9).mean() >= share - by_chance


def test_equal_differences_leave_no_interval() -> None:
    assert bootstrap_interval(Differences.of([0.1], [77]), seed=1) == (0.1, 0.1)


def test_a_seed_fixes_the_interval_and_another_moves_it() -> None:
    differences = Differences.from_raw(np.random.default_rng(4).normal(0, 1, 50))
    first = bootstrap_interval(differences, seed=1)
    assert bootstrap_interval(differences, seed=1) == first
    assert bootstrap_interval(differences, seed=2) != first


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(raw=st.lists(st.integers(-8, 8), min_size=2, max_size=8))
@settings(max_examples=40, deadline=None)
def test_few_sign_flips_are_scipys_exact_permutation_test(
    alternative: Alternative, raw: list[int]
) -> None:
    eighths = [number / 8 for number in raw]
    expected = scipy_sign_flip_p(eighths, alternative)
    ours = sign_flip_p(Differences.from_raw(eighths), seed=1, alternative=alternative)
    assert ours == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@given(raw=st.lists(TWELFTHS, min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_sums_that_tie_but_for_rounding_count_as_ties(
    alternative: Alternative, raw: list[Fraction]
) -> None:
    ours = sign_flip_p(Differences.from_raw(floats(raw)), seed=1, alternative=alternative)
    assert ours == pytest.approx(counted_sign_flip_p(raw, alternative), abs=1e-9)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_sixteen_different_differences_are_still_exact(alternative: Alternative) -> None:
    raw = [Fraction(number * number, 400) * (-1) ** number for number in range(1, 17)]
    raw[1] = -raw[1]
    ours = sign_flip_p(Differences.from_raw(floats(raw)), seed=1, alternative=alternative)
    assert ours == pytest.approx(counted_sign_flip_p(raw, alternative), abs=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_hits_lost_and_won_are_a_binomial_test(alternative: Alternative) -> None:
    hits = Differences.of([-1, 0, 1], [300, 40_000, 250])
    expected = stats.binomtest(250, 550, alternative=alternative).pvalue
    assert sign_flip_p(hits, seed=1, alternative=alternative) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_more_hits_than_can_be_counted_out_come_near_the_binomial_test(
    alternative: Alternative,
) -> None:
    hits = Differences.of([-1, 0, 1], [50_200, 1_000, 49_900])
    expected = stats.binomtest(49_900, 100_100, alternative=alternative).pvalue
    assert sign_flip_p(hits, seed=1, alternative=alternative) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n", "shift"), [(60, -0.04), (900, -0.01)])
def test_drawn_sign_flips_agree_with_scipys_drawn_permutations(
    n: int, shift: float, alternative: Alternative
) -> None:
    raw = np.random.default_rng(n).normal(shift, 0.2, n)
    expected = scipy_sign_flip_p(raw, alternative, resamples=10_000)
    ours = sign_flip_p(Differences.from_raw(raw), seed=2, alternative=alternative)
    assert ours == pytest.approx(expected, abs=0.025)


def test_a_drawn_p_value_is_never_zero() -> None:
    raw = np.random.default_rng(3).normal(-5, 0.2, 100)
    assert sign_flip_p(Differences.from_raw(raw), seed=2, resamples=99) == 1 / 100


def test_a_seed_fixes_the_drawn_p_value_and_another_moves_it() -> None:
    differences = Differences.from_raw(np.random.default_rng(4).normal(-0.05, 1, 100))
    first = sign_flip_p(differences, seed=1)
    assert sign_flip_p(differences, seed=1) == first
    assert sign_flip_p(differences, seed=2) != first


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_no_difference_at_all_is_no_evidence(alternative: Alternative) -> None:
    unmoved = Differences.of([0.0], [500])
    assert sign_flip_p(unmoved, seed=1, alternative=alternative) == 1.0


def test_unchanged_questions_do_not_weaken_the_test() -> None:
    alone = Differences.of([-0.5, 0.25], [9, 3])
    among = Differences.of([-0.5, 0.25, 0.0], [9, 3, 100_000])
    assert sign_flip_p(among, seed=1) == sign_flip_p(alone, seed=1)


@given(st.lists(TWELFTHS, min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_rise_is_as_unlikely_as_the_same_drop(raw: list[Fraction]) -> None:
    drop = Differences.from_raw(floats(raw))
    rise = Differences.from_raw([-value for value in floats(raw)])
    assert sign_flip_p(drop, seed=1) == pytest.approx(sign_flip_p(rise, seed=1), abs=1e-9)


def test_a_million_distinct_differences_stay_in_flat_memory() -> None:
    raw = np.random.default_rng(6).normal(0, 0.2, 1_000_000)
    tracemalloc.start()
    try:
        differences = Differences.from_raw(raw)
        bootstrap_interval(differences, seed=1, resamples=300)
        sign_flip_p(differences, seed=1, resamples=300)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(differences.values) == 1_000_000
    assert peak < 100_000_000


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=80, deadline=None)
def test_mcnemar_is_scipys_two_sided_binomial_test(lost: int, won: int) -> None:
    expected = stats.binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert mcnemar_exact(lost, won) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("lost", "won"), [(-1, 2), (2, -1)])
def test_negative_counts_are_refused(lost: int, won: int) -> None:
    with pytest.raises(ValueError, match="below zero"):
        mcnemar_exact(lost, won)


def test_a_seed_is_the_first_eight_bytes_of_sha256_in_every_process() -> None:
    # printf '17\00018\000hit@10' | sha256sum
    assert seed_of(17, 18, "hit@10") == 0xC1405F2548B628F1


def test_every_part_of_the_identity_makes_another_seed() -> None:
    seeds = {
        seed_of(1, 23, "hit@10"),
        seed_of(12, 3, "hit@10"),
        seed_of(23, 1, "hit@10"),
        seed_of(1, 23, "hit@1"),
    }
    assert len(seeds) == 4
