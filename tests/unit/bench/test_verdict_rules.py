"""The rules that bench.verdicts compares, and their false alarms against the trinomial."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bench.verdict_rules import (
    Rule,
    a_year,
    alarm_shares,
    exact_false_alarms,
    mcnemar_needed,
    needed,
    student_needed,
)
from bench.verdict_trials import Noise, Trials, simulate
from pipeline.verdict import estimate, noise
from pipeline.verdict.calibration import Figures
from pipeline.verdict.noise_rule import answer

TRIALS = 100_000


def trial(lost: int, won: int, n: int = 100, rounds: tuple[int, ...] = (80,) * 13) -> Trials:
    return Trials(
        n=n,
        lost=np.array([lost]),
        won=np.array([won]),
        hits=np.array([80]),
        flips=np.zeros((1, len(rounds) - 1), dtype=np.int64),
        totals=np.array([rounds]),
    )


def alarms(trials: Trials, flip_rate: float = 0.0) -> dict[Rule, float]:
    return alarm_shares(trials, needed(trials, flip_rate))


@pytest.mark.parametrize(("n", "rate"), [(50, 0.01), (200, 0.01), (200, 0.03), (500, 0.03)])
def test_simulated_false_alarms_agree_with_the_trinomial(n: int, rate: float) -> None:
    trials = simulate(0.75, n, Noise(rate), TRIALS, np.random.default_rng(3))
    needs = needed(trials, rate)
    counted, exact = alarm_shares(trials, needs), exact_false_alarms(n, rate, needs)
    assert exact[Rule.KNOWN] == noise.tail(n, rate, rate, int(needs[Rule.KNOWN]))
    for rule, chance in exact.items():
        four_deviations = 4 * (chance * (1 - chance) / TRIALS) ** 0.5
        assert counted[rule] == pytest.approx(chance, abs=four_deviations + 1e-9), rule


def test_with_the_rate_known_false_alarms_keep_alpha() -> None:
    for n in (50, 200, 1000):
        for rate in (0.002, 0.01, 0.03):
            trials = simulate(0.75, n, Noise(rate), 10, np.random.default_rng(3))
            chance = exact_false_alarms(n, rate, needed(trials, rate))[Rule.KNOWN]
            assert 0 < chance <= noise.ALPHA


def test_the_plain_rule_lets_a_drop_of_exactly_its_threshold_pass() -> None:
    assert alarms(trial(2, 0))[Rule.PLAIN] == 0
    assert alarms(trial(3, 0))[Rule.PLAIN] == 1
    assert alarms(trial(5, 3))[Rule.PLAIN] == 0


@pytest.mark.parametrize("changed", range(41))
def test_mcnemars_need_is_what_scipys_two_sided_sign_test_gives(changed: int) -> None:
    need = mcnemar_needed(40)[changed]
    for lost in range((changed + 1) // 2, changed + 1):
        p = stats.binomtest(lost, changed).pvalue if changed else 1.0
        assert (2 * lost - changed >= need) == (p <= 0.05)


def test_mcnemar_does_not_alarm_when_questions_are_won() -> None:
    assert alarms(trial(20, 0))[Rule.MCNEMAR] == 1
    assert alarms(trial(0, 20))[Rule.MCNEMAR] == 0


def test_exact_search_never_calibrated_needs_four_net_lost() -> None:
    assert alarms(trial(4, 1))[Rule.KNOWN] == 0
    assert alarms(trial(4, 0))[Rule.KNOWN] == 1


def test_without_t_the_largest_change_of_the_first_five_rounds_is_the_least() -> None:
    rounds = (80, 79, 71, 75, 76, 60, *[80] * 7)
    assert alarms(trial(9, 0, rounds=rounds))[Rule.ALONE] == 0
    assert alarms(trial(10, 0, rounds=rounds))[Rule.ALONE] == 1


@pytest.mark.parametrize("rounds", [(80,) * 13, (80, 79, 71, 75, 76, *[80] * 8)])
def test_calibrated_rules_need_what_the_noise_rule_of_the_product_asks_for(
    rounds: tuple[int, ...],
) -> None:
    tried = trial(0, 0, rounds=rounds)
    needs = needed(tried, 0.0)
    for rule, number in ((Rule.FEW, 5), (Rule.MANY, 13)):
        measured = Figures(
            n=100, pairs=number - 1, flips=0, largest_net=0, differences={},
            totals={"hit@5": [float(total) for total in rounds[:number]]},
        )  # fmt: skip
        found = answer(100, 0, measured.estimate(), noise.ALPHA, "hit@5")
        assert float(needs[rule][0]) == found.needed


def test_the_index_loss_bounds_the_noise_where_it_is_known() -> None:
    assert Rule.BOUND not in needed(trial(0, 0), 0.0)
    missed, found_more = np.array([6]), np.array([2])
    known = replace(trial(0, 0), missed=missed, found_more=found_more)
    bound = estimate.from_index_loss(6, 100, 0.04)
    assert needed(known, 0.0)[Rule.BOUND] == answer(100, 0, bound, noise.ALPHA).needed


@pytest.mark.parametrize("rounds", [5, 13])
def test_students_t_holds_alpha_however_far_normal_rounds_are_apart(rounds: int) -> None:
    random = np.random.default_rng(5)
    totals = np.rint(random.normal(5000, 300, size=(400_000, rounds + 2))).astype(np.int64)
    net = totals[:, 0] - totals[:, 1]
    share = (net >= student_needed(totals[:, 2:])).mean()
    assert share == pytest.approx(noise.ALPHA, rel=0.2)


def test_a_year_of_runs_at_alpha_has_a_false_alarm_in_one_of_twenty() -> None:
    assert a_year(noise.ALPHA) == pytest.approx(1 - (1 - noise.ALPHA) ** 52)
    assert a_year(0.0) == 0
    assert a_year(1.0) == 1
    assert a_year(1e-18) == pytest.approx(52e-18)
