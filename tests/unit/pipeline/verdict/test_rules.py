import itertools
from dataclasses import asdict
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.types import Verdict
from pipeline.verdict.compare import Change, Comparison
from pipeline.verdict.gate import Gate
from tests.unit.pipeline.verdict.strategies import (
    MEANS,
    PERCENT,
    changes,
    comparison,
    gate,
    gates,
    judged,
)

STEADY = Change("ndcg@5", 0.8, 0.8)


def recall(now: float, before: float) -> Comparison:
    """Return a comparison in which nothing but recall changed."""
    return comparison(Change("recall@5", now, before), STEADY)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (0.91, 0.89, Verdict.OK),
        (0.91, 0.8899, Verdict.REGRESSED),
        (0.89, 0.91, Verdict.OK),
        (0.89, 0.9101, Verdict.IMPROVED),
        (0.5, 0.5, Verdict.OK),
        (1.0, 0.0, Verdict.REGRESSED),
        (0.0, 1.0, Verdict.IMPROVED),
    ],
)
def test_a_change_counts_when_it_is_larger_than_max_drop(
    before: float, now: float, verdict: Verdict
) -> None:
    assert judged(gate(0.02), recall(now, before)).verdict == verdict


@given(before=PERCENT, now=PERCENT, allowed=PERCENT)
def test_the_boundary_is_that_of_exact_arithmetic(before: int, now: int, allowed: int) -> None:
    drop = Fraction(before, 100) - Fraction(now, 100)
    limit = Fraction(allowed, 100)
    expected = (
        Verdict.REGRESSED if drop > limit else Verdict.IMPROVED if -drop > limit else Verdict.OK
    )

    judgement = judged(gate(allowed / 100), recall(now / 100, before / 100))

    assert judgement.verdict == expected


def test_a_single_question_of_a_million_counts_with_max_drop_zero() -> None:
    assert judged(gate(0.0), recall(0.499999, 0.5)).verdict == Verdict.REGRESSED


def test_a_run_without_a_reference_is_the_baseline() -> None:
    assert judged(gate(), None).verdict == Verdict.BASELINE


def test_one_metric_that_fell_outweighs_another_that_rose() -> None:
    mixed = comparison(Change("recall@5", 0.9, 0.5), Change("ndcg@5", 0.7, 0.8))

    assert judged(gate(), mixed).verdict == Verdict.REGRESSED


def test_a_metric_outside_of_the_gate_has_no_say() -> None:
    fell = comparison(Change("recall@5", 0.8, 0.8), STEADY, Change("mrr@5", 0.1, 0.9))

    assert judged(gate(), fell).verdict == Verdict.OK


@pytest.mark.parametrize(
    ("shared", "others", "verdict"),
    [(50, 50, Verdict.OK), (49, 51, Verdict.INCOMPARABLE), (0, 10, Verdict.INCOMPARABLE)],
)
def test_too_few_shared_questions_are_incomparable(
    shared: int, others: int, verdict: Verdict
) -> None:
    mostly_new = comparison(Change("recall@5", 0.8, 0.8), STEADY, shared=shared, new=others)

    assert judged(gate(min_shared=0.5), mostly_new).verdict == verdict


def test_no_shared_question_is_incomparable_even_where_none_is_asked_for() -> None:
    nothing = comparison(shared=0)

    assert judged(gate(min_shared=0.0), nothing).verdict == Verdict.INCOMPARABLE


def test_every_metric_that_fell_too_far_is_named_with_its_figures() -> None:
    both = comparison(Change("recall@5", 0.5, 0.75), Change("ndcg@5", 0.25, 0.5), shared=40)

    reasons = judged(gate(0.02), both).reasons

    assert [reason.split()[0] for reason in reasons] == ["recall@5", "ndcg@5"]
    for figure in ("0.7500", "0.5000", "-0.2500", "40 shared", "max_drop 0.02"):
        assert figure in reasons[0]


def test_an_ok_verdict_names_the_metric_that_fell_most() -> None:
    close = comparison(Change("recall@5", 0.795, 0.8), Change("ndcg@5", 0.789, 0.8))

    assert "ndcg@5 -0.0110" in judged(gate(), close).reasons[0]


@given(gate=gates(), changes=changes())
def test_looking_back_a_regression_is_no_regression_unless_metrics_disagree(
    gate: Gate, changes: list[Change]
) -> None:
    there = judged(gate, comparison(*changes)).verdict
    back = judged(
        gate, comparison(*(Change(c.metric, c.previous, c.current) for c in changes))
    ).verdict

    if there is Verdict.OK:
        assert back is Verdict.OK
    elif there is Verdict.IMPROVED:
        assert back is Verdict.REGRESSED
    else:
        gated = [c.difference for c in changes if c.metric in gate.metrics]
        rose = any(difference > gate.max_drop + 1e-6 for difference in gated)
        assert back is (Verdict.REGRESSED if rose else Verdict.IMPROVED)


@given(changes=changes(), gate=gates(), more=MEANS)
def test_a_larger_max_drop_never_makes_a_regression(
    changes: list[Change], gate: Gate, more: float
) -> None:
    assume(judged(gate, comparison(*changes)).verdict is not Verdict.REGRESSED)
    wider = Gate.from_json(asdict(gate) | {"max_drop": gate.max_drop + more})

    assert judged(wider, comparison(*changes)).verdict is not Verdict.REGRESSED


@given(changes=changes(), gate=gates(), data=st.data())
def test_the_order_of_the_gate_and_of_the_changes_does_not_matter(
    changes: list[Change], gate: Gate, data: st.DataObject
) -> None:
    shuffled = Gate.from_json(
        asdict(gate) | {"metrics": data.draw(st.permutations(list(gate.metrics)))}
    )
    mixed = data.draw(st.permutations(changes))

    one, other = judged(gate, comparison(*changes)), judged(shuffled, comparison(*mixed))

    assert one.verdict == other.verdict
    if one.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}:
        assert sorted(one.reasons) == sorted(other.reasons)


DROP, STILL, RISE = 0.7, 0.8, 0.9
"""Recall now, where it was 0.8 before."""


def few_shared() -> Comparison:
    return comparison(Change("recall@5", 0.1, 0.8), STEADY, shared=1, new=9)


@pytest.mark.parametrize(
    ("last", "pinned", "verdict"),
    [
        (recall(STILL, 0.8), recall(DROP, 0.8), Verdict.REGRESSED),
        (recall(DROP, 0.8), recall(RISE, 0.8), Verdict.REGRESSED),
        (recall(RISE, 0.8), recall(DROP, 0.8), Verdict.REGRESSED),
        (few_shared(), recall(DROP, 0.8), Verdict.REGRESSED),
        (recall(STILL, 0.8), recall(RISE, 0.8), Verdict.OK),
        (recall(RISE, 0.8), recall(STILL, 0.8), Verdict.OK),
        (recall(RISE, 0.8), recall(RISE, 0.8), Verdict.IMPROVED),
        (recall(STILL, 0.8), few_shared(), Verdict.INCOMPARABLE),
        (few_shared(), recall(RISE, 0.8), Verdict.INCOMPARABLE),
        (None, recall(DROP, 0.8), Verdict.REGRESSED),
        (None, recall(STILL, 0.8), Verdict.OK),
    ],
)
def test_of_two_references_the_worse_verdict_stands(
    last: Comparison | None, pinned: Comparison, verdict: Verdict
) -> None:
    assert judged(gate(), last, pinned).verdict == verdict


WORST_FIRST = ["regressed", "incomparable", "ok", "improved"]


@given(gate=gates(), last=changes(), pinned=changes(), shared=st.integers(0, 100))
def test_a_second_reference_never_makes_a_verdict_better_and_adds_nothing_of_its_own(
    gate: Gate, last: list[Change], pinned: list[Change], shared: int
) -> None:
    against = comparison(*last, shared=shared, gone=100 - shared), comparison(*pinned)
    alone = [judged(gate, each) for each in against]

    both = judged(gate, *against)

    assert both.verdict == min((answer.verdict for answer in alone), key=WORST_FIRST.index)
    assert both.verdict == judged(gate, against[1], against[0]).verdict


def test_the_reasons_of_both_references_are_given_and_told_apart() -> None:
    judgement = judged(gate(0.02), recall(0.79, 0.8), recall(0.79, 0.9))

    assert len(judgement.reasons) == 2
    fell, within = judgement.reasons
    assert within.startswith("largest change recall@5 -0.0100")
    assert fell.startswith("against the baseline: recall@5 fell from 0.9000 to 0.7900")


def test_a_slow_drift_that_passes_each_time_is_seen_from_the_baseline() -> None:
    means = [0.9 - 0.015 * run for run in range(11)]
    steps = [recall(now, before) for before, now in itertools.pairwise(means)]
    assert {judged(gate(0.02), step).verdict for step in steps} == {Verdict.OK}

    verdicts = [
        judged(gate(0.02), step, recall(now, means[0])).verdict
        for step, now in zip(steps, means[1:], strict=True)
    ]

    assert verdicts == [Verdict.OK] + [Verdict.REGRESSED] * 9
