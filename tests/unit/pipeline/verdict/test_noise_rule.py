"""The noise rule against sums of SciPy's binomials, and what stands beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom

from pipeline.types import Verdict
from pipeline.verdict import estimate
from pipeline.verdict.compare import Change, Comparison, ExactComparison
from pipeline.verdict.estimate import NoiseEstimate, Source
from pipeline.verdict.gate import Cause, Finding, Gate, Judgement, Rule
from pipeline.verdict.noise_rule import answer
from pipeline.verdict.resampling import Differences
from pipeline.verdict.rules import Against, judge
from tests.unit.pipeline.verdict.strategies import OWN, comparison, gate

NOISE = gate(rule="noise")
STILL = (Change("recall@5", 0.8, 0.8), Change("ndcg@5", 0.8, 0.8))


def known(rate: float, *totals: int) -> NoiseEstimate:
    """Return what A/A pairs of 200 questions showed, and how many hits their rounds had."""
    return NoiseEstimate(
        source=Source.CALIBRATED, flip_rate=rate, measured=200, totals={"hit@5": totals}
    )


def moved(lost: int, won: int, n: int = 200, **more: object) -> Comparison:
    return comparison(*STILL, shared=n, lost=lost, won=won, **more)  # type: ignore[arg-type]


def judged(compared: Comparison, noise: NoiseEstimate | None, rules: Gate = NOISE) -> Judgement:
    return judge(rules, OWN, Against(compared, noise))


def one(judgement: Judgement, rule: Rule) -> Finding:
    (found,) = [each for each in judgement.findings if each.rule is rule]
    return found


def brute_p(n: int, rate: float, net: int) -> float:
    """Sum over the number lost; the number won is binomial among the others."""
    total = 0.0
    for lost in range(n + 1):
        most = lost - net
        if most >= 0:
            total += binom.pmf(lost, n, rate) * binom.cdf(most, n - lost, rate / (1 - rate))
    return float(total)


@given(
    n=st.integers(5, 40),
    rate=st.sampled_from([0.002, 0.01, 0.05, 0.2]),
    lost=st.integers(0, 20),
    won=st.integers(0, 20),
)
def test_a_net_loss_regresses_exactly_when_noise_gives_it_in_at_most_alpha_of_runs(
    n: int, rate: float, lost: int, won: int
) -> None:
    assume(max(lost, won) <= n)
    p, back = brute_p(n, rate, lost - won), brute_p(n, rate, won - lost)
    assume(min(abs(p - 0.001), abs(back - 0.001), abs(p - 0.05)) > 1e-9)
    expected = Verdict.OK
    if p <= 0.001:
        expected = Verdict.REGRESSED
    elif back <= 0.001:
        expected = Verdict.IMPROVED
    elif p <= 0.05 and lost > won:
        expected = Verdict.WATCH

    assert judged(moved(lost, won, n), known(rate)).verdict == expected


@pytest.mark.parametrize(
    ("lost", "won", "verdict"),
    [
        (3, 0, Verdict.WATCH),
        (4, 0, Verdict.REGRESSED),
        (9, 6, Verdict.WATCH),
        (0, 4, Verdict.IMPROVED),
        (1, 0, Verdict.OK),
        (5, 5, Verdict.OK),
    ],
)
def test_without_an_index_four_net_lost_questions_are_a_regression(
    lost: int, won: int, verdict: Verdict
) -> None:
    assert judged(moved(lost, won), estimate.exact(200)).verdict == verdict


def test_the_largest_net_loss_of_unchanged_systems_is_never_an_alarm() -> None:
    rounds = (150, *[154] * 12, 159)
    calm = judged(moved(9, 0), known(0.002, *rounds))

    assert calm.verdict == Verdict.WATCH
    assert judged(moved(10, 0), known(0.002, *rounds)).verdict == Verdict.REGRESSED
    assert "10 would be" in one(calm, Rule.NOISE).text


def test_rounds_that_differ_as_a_whole_ask_for_what_students_t_does() -> None:
    totals = (150, 156, 147, 153, 159)
    deviation = float(np.sqrt(2) * np.std(totals, ddof=1))
    least = int(stats.t.isf(0.001, 4) * deviation) + 1

    found = answer(200, 30, known(0.01, *totals), 0.001, "hit@5")

    assert found.needed == least
    assert found.p == pytest.approx(stats.t.sf(30 / deviation, 4))
    twice = answer(400, 30, known(0.01, *totals), 0.001, "hit@5")
    assert twice.needed == int(stats.t.isf(0.001, 4) * deviation * 2) + 1


@pytest.mark.parametrize(("missed", "n", "rate"), [(0, 100, 0.01), (9, 100, 0.1), (99, 100, 0.5)])
def test_the_index_loss_bounds_the_flip_rate(missed: int, n: int, rate: float) -> None:
    found = estimate.from_index_loss(missed, n, 0.0)

    assert (found.source, found.flip_rate) == (Source.INDEX_LOSS, rate)


def test_the_index_loss_bounds_what_whole_builds_lose_too() -> None:
    found = answer(1000, 0, estimate.from_index_loss(59, 1000, 0.04), 0.001)
    alone = answer(1000, 0, known(0.06), 0.001)

    deviation = np.sqrt(2 * 1000 * 0.06 + 2 * (0.25 * 0.04 * 1000) ** 2)
    assert found.needed == int(stats.norm.isf(0.001) * deviation) + 1
    assert alone.needed is not None
    assert found.needed > alone.needed


def test_without_any_estimate_the_plain_rule_decides_and_it_is_said() -> None:
    fell = comparison(Change("recall@5", 0.7, 0.8), STILL[1], lost=20)
    held = judged(moved(9, 0), None)

    assert judged(fell, None).verdict == Verdict.REGRESSED
    assert held.verdict == Verdict.OK
    assert one(held, Rule.NOISE).warning
    assert one(held, Rule.NOISE).text.startswith("uncalibrated: ")


def test_the_plain_rule_is_always_shown_beside_and_never_decides_there() -> None:
    fell = comparison(Change("recall@5", 0.7, 0.8), STILL[1], shared=200)
    beside = one(judged(fell, estimate.exact(200)), Rule.THRESHOLD)

    assert judged(fell, estimate.exact(200)).verdict == Verdict.OK
    assert (beside.verdict, beside.counts) == (Verdict.REGRESSED, False)
    assert beside.text.startswith("plain rule, shown beside: recall@5 fell from 0.8000 to 0.7000")


def test_with_the_plain_rule_the_noise_answer_is_shown_beside() -> None:
    judgement = judged(moved(50, 0), estimate.exact(200), gate())

    assert judgement.verdict == Verdict.OK
    assert (one(judgement, Rule.NOISE).verdict, one(judgement, Rule.NOISE).counts) == (
        Verdict.REGRESSED,
        False,
    )


@pytest.mark.parametrize(
    ("n", "points", "warns"), [(50, 8.5, True), (200, 3.0, False), (1000, 1.0, False)]
)
def test_the_blind_spot_is_the_published_one_and_warns_beyond_the_tolerance(
    n: int, points: float, *, warns: bool
) -> None:
    spot = one(judged(moved(0, 0, n), known(0.002)), Rule.BLIND_SPOT)

    assert f"cannot see drops under {points:.1f} points" in spot.text
    assert (spot.warning, spot.counts) == (warns, False)


def test_noise_that_may_lose_everything_sees_nothing_and_says_so() -> None:
    judgement = judged(moved(3, 0, 3), known(0.5))

    assert judgement.verdict == Verdict.OK
    assert "cannot see any drop" in one(judgement, Rule.BLIND_SPOT).text


def test_both_questions_are_answered_noise_and_other_questions_of_this_kind() -> None:
    change = Change("hit@5", 0.75, 0.8, interval=(-0.09, -0.01), p=0.01)
    compared = comparison(change, *STILL, shared=200, lost=10)

    judgement = judged(compared, known(0.002))

    assert "more than noise" in one(judgement, Rule.NOISE).text
    said = one(judgement, Rule.INTERVAL).text
    assert said == (
        "for other questions of this kind hit@5 would fall: -0.0900 to -0.0100 (95 % interval)"
    )


def compared_exactly(lost: int, won: int, before: float, now: float) -> ExactComparison:
    return ExactComparison(
        shared=200, changes=[], lost=lost, won=won, loss_now=now, loss_before=before,
        missed_now=round(200 * now), missed_before=round(200 * before),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("served_lost", "exact_lost", "loss_now", "verdict", "cause"),
    [
        (20, 0, 0.13, Verdict.REGRESSED, Cause.INDEX),
        (20, 20, 0.03, Verdict.REGRESSED, Cause.CORPUS),
        (40, 20, 0.13, Verdict.REGRESSED, Cause.BOTH),
        (0, 6, 0.0, Verdict.REGRESSED, Cause.CORPUS),
        (0, 0, 0.03, Verdict.OK, None),
    ],
)
def test_exact_search_tells_the_index_from_the_corpus(
    served_lost: int, exact_lost: int, loss_now: float, verdict: Verdict, cause: Cause | None
) -> None:
    apart = compared_exactly(exact_lost, 0, 0.03, loss_now)

    judgement = judged(moved(served_lost, 0, exact=apart), known(0.01))

    assert (judgement.verdict, judgement.cause) == (verdict, cause)


def test_an_index_loss_that_did_not_grow_is_no_cause() -> None:
    apart = compared_exactly(3, 0, 0.01, 0.01)

    judgement = judged(moved(20, 0, exact=apart), known(0.01))

    assert (judgement.verdict, judgement.cause) == (Verdict.REGRESSED, None)


def test_a_run_that_is_not_regressed_has_no_cause() -> None:
    apart = compared_exactly(6, 0, 0.01, 0.01)

    judgement = judged(moved(6, 0, exact=apart), known(0.01), gate())

    assert one(judgement, Rule.EXACT).verdict == Verdict.REGRESSED
    assert (judgement.verdict, judgement.cause) == (Verdict.OK, None)


def test_an_untouched_index_is_not_said_to_be_exact_search() -> None:
    judgement = judged(moved(9, 0), estimate.untouched(200))

    assert (judgement.verdict, judgement.cause) == (Verdict.REGRESSED, None)
    assert "the index is untouched" in one(judgement, Rule.NOISE).text


def test_all_of_a_tiny_set_lost_is_watched_where_no_loss_could_be_an_alarm() -> None:
    judgement = judged(moved(2, 0, 2), estimate.exact(2))

    assert judgement.verdict == Verdict.WATCH
    assert one(judgement, Rule.BLIND_SPOT).warning


def test_the_largest_net_is_that_of_as_many_questions() -> None:
    rounds = (3000, *[3020] * 12, 3040)
    calibrated = replace(known(0.0001, *rounds), measured=5000)

    found = answer(200, 3, calibrated, 0.001, "hit@5")

    assert found.needed is not None
    assert found.needed < 8


def test_a_search_without_an_index_can_only_have_lost_by_its_corpus() -> None:
    assert judged(moved(9, 0), estimate.exact(200)).cause == Cause.CORPUS
    changed = moved(9, 0, setup=["strategy.match any -> all"])
    assert judged(changed, estimate.exact(200)).cause is None


def test_a_part_of_a_question_is_no_whole_one_without_calibration() -> None:
    rules = gate(rule="noise", outcome="ndcg@5")
    compared = comparison(Change("recall@5", 0.8, 0.8), Change("ndcg@5", 0.78, 0.8), shared=190)

    assert judged(compared, estimate.exact(190), rules).verdict == Verdict.WATCH
    more = comparison(Change("recall@5", 0.8, 0.8), Change("ndcg@5", 0.778, 0.8), shared=190)
    assert judged(more, estimate.exact(190), rules).verdict == Verdict.REGRESSED


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_a_graded_outcome_of_whole_questions_answers_as_the_exact_rule(rate: float) -> None:
    n = 300
    flips = round(rate * 200_000)
    noise = Differences.of([-1.0, 0.0, 1.0], [flips, 200_000 - 2 * flips, flips])
    graded = answer(n, 8, replace(known(rate), differences={"ndcg@5": noise}), 0.001, "ndcg@5")
    exact = answer(n, 8, known(rate), 0.001)

    assert exact.needed is not None
    assert graded.needed is not None
    assert math.ceil(graded.needed) == exact.needed
    assert graded.p == pytest.approx(exact.p, rel=5e-3)
    assert graded.blind == pytest.approx(exact.blind, abs=0.006)


def test_the_same_two_runs_always_get_the_same_figures() -> None:
    rules = gate(rule="noise", outcome="ndcg@5")
    noise = NoiseEstimate(
        source=Source.CALIBRATED, flip_rate=0.01, measured=450, totals={"ndcg@5": (300.5, 299.25)},
        differences={"ndcg@5": Differences.of([-0.3, 0.0, 0.2], [5, 900, 6])},
    )  # fmt: skip
    compared = comparison(Change("recall@5", 0.8, 0.8), Change("ndcg@5", 0.79, 0.8), shared=500)

    assert judged(compared, noise, rules) == judged(compared, noise, rules)


def test_ten_drops_too_small_for_the_gate_are_seen_from_the_baseline() -> None:
    steps = [judge(NOISE, OWN, Against(moved(2, 0), estimate.exact(200))) for _ in range(10)]
    assert {step.verdict for step in steps} <= {Verdict.OK, Verdict.WATCH}

    verdicts = [
        judge(
            NOISE,
            OWN,
            Against(moved(2, 0), estimate.exact(200)),
            Against(moved(2 * run, 0), estimate.exact(200)),
        ).verdict
        for run in range(1, 11)
    ]

    assert Verdict.REGRESSED not in verdicts[:1]
    assert set(verdicts[1:]) == {Verdict.REGRESSED}
