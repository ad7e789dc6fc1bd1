"""The distribution of summed noise against exact enumeration and against simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.verdict.graded import NoiseSum
from pipeline.verdict.resampling import Differences

SIZES = st.lists(
    st.tuples(st.integers(-2520, 2520), st.integers(1, 50)), min_size=1, max_size=3,
    unique_by=lambda pair: pair[0],
)  # fmt: skip


def every_sum(noise: Differences, n: int) -> list[tuple[float, float]]:
    """Return each way to draw n differences with signs, and its probability."""
    counts = [*noise.counts.tolist(), 1]
    sizes = [*np.abs(noise.values).tolist(), 1.0]
    one = [
        (sign * size, count / sum(counts) / 2)
        for size, count in zip(sizes, counts, strict=True)
        for sign in (1, -1)
    ]
    return [
        (sum(value for value, _ in drawn), float(np.prod([chance for _, chance in drawn])))
        for drawn in itertools.product(one, repeat=n)
    ]


@settings(deadline=None)
@given(pairs=SIZES, n=st.integers(1, 3), net=st.integers(-6300, 6300))
def test_the_p_value_is_that_of_all_the_ways_to_draw(
    pairs: list[tuple[int, int]], n: int, net: int
) -> None:
    noise = Differences.of([v / 2520 for v, _ in pairs], [c for _, c in pairs])
    expected = sum(p for total, p in every_sum(noise, n) if total >= net / 2520 - 1e-9)

    assert NoiseSum(noise, n).p_value(net / 2520) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(pairs=SIZES, n=st.integers(1, 100), alpha=st.sampled_from([0.001, 0.05]))
def test_the_needed_loss_is_the_least_that_noise_reaches_so_rarely(
    pairs: list[tuple[int, int]], n: int, alpha: float
) -> None:
    total = NoiseSum(Differences.of([v / 2520 for v, _ in pairs], [c for _, c in pairs]), n)

    needed = total.needed(alpha)

    assert total.p_value(needed) <= alpha
    assert needed == 1 / 2520 or total.p_value(needed - 1 / 2520) > alpha


def test_a_simulated_unchanged_system_loses_as_often_as_is_said() -> None:
    generator = np.random.default_rng(7)
    seen = generator.choice([-0.4, -0.1, 0.0, 0.1, 0.5], p=[0.05, 0.05, 0.8, 0.05, 0.05], size=4000)
    total = NoiseSum(Differences.from_raw(seen), 200)
    again = generator.choice(np.abs(seen), size=(20_000, 200))
    signs = generator.choice([-1, 1], size=again.shape)
    sums = (again * signs).sum(axis=1)

    for net in (1.0, 2.5, 4.0):
        rate = float(np.mean(sums >= net - 1e-9))
        assert total.p_value(net) == pytest.approx(rate, abs=0.01)


def test_a_drop_of_the_visible_size_is_found_as_often_as_is_said() -> None:
    generator = np.random.default_rng(8)
    total = NoiseSum(Differences.of([-0.2, 0.0, 0.2], [50, 900, 50]), 500)
    needed = total.needed(0.001)
    drop = total.visible_drop(needed, 0.8)
    assert drop is not None

    noise = generator.choice([-0.2, 0.0, 0.2], p=[0.05, 0.9, 0.05], size=(20_000, 500)).sum(axis=1)
    lost = generator.binomial(500, drop, size=20_000)

    assert np.mean(noise + lost >= needed - 1e-9) == pytest.approx(0.8, abs=0.03)


def test_a_million_questions_take_no_more_memory_than_the_spread_of_their_sum() -> None:
    total = NoiseSum(Differences.of([-0.3, 0.0, 0.3], [500, 9000, 500]), 1_000_000)

    assert len(total._tails) <= 1 << 24
    assert total.p_value(0.0) == pytest.approx(0.5, abs=0.01)
    assert total.visible_drop(5e6, 0.8) is None


def test_thirds_add_up_to_whole_questions() -> None:
    noise = Differences.of([-1 / 3, 0.0, 1 / 3], [3, 94, 3])
    total = NoiseSum(noise, 100)
    generator = np.random.default_rng(9)
    sizes = [*np.abs(noise.values), 1.0]
    chances = np.array([*noise.counts, 1]) / 101
    drawn = generator.choice(
        np.rint(np.array(sizes) * 3).astype(int), p=chances, size=(40_000, 100)
    )
    sums = (drawn * generator.choice([-1, 1], size=drawn.shape)).sum(axis=1)

    assert total.p_value(2.0) == pytest.approx(np.mean(sums >= 6), rel=0.15)
