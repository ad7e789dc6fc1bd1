import shlex
from typing import Any

import pytest

from cli.eval import eval_command as eval_cli
from pipeline.alerts.compose import (
    LONGEST_TEXT,
    Occasion,
    RunSummary,
    about_golden_set,
    about_run,
    eval_command,
)
from pipeline.alerts.message import LostQuestion, Severity, WiderSearch
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import CategoryChange, Change, Comparison, Pairing
from pipeline.verdict.gate import Cause, Finding, Rule
from tests.unit.pipeline.alerts.examples import EXACT

OCCASION = Occasion("run-41-regressed", "2026-03-02T06:00:00+00:00", link="https://e.org/runs/41")
WIDER = WiderSearch(now=40, now_ms=1.0, wider=80, wider_ms=2.0, loss=0.001)
CHANGE = Change("recall@5", current=0.5, previous=0.75)


def compared(**other: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of Comparison
    pairing = Pairing(shared=8, new=1, changed=0, gone=0, relived=0, unscored=1)
    values: dict[str, Any] = {"corpus": ["vectors changed"], "setup": ["k 5 -> 6"], **other}
    return Comparison(38, pairing, [CHANGE], lost=3, won=1, exact=EXACT, **values).to_json()


def fell(rule: Rule, text: str = "it fell") -> Finding:
    return Finding(rule=rule, verdict=Verdict.REGRESSED, text=text)


def run(
    set_name: str = "support",
    reasons: tuple[str, ...] = ("it fell",),
    findings: tuple[Finding, ...] = (),
) -> RunSummary:
    return RunSummary(
        run_id=41,
        set_name=set_name,
        strategy="vector",
        k=5,
        level=Level.DOCUMENT,
        verdict=Verdict.REGRESSED,
        reasons=reasons,
        n_scored=9,
        size=10,
        findings=findings,
        cause=Cause.INDEX,
        ef_search=WIDER,
        git_sha="abc",
    )


def test_an_alert_holds_what_the_run_and_its_comparison_say() -> None:
    summary = run(findings=(fell(Rule.NOISE),))

    alert = about_run(AlertKind.REGRESSED, summary, OCCASION, comparison=compared())

    assert alert.severity is Severity.CRITICAL
    assert (alert.run_id, alert.compared_to, alert.set_name, alert.strategy) == (
        (41, 38, "support", "vector")
    )
    assert (alert.changes, alert.corpus) == ((CHANGE,), ("vectors changed",))
    assert (alert.lost, alert.won, alert.shared, alert.n_scored, alert.size) == (3, 1, 8, 9, 10)
    assert (alert.link, alert.repeat, alert.git_sha) == ("https://e.org/runs/41", 1, "abc")
    assert (alert.cause, alert.exact, alert.ef_search) == (Cause.INDEX, EXACT, WIDER)
    assert (alert.findings, alert.setup) == (summary.findings, ("k 5 -> 6",))


@pytest.mark.parametrize(
    ("rules", "severity"),
    [
        ([Rule.NOISE], Severity.CRITICAL),
        ([Rule.MUST_PASS], Severity.CRITICAL),
        ([Rule.CATEGORY], Severity.WARNING),
        ([Rule.CATEGORY, Rule.CATEGORY], Severity.WARNING),
        ([Rule.CATEGORY, Rule.FLOOR], Severity.CRITICAL),
        ([], Severity.CRITICAL),
    ],
)
def test_a_regression_by_nothing_but_categories_is_a_warning(
    rules: list[Rule], severity: Severity
) -> None:
    beside = Finding(rule=Rule.INTERVAL, verdict=Verdict.OK, text="so so", counts=False)
    findings = (*map(fell, rules), beside)

    assert about_run(AlertKind.REGRESSED, run(findings=findings), OCCASION).severity is severity


def test_a_run_that_was_not_compared_has_no_changes() -> None:
    alert = about_run(AlertKind.UNMEASURED, run(), OCCASION)

    assert (alert.changes, alert.shared, alert.severity) == ((), None, Severity.WARNING)


def test_of_categories_the_five_that_fell_most_are_kept() -> None:
    drops = [CategoryChange(f"c{n}", "recall@5", -n / 100, 10) for n in range(1, 8)]
    rise = CategoryChange("rise", "recall@5", 0.5, 10)

    alert = about_run(
        AlertKind.REGRESSED, run(), OCCASION, comparison=compared(categories=[rise, *drops])
    )

    assert [drop.name for drop in alert.categories] == ["c7", "c6", "c5", "c4", "c3"]


def test_of_lost_questions_those_not_found_come_first_then_the_deepest() -> None:
    ranks = [6, None, 50, 7, 8, 9]
    lost = [LostQuestion(f"q{n}", "d:0", rank) for n, rank in enumerate(ranks)]

    alert = about_run(AlertKind.REGRESSED, run(), OCCASION, lost_questions=lost)

    assert [question.rank for question in alert.lost_questions] == [None, 50, 9, 8, 7]


def test_long_texts_are_cut_and_control_characters_left_out() -> None:
    lost = [LostQuestion("\x1b[31m" + "x" * 1000, "d:0\x00", 6)]

    summary = run(reasons=("y" * 1000,), findings=(fell(Rule.NOISE, "z" * 1000),))

    alert = about_run(AlertKind.REGRESSED, summary, OCCASION, lost_questions=lost)

    (question,) = alert.lost_questions
    assert question.text.startswith("[31mx")
    assert question.expected == "d:0"
    texts = (question.text, alert.reasons[0], alert.findings[0].text)
    assert {len(text) for text in texts} == {LONGEST_TEXT}
    assert question.text.endswith("…")


@pytest.mark.parametrize("set_name", ["support", 'it\'s "mine" $(ls) `ls`'])
def test_the_command_to_reproduce_means_the_same_run_to_a_shell_and_to_the_cli(
    set_name: str,
) -> None:
    program, command, *words = shlex.split(eval_command(run(set_name)))

    assert (program, command) == ("recallwatch", "eval")
    options = eval_cli.make_context("eval", words).params
    assert (options["set_name"], options["strategies"]) == (set_name, ("vector",))
    assert (options["k"], options["level"]) == (5, "document")


def test_a_stale_golden_set_is_told_without_a_run() -> None:
    alert = about_golden_set(
        "support", ["12 keys lost"], OCCASION, expected_keys=340, missing_keys=12, reproduce="x"
    )

    assert (alert.kind, alert.severity) == (AlertKind.GOLDEN_STALE, Severity.WARNING)
    assert (alert.set_name, alert.strategy, alert.run_id) == ("support", None, None)
    assert (alert.reasons, alert.reproduce) == (("12 keys lost",), "x")
    assert (alert.expected_keys, alert.missing_keys) == (340, 12)
