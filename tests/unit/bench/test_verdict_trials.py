"""The trials that bench.verdicts judges: their noise is what they say, real or simulated."""

import numpy as np
import pytest

from bench.verdict_trials import MEASUREMENTS, Bools, Noise, dispersion, draw, plant, simulate
from pipeline.verdict.calibration import figures

SHARE = 0.75


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


def measurements(rate: float, builds: int = 20, questions: int = 300) -> Bools:
    """Real-like hits: three in four questions are hits, each measurement turns some of all."""
    base = np.arange(questions) < SHARE * questions
    turned: Bools = generator().random((builds, questions)) < rate
    return base ^ turned


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_simulated_questions_are_lost_and_won_at_the_flip_rate(spread: float) -> None:
    trials = simulate(SHARE, 400, Noise(0.02, spread), 20_000, generator())
    assert trials.lost.mean() == pytest.approx(8, rel=0.02)
    assert trials.won.mean() == pytest.approx(8, rel=0.02)
    assert trials.flips.mean() == pytest.approx(16, rel=0.02)


def test_net_losses_have_the_variance_of_a_trinomial() -> None:
    trials = simulate(SHARE, 400, Noise(0.02), 20_000, generator())
    assert (trials.lost - trials.won).var() == pytest.approx(2 * 0.02 * 400, rel=0.04)


def test_the_rounds_are_as_far_apart_as_the_judged_pair() -> None:
    trials = simulate(SHARE, 400, Noise(0.02, spread=0.5), 20_000, generator())
    apart = 2 * trials.totals.var(axis=1, ddof=1).mean()
    assert apart == pytest.approx((trials.lost - trials.won).var(), rel=0.05)


def test_spread_moves_questions_together() -> None:
    trials = simulate(SHARE, 400, Noise(0.02, spread=0.5), 20_000, generator())
    # Each of the two kinds turns f n / 2 in either measurement, with half of that as deviation.
    together = 4 * (0.5 * 0.02 * 400 / 2) ** 2
    assert (trials.lost - trials.won).var() == pytest.approx(16 + together, rel=0.05)


def test_without_noise_nothing_changes() -> None:
    trials = simulate(SHARE, 50, Noise(0), 100, generator())
    assert not trials.lost.any()
    assert not trials.won.any()
    assert not trials.flips.any()
    assert not np.ptp(trials.totals, axis=1).any()


def test_the_rounds_of_a_real_draw_are_what_the_product_calibrates_on() -> None:
    hits = measurements(0.02, builds=MEASUREMENTS)
    trials = draw(hits, hits[0], hits.shape[1], 1, generator())
    chosen = hits[generator().permutation(len(hits))]
    expected = figures(["hit@5"], [each[:, None].astype(float) for each in chosen[2:]])
    assert trials.flips.sum() == expected.flips
    assert np.ptp(trials.totals) == expected.largest_net
    assert trials.lost[0] - trials.won[0] == chosen[0].sum() - chosen[1].sum()


def test_a_real_draw_judges_no_build_that_it_calibrates_on() -> None:
    # Every build has as many hits as its number, so that the totals tell the builds.
    hits = np.tri(20, 300, dtype=np.bool_)
    trials = draw(hits, hits[-1], 300, 200, generator())
    first = trials.hits + trials.lost - trials.won
    for judged in (first, trials.hits):
        assert not (trials.totals == judged[:, None]).any()


def test_what_the_index_missed_is_counted_against_exact_search() -> None:
    exact = np.ones(300, dtype=np.bool_)
    trials = draw(measurements(0.02), exact, 300, 50, generator())
    first = trials.hits + trials.lost - trials.won
    np.testing.assert_array_equal(trials.missed, 300 - first)


def test_a_planted_drop_is_the_change_of_the_net_loss() -> None:
    before = simulate(SHARE, 200, Noise(0.03), 500, generator())
    after = plant(before, 0.05, generator())
    assert ((after.lost - after.won) - (before.lost - before.won) == 10).all()
    assert (before.hits - after.hits == 10).all()
    assert (after.won >= 0).all()
    assert (after.lost >= before.lost).all()


def test_half_a_question_is_planted_in_half_of_the_trials() -> None:
    before = simulate(SHARE, 50, Noise(0), 10_000, generator())
    lost = plant(before, 0.01, generator()).lost
    assert set(lost.tolist()) == {0, 1}
    assert lost.mean() == pytest.approx(0.5, abs=0.02)


def test_a_drop_takes_no_more_hits_than_there_are() -> None:
    before = simulate(0.05, 50, Noise(0), 200, generator())
    after = plant(before, 0.2, generator())
    assert (after.hits >= 0).all()
    assert (after.lost == np.minimum(before.hits, 10)).all()


def test_dispersion_is_one_where_questions_flip_alone() -> None:
    rate, dispersed = dispersion(measurements(0.02, builds=400))
    assert rate == pytest.approx(0.02 * 0.98, rel=0.05)
    assert dispersed == pytest.approx(1, abs=0.2)


def test_dispersion_grows_where_questions_flip_together() -> None:
    alone = measurements(0.02, builds=400)
    # Four questions that always do the same: nets four times as large, a quarter as often.
    together = np.repeat(alone[:, :75], 4, axis=1)
    assert dispersion(together)[1] == pytest.approx(4 * dispersion(alone[:, :75])[1])


def test_no_flip_at_all_has_no_dispersion() -> None:
    assert dispersion(measurements(0.0)) == (0.0, 1.0)
