from dataclasses import asdict, replace

import pytest
from hypothesis import given

from pipeline.types import Verdict
from pipeline.verdict.compare import CategoryChange
from pipeline.verdict.gate import Gate, Rule
from pipeline.verdict.own_rules import Own, category_findings, measured, own_findings
from tests.unit.pipeline.verdict.strategies import comparison, gate, gates


@pytest.mark.parametrize(
    ("scored", "failed", "max_failed", "is_measured"),
    [
        (99, 1, 0.01, True),
        (98, 2, 0.01, False),
        (297, 3, 0.01, True),
        (93, 7, 0.07, True),
        (9_899, 101, 0.01, False),
        (1, 0, 0.0, True),
        (1_000_000, 1, 0.0, False),
        (1, 1, 1.0, True),
    ],
)
def test_exactly_max_failed_of_the_questions_asked_may_fail(
    scored: int, failed: int, max_failed: float, *, is_measured: bool
) -> None:
    judgement = measured(
        gate(max_failed=max_failed), Own(scored=scored, failed=failed, ineligible=0)
    )

    assert (judgement is None) is is_measured


def test_ineligible_questions_do_not_dilute_the_failures() -> None:
    judgement = measured(
        gate(max_failed=0.01, max_ineligible=1.0), Own(scored=10, failed=1, ineligible=1_000_000)
    )

    assert judgement is not None
    assert "1 of 11" in judgement.reasons[0]


@pytest.mark.parametrize(("failed", "ineligible"), [(0, 0), (0, 5), (5, 0)])
def test_a_run_without_a_scored_question_is_unmeasured(failed: int, ineligible: int) -> None:
    judgement = measured(
        gate(max_failed=1.0, max_ineligible=1.0),
        Own(scored=0, failed=failed, ineligible=ineligible),
    )

    assert judgement is not None
    assert judgement.verdict == Verdict.UNMEASURED


@given(gate=gates())
def test_a_gate_comes_back_from_the_record_as_it_was(gate: Gate) -> None:
    assert Gate.from_json(asdict(gate)) == gate


@pytest.mark.parametrize(
    ("scored", "ineligible", "is_measured"), [(50, 50, True), (49, 51, False), (1, 1, True)]
)
def test_exactly_max_ineligible_of_the_questions_may_have_no_live_key(
    scored: int, ineligible: int, *, is_measured: bool
) -> None:
    judgement = measured(
        gate(max_ineligible=0.5), Own(scored=scored, failed=0, ineligible=ineligible)
    )

    assert (judgement is None) is is_measured
    if judgement is not None:
        assert "was it re-chunked?" in judgement.reasons[0]


def reached(recall: float = 0.9, missed: tuple[str, ...] = ()) -> Own:
    return Own(
        scored=100, failed=0, ineligible=0, metrics={"recall@5": recall}, must_pass=8, missed=missed
    )


@pytest.mark.parametrize(("recall", "speaks"), [(0.8, False), (0.7999, True), (1.0, False)])
def test_a_floor_speaks_when_the_metric_lies_under_it(recall: float, *, speaks: bool) -> None:
    found = own_findings(gate(floor={"recall@5": 0.8}), reached(recall))

    assert [finding.rule for finding in found] == ([Rule.FLOOR] if speaks else [])
    assert all("under its floor 0.8" in finding.text for finding in found)


def test_missed_must_pass_questions_are_counted_and_the_first_ones_quoted() -> None:
    (finding,) = own_findings(gate(), reached(missed=("a?", "b?", "c?", "d?", "e?")))

    assert (finding.rule, finding.verdict) == (Rule.MUST_PASS, Verdict.REGRESSED)
    assert finding.text == "5 of 8 must-pass questions missed: a?; b?; c?; and 2 more"
    assert own_findings(gate(must_pass=False), reached(missed=("a?",))) == []


def test_a_category_speaks_only_with_enough_questions_and_a_drop_beyond_the_allowed() -> None:
    compared = comparison(
        categories=[
            CategoryChange("fell", "recall@5", -0.2, 20),
            CategoryChange("small", "recall@5", -0.9, 19),
            CategoryChange("at the limit", "recall@5", -0.1, 50),
            CategoryChange("rose", "recall@5", 0.4, 50),
        ]
    )

    found = category_findings(gate(category_max_drop=0.1, category_min=20), compared)

    assert [finding.figures["category"] for finding in found] == ["fell"]
    assert "category fell: recall@5 fell by 0.2000 over 20" in found[0].text
    assert category_findings(gate(), compared) == []


def test_must_pass_questions_that_could_not_be_asked_are_warned_of() -> None:
    (finding,) = own_findings(gate(), replace(reached(), not_scored=2))

    assert (finding.verdict, finding.counts, finding.warning) == (Verdict.OK, False, True)
    assert finding.text.startswith("2 must-pass questions failed or have no expected key")
