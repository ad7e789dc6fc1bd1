"""Whole builds that differ, against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verdict.builds import Deviation, of_builds, of_index_loss


@given(
    questions=st.floats(0.01, 500),
    rounds=st.none() | st.integers(2, 40),
    alpha=st.sampled_from([0.001, 0.05]),
)
def test_the_needed_loss_is_the_least_whole_one_that_is_rare_enough(
    questions: float, rounds: int | None, alpha: float
) -> None:
    deviation = Deviation(questions, rounds)
    needed = deviation.needed(alpha)

    assert deviation.p_value(needed) <= alpha * (1 + 1e-9)
    assert needed == 1 or deviation.p_value(needed - 1) >= alpha * (1 - 1e-9)


def test_without_deviation_any_loss_is_more() -> None:
    assert [Deviation(0.0).p_value(net) for net in (-1, 0, 1)] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("rounds", [3, 5, 13])
def test_builds_measured_in_few_rounds_keep_the_promised_rate_of_alarms(rounds: int) -> None:
    generator = np.random.default_rng(rounds)
    builds = generator.normal(700, 12, size=(40_000, rounds + 2))
    net = builds[:, 0] - builds[:, 1]
    deviations = builds[:, 2:].std(axis=1, ddof=1)

    p = np.array(
        [of_builds(d, rounds).p_value(lost) for d, lost in zip(deviations, net, strict=True)]
    )

    assert np.mean(p <= 0.01) == pytest.approx(0.01, abs=0.0025)


def test_a_bound_holds_questions_that_flip_alone_and_builds_that_move_together() -> None:
    deviation = of_index_loss(0.04, 0.06, 1000)
    generator = np.random.default_rng(5)
    flips = generator.multinomial(1000, [0.06, 0.06, 0.88], size=50_000)
    builds = generator.normal(0, 0.25 * 0.04 * 1000, size=(50_000, 2))
    net = flips[:, 0] - flips[:, 1] + builds[:, 0] - builds[:, 1]

    assert net.std() == pytest.approx(deviation.questions, rel=0.02)


@pytest.mark.parametrize("questions", [0.0, 10.0])
def test_a_drop_of_the_visible_size_is_found_as_often_as_is_said(questions: float) -> None:
    deviation = Deviation(questions)
    drop = deviation.visible_drop(1000, 40, 0.8)
    generator = np.random.default_rng(6)

    net = generator.binomial(1000, drop, 50_000) + generator.normal(0, questions, 50_000)

    assert np.mean(net >= 40) == pytest.approx(0.8, abs=0.03)
