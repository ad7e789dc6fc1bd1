"""The noise gate against enumeration, exact fractions, a Fourier inversion and drawn samples."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.verdict.noise import (
    ALPHA,
    UNKNOWN_EXACT_NEEDED,
    flip_rate,
    half_points,
    net_lost_needed,
    p_value,
    power,
    tail,
    visible_drop,
)

PROBABILITIES = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(
    lambda pair: (Fraction(pair[0], 100), Fraction(pair[1], 100))
)
FLIP_RATES = st.floats(0, 0.5)


def enumerated_tail(n: int, lost: Fraction, won: Fraction, at_least: int) -> Fraction:
    chance = {1: lost, -1: won, 0: 1 - lost - won}
    total = Fraction(0)
    for outcomes in itertools.product(chance, repeat=n):
        if sum(outcomes) >= at_least:
            product = Fraction(1)
            for outcome in outcomes:
                product *= chance[outcome]
            total += product
    return total


def multiplied_tail(n: int, lost: Fraction, won: Fraction, at_least: int) -> Fraction:
    """Multiply the generating function out in whole numbers: exact, and quick enough for 200."""
    scale = lost.denominator * won.denominator
    factors = np.array([int(won * scale), int((1 - lost - won) * scale), int(lost * scale)], object)
    row = np.array([1], object)
    for _ in range(n):
        row = np.convolve(row, factors)
    return Fraction(int(sum(row[n + at_least :])), scale**n)


def fourier_tail(n: int, lost: float, won: float, at_least: int, window: int) -> float:
    """Invert the characteristic function over a window around zero."""
    t = 2 * np.pi * np.arange(window) / window
    step = (lost + won) * -2 * np.sin(t / 2) ** 2 + 1j * (lost - won) * np.sin(t)
    size = np.log1p(2 * step.real + np.abs(step) ** 2) / 2
    phi = np.exp(n * (size + 1j * np.arctan2(step.imag, 1 + step.real)))
    pmf = np.fft.fftshift(np.fft.fft(phi).real / window)
    return float(pmf[window // 2 + at_least :].sum())


@given(st.integers(0, 5), PROBABILITIES, st.integers(-6, 6))
@settings(max_examples=60, deadline=None)
def test_the_tail_is_what_enumerating_every_outcome_gives(
    n: int, chances: tuple[Fraction, Fraction], at_least: int
) -> None:
    lost, won = chances
    expected = float(enumerated_tail(n, lost, won, at_least))
    assert tail(n, float(lost), float(won), at_least) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "lost", "won"), [(12, 0.3, 0.2), (30, 0.05, 0.01), (25, 0.6, 0.4)])
def test_the_tail_is_the_sum_of_scipys_trinomial(n: int, lost: float, won: float) -> None:
    counts = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    pmf = stats.multinomial.pmf(counts, n, [lost, won, 1 - lost - won])
    net = counts[:, 0] - counts[:, 1]
    for at_least in range(-n, n + 1):
        expected = pmf[net >= at_least].sum()
        assert tail(n, lost, won, at_least) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("at_least", [1, 4, 8, 12])
def test_small_tails_keep_their_digits(at_least: int) -> None:
    rate = Fraction(1, 500)
    expected = float(multiplied_tail(200, rate, rate, at_least))
    assert p_value(200, 0.002, at_least) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "lost", "won", "at_least"),
    [
        (1_000, 0.03, 0.03, 25),
        (1_000, 0.0626, 0.03, 25),
        (100_000, 0.01, 0.01, 150),
        (1_000_000, 0.002, 0.002, 196),
        (1_000_000, 0.03, 0.03, 758),
        (1_000_000, 0.0305, 0.03, 758),
    ],
)
def test_large_sets_agree_with_the_characteristic_function(
    n: int, lost: float, won: float, at_least: int
) -> None:
    expected = fourier_tail(n, lost, won, at_least, window=1 << 14)
    assert tail(n, lost, won, at_least) == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_drawn_samples_lose_as_often_as_the_tail_says() -> None:
    draws = np.random.default_rng(7).multinomial(300, [0.04, 0.02, 0.94], size=40_000)
    net = draws[:, 0] - draws[:, 1]
    for at_least in (0, 6, 12, 18):
        expected = tail(300, 0.04, 0.02, at_least)
        error = np.sqrt(expected * (1 - expected) / len(net))
        assert abs((net >= at_least).mean() - expected) < 4 * error


@given(st.integers(0, 2_000), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(-50, 50))
@settings(max_examples=80, deadline=None)
def test_a_tail_is_a_probability_that_falls_with_the_loss(
    n: int, lost: float, won: float, at_least: int
) -> None:
    here, beyond = (tail(n, lost, won, c) for c in (at_least, at_least + 1))
    assert 0 <= beyond <= here + 1e-12 <= 1 + 1e-12


@given(st.integers(1, 400), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(-20, 20))
@settings(max_examples=60, deadline=None)
def test_losing_and_winning_are_mirror_images(n: int, lost: float, won: float, c: int) -> None:
    assert tail(n, lost, won, c) == pytest.approx(1 - tail(n, won, lost, 1 - c), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "lost", "won"), [(-1, 0.1, 0.1), (5, -0.1, 0.1), (5, 0.7, 0.7), (5, float("nan"), 0)]
)
def test_impossible_questions_are_refused(n: int, lost: float, won: float) -> None:
    with pytest.raises(ValueError, match=r"no probabilities|fewer than none"):
        tail(n, lost, won, 1)


NEEDED = {0.002: (3, 3, 4, 6, 7), 0.01: (5, 6, 7, 11, 15), 0.03: (7, 9, 12, 18, 25)}
POINTS = {
    0.002: (8.5, 4.5, 3.0, 2.0, 1.0),
    0.01: (13.5, 8.5, 5.0, 3.0, 2.0),
    0.03: (18.5, 12.0, 8.0, 5.0, 3.5),
}


@pytest.mark.parametrize("rate", NEEDED)
def test_the_published_table_is_reproduced(rate: float) -> None:
    for n, needed, points in zip(
        (50, 100, 200, 500, 1_000), NEEDED[rate], POINTS[rate], strict=True
    ):
        assert net_lost_needed(n, rate) == needed
        drop = visible_drop(n, rate, needed)
        assert drop is not None
        assert half_points(drop) == points


@given(st.integers(1, 3_000), FLIP_RATES, st.sampled_from([0.05, ALPHA, 1e-6]))
@settings(max_examples=60, deadline=None)
def test_the_need_is_the_smallest_loss_that_noise_rarely_gives(
    n: int, rate: float, alpha: float
) -> None:
    needed = net_lost_needed(n, rate, alpha)
    if needed is None:
        assert p_value(n, rate, n) > alpha
    else:
        assert p_value(n, rate, needed) <= alpha
        assert needed == 1 or p_value(n, rate, needed - 1) > alpha


@given(st.integers(50, 2_000), st.floats(0.0005, 0.2), st.floats(0.0005, 0.2))
@settings(max_examples=40, deadline=None)
def test_more_noise_and_a_stricter_alpha_need_more(n: int, one: float, other: float) -> None:
    quiet, loud = sorted((one, other))
    in_quiet, in_loud = net_lost_needed(n, quiet), net_lost_needed(n, loud)
    stricter = net_lost_needed(n, quiet, 1e-5)
    assert in_quiet is not None
    assert in_loud is not None
    assert stricter is not None
    assert in_quiet <= in_loud
    assert in_quiet <= stricter


def test_no_loss_is_enough_in_a_set_that_noise_may_lose_whole() -> None:
    assert net_lost_needed(0, 0.1) is None
    assert net_lost_needed(1, 0.2) is None
    assert net_lost_needed(2, 0.2) is None
    assert net_lost_needed(5, 0.2) == 5


def test_without_any_noise_one_lost_question_is_enough() -> None:
    assert net_lost_needed(1_000, 0.0) == 1
    assert p_value(1_000, 0.0, 1) == 0.0
    assert p_value(1_000, 0.0, 0) == 1.0


@given(st.integers(10, 1_000), st.floats(0, 0.1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_larger_drop_is_found_more_often(n: int, rate: float, one: float, other: float) -> None:
    smaller, larger = sorted((one, other))
    assert power(n, rate, smaller, 5) <= power(n, rate, larger, 5) + 1e-9


def test_without_a_drop_the_power_is_the_rate_of_false_alarms() -> None:
    assert power(500, 0.01, 0.0, 11) == p_value(500, 0.01, 11)


def test_a_drop_that_leaves_no_room_for_the_noise_is_cut() -> None:
    assert power(40, 0.1, 0.95, 30) == power(40, 0.1, 0.8, 30) == tail(40, 0.9, 0.1, 30)


@given(st.integers(20, 2_000), st.floats(0, 0.1), st.floats(0.5, 0.95))
@settings(max_examples=40, deadline=None)
def test_the_visible_drop_is_the_smallest_with_that_power(
    n: int, rate: float, wanted: float
) -> None:
    needed = net_lost_needed(n, rate)
    assert needed is not None
    drop = visible_drop(n, rate, needed, power=wanted)
    assert drop is not None
    assert power(n, rate, drop, needed) >= wanted
    assert power(n, rate, drop - 2e-4, needed) < wanted


def test_a_set_too_noisy_to_show_any_drop_has_no_visible_one() -> None:
    assert visible_drop(20, 0.45, 20) is None


@pytest.mark.parametrize(
    ("drop", "points"),
    [(0.0, 0.0), (0.03, 3.0), (0.0301, 3.5), (0.0312, 3.5), (0.07, 7.0), (1, 100)],
)
def test_a_drop_is_shown_rounded_up_to_the_half_point(drop: float, points: float) -> None:
    assert half_points(drop) == points


def test_the_flip_rate_of_none_seen_is_not_zero() -> None:
    assert flip_rate(0, 500, 4) == 1 / 4_000
    assert flip_rate(23, 500, 4) == 24 / 4_000


def test_the_flip_rate_is_never_more_than_a_half() -> None:
    assert flip_rate(10, 10, 1) == 0.5
    assert p_value(10, flip_rate(10, 10, 1), 1) < 0.5


@pytest.mark.parametrize(("flips", "n", "pairs"), [(0, 0, 4), (0, 5, 0), (-1, 5, 4), (21, 5, 4)])
def test_impossible_flips_are_refused(flips: int, n: int, pairs: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        flip_rate(flips, n, pairs)


@pytest.mark.parametrize("n", [5, 50, 200, 1_000, 20_000, 1_000_000])
def test_the_need_without_calibration_is_that_of_two_pairs_without_a_flip(n: int) -> None:
    assert net_lost_needed(n, flip_rate(0, n, 2)) == UNKNOWN_EXACT_NEEDED


@pytest.mark.parametrize(("expected_flips", "needed"), [(0.2, 3), (0.21, 4), (0.48, 4), (0.49, 5)])
def test_the_need_without_calibration_holds_for_a_quarter_to_half_a_flip(
    expected_flips: float, needed: int
) -> None:
    # Lost and won are nearly Poisson, so their difference is nearly Skellam.
    assert stats.skellam.sf(needed - 1, expected_flips, expected_flips) <= ALPHA
    assert stats.skellam.sf(needed - 2, expected_flips, expected_flips) > ALPHA
    assert net_lost_needed(100_000, expected_flips / 100_000) == needed


def test_a_million_questions_need_little_memory() -> None:
    tracemalloc.start()
    try:
        needed = net_lost_needed(1_000_000, 0.03)
        assert needed is not None
        visible_drop(1_000_000, 0.03, needed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
