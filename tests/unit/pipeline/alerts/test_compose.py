import shlex

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
from pipeline.alerts.message import CategoryDrop, LostQuestion, Severity
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import Change, Comparison, Pairing

OCCASION = Occasion("run-41-regressed", "2026-03-02T06:00:00+00:00", link="https://e.org/runs/41")


def run(set_name: str = "support", reasons: tuple[str, ...] = ("it fell",)) -> RunSummary:
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
        compared_to=38,
        git_sha="abc",
    )


def test_an_alert_holds_what_the_run_and_its_comparison_say() -> None:
    change = Change("recall@5", current=0.5, previous=0.75)
    pairing = Pairing(shared=8, new=1, changed=0, gone=0, relived=0, unscored=1)
    comparison = Comparison(38, pairing, [change], lost=3, won=1, corpus=["vectors changed"])

    alert = about_run(AlertKind.REGRESSED, run(), OCCASION, comparison=comparison.to_json())

    assert alert.severity is Severity.CRITICAL
    assert (alert.run_id, alert.compared_to, alert.set_name, alert.strategy) == (
        (41, 38, "support", "vector")
    )
    assert (alert.changes, alert.corpus) == ((change,), ("vectors changed",))
    assert (alert.lost, alert.won, alert.shared, alert.n_scored, alert.size) == (3, 1, 8, 9, 10)
    assert (alert.link, alert.repeat, alert.git_sha) == ("https://e.org/runs/41", 1, "abc")


def test_a_run_that_was_not_compared_has_no_changes() -> None:
    alert = about_run(AlertKind.UNMEASURED, run(), OCCASION)

    assert (alert.changes, alert.shared, alert.severity) == ((), None, Severity.WARNING)


def test_of_categories_the_five_that_fell_most_are_kept() -> None:
    drops = [CategoryDrop(f"c{n}", -n / 100, 10) for n in range(1, 8)]
    rise = CategoryDrop("rise", 0.5, 10)

    alert = about_run(AlertKind.REGRESSED, run(), OCCASION, categories=[rise, *drops])

    assert [drop.name for drop in alert.categories] == ["c7", "c6", "c5", "c4", "c3"]


def test_of_lost_questions_those_not_found_come_first_then_the_deepest() -> None:
    ranks = [6, None, 50, 7, 8, 9]
    lost = [LostQuestion(f"q{n}", "d:0", rank) for n, rank in enumerate(ranks)]

    alert = about_run(AlertKind.REGRESSED, run(), OCCASION, lost_questions=lost)

    assert [question.rank for question in alert.lost_questions] == [None, 50, 9, 8, 7]


def test_long_texts_are_cut_and_control_characters_left_out() -> None:
    lost = [LostQuestion("\x1b[31m" + "x" * 1000, "d:0\x00", 6)]

    alert = about_run(
        AlertKind.REGRESSED, run(reasons=("y" * 1000,)), OCCASION, lost_questions=lost
    )

    (question,) = alert.lost_questions
    assert question.text.startswith("[31mx")
    assert question.expected == "d:0"
    assert {len(question.text), len(alert.reasons[0])} == {LONGEST_TEXT}
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
    alert = about_golden_set("support", ["12 keys lost"], OCCASION, reproduce="recallwatch doctor")

    assert (alert.kind, alert.severity) == (AlertKind.GOLDEN_STALE, Severity.WARNING)
    assert (alert.set_name, alert.strategy, alert.run_id) == ("support", None, None)
    assert (alert.reasons, alert.reproduce) == (("12 keys lost",), "recallwatch doctor")
