"""The smallest drop that a set can show, against simulated runs of a search without noise."""

import numpy as np
import pytest

from pipeline.verdict.estimate import from_index_loss
from pipeline.verdict.visible import AT_95, smallest_drop

DRAWS = 200_000


def alarms(n: int, drop: float, needed: int) -> float:
    """Return how often so many more questions are lost than won, at a flip rate of 1 / (4 n)."""
    flips = 1 / (4 * n)
    chances = [flips + drop, flips, 1 - 2 * flips - drop]
    counts = np.random.default_rng(n).multinomial(n, chances, size=DRAWS)
    return float(np.mean(counts[:, 0] - counts[:, 1] >= needed))


@pytest.mark.parametrize("n", [20, 100, 1_000])
@pytest.mark.parametrize("alpha", [AT_95, 0.001])
def test_the_drop_is_found_four_times_in_five_and_a_smaller_one_less_often(
    n: int, alpha: float
) -> None:
    needed = next(c for c in range(1, n) if alarms(n, 0.0, c) <= alpha)
    drop = smallest_drop(n, alpha)
    assert drop is not None
    assert alarms(n, drop, needed) >= 0.8 - 0.004
    assert alarms(n, drop * 0.95, needed) < 0.8


def test_more_questions_show_smaller_drops_and_a_stricter_gate_larger_ones() -> None:
    at_95 = [smallest_drop(n, AT_95) or 1.0 for n in (20, 50, 200, 1_000)]
    strict = [smallest_drop(n, 0.001) or 1.0 for n in (20, 50, 200, 1_000)]
    assert at_95 == sorted(at_95, reverse=True)
    assert all(a < b for a, b in zip(at_95, strict, strict=True))


def test_noise_hides_drops() -> None:
    without, noisy = (
        smallest_drop(200, 0.001),
        smallest_drop(200, 0.001, from_index_loss(19, 200, 0.1), "hit@5"),
    )
    assert without is not None
    assert noisy is None or noisy > without


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_questions_show_nothing_at_the_gate(n: int) -> None:
    assert smallest_drop(n, 0.001) is None
