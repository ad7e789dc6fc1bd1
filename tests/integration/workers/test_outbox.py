"""Which finished run is told, to whom, and what: written with the verdict or not at all."""

from dataclasses import replace
from typing import Any

import pytest

from db import baselines, runs
from pipeline.alerts.message import Alert, WiderSearch
from pipeline.alerts.settings import AlertSettings, SlackSettings
from pipeline.errors import CorpusError
from pipeline.types import AlertKind, AlertState, Question
from pipeline.verdict.compare import CategoryChange
from pipeline.verdict.gate import Rule
from tests.integration.db.building import (
    batch_of,
    execute,
    forget_evidence,
    import_set,
    questions,
    run_of,
    scored,
    start_run,
    store_all,
)
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import (
    BROKEN,
    Bell,
    alerts_of,
    finish_runs,
    finished,
    finished_as,
    messages,
    telling,
    told,
    values,
)
from tests.unit.pipeline.alerts.examples import EXACT
from workers import embedding, evaluation, reducing
from workers.composing import alert_of
from workers.context import Context
from workers.doorbell import DELIVER_ALERT
from workers.embedding import embed
from workers.evaluation import evaluate
from workers.outbox import write_alerts
from workers.reducing import reduce
from workers.sweeping import sweep

NAME = "four"
GOOD, GONE = (1.0,) * 4, (0.0,) * 4


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    """Give a context that tells a team, and a set of four questions."""
    context = open_context(alerts=telling(team=SlackSettings()))
    import_set(context.database, questions(4), NAME)
    return context


def last_told(ctx: Context) -> Alert:
    return messages(ctx)[-1][1]


def test_verdict_and_alert_are_there_together_or_not_at_all(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(ctx, NAME, values(*GOOD))
    run_id = start_run(ctx.database, set_name=NAME)
    store_all(ctx.database, run_id, list(values(*GONE)))

    def crash(*arguments: Any) -> None:  # noqa: ANN401 - write_alerts' arguments
        assert write_alerts(*arguments)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(reducing, "write_alerts", crash)
        with pytest.raises(SystemExit):
            reduce(ctx, run_id)
    assert (run_of(ctx.database, run_id).verdict, told(ctx), bell.messages) == (None, [], [])

    assert not reduce(ctx, run_id), "the process that died has it until its lease ends"
    execute(ctx.database, "UPDATE recallwatch.run SET reduce_next_at = now()")
    assert reduce(ctx, run_id)

    assert (run_of(ctx.database, run_id).verdict, told(ctx)) == (
        "regressed", [(run_id, AlertKind.REGRESSED)]
    )  # fmt: skip
    assert bell.messages == [(DELIVER_ALERT, (alerts_of(ctx)[0].id,))]
    assert not reduce(ctx, run_id)
    assert len(told(ctx)) == 1


@pytest.mark.usefixtures("bell")
def test_where_no_channel_is_named_nothing_is_written(open_context: Opener, ctx: Context) -> None:
    quiet = open_context(alerts=AlertSettings())
    finished(quiet, NAME, values(*GOOD))
    assert finished(quiet, NAME, values(*GONE)).verdict == "regressed"
    assert finished_as(quiet, NAME, BROKEN).verdict == "unmeasured"

    assert told(ctx) == []
    # What nobody was told of cannot recover.
    assert finished(ctx, NAME, values(*GOOD)).verdict == "improved"
    assert told(ctx) == []


@pytest.mark.usefixtures("bell")
def test_a_regression_names_figures_categories_and_the_live_keys_of_lost_questions(
    ctx: Context,
) -> None:
    expected = {"dead:0": 3, "live:0": 2, "live:1": 1}
    asked = [
        Question("kept?", {"a:0": 1}, category="kept"),
        Question("lost?", expected, category="lost"),
    ]
    import_set(ctx.database, asked, "named")
    reference = finished(ctx, "named", [scored(0), scored(1, missing=["dead:0"])])
    # The index misses at k what a wider search finds at rank 2.
    gone = replace(scored(1, 0.0, 0.0, 0.25, missing=["dead:0"]), first_rank=2)
    run = finished(ctx, "named", [scored(0), gone])

    alert = last_told(ctx)

    assert (alert.kind, alert.verdict, alert.severity) == ("regressed", "regressed", "critical")
    assert (alert.run_id, alert.compared_to, alert.set_name) == (run.id, reference.id, "named")
    assert run.comparison is not None
    assert [change.to_json() for change in alert.changes] == [
        change | {"interval": tuple(change["interval"])} for change in run.comparison["changes"]
    ]
    assert (alert.lost, alert.won, alert.shared, alert.n_scored, alert.size) == (1, 0, 2, 2, 2)
    assert alert.categories == (CategoryChange("lost", "recall@5", -1, 1),)
    assert [(q.text, q.expected, q.rank) for q in alert.lost_questions] == [
        ("lost?", "live:0", None)
    ]
    assert alert.reasons == tuple(run.reasons or ())
    assert [each.to_json() for each in alert.findings] == run.findings


@pytest.mark.usefixtures("bell")
def test_a_regression_by_itself_is_shown_beside_the_last_run(ctx: Context) -> None:
    asked = [replace(question, must_pass=True) for question in questions(4)]
    import_set(ctx.database, asked, "must")
    strict = {"must_pass": True, "max_drop": 1.0}
    first = finished_as(ctx, "must", GOOD, **strict)
    run = finished_as(ctx, "must", (1, 1, 1, 0), **strict)

    alert = last_told(ctx)

    assert (run.verdict, set(alert.rules)) == ("regressed", {Rule.MUST_PASS})
    assert (alert.compared_to, alert.lost) == (first.id, 1)
    assert [question.text for question in alert.lost_questions] == ["question 3"]


@pytest.mark.usefixtures("bell")
def test_a_run_is_linked_to_where_the_settings_know_its_page(open_context: Opener) -> None:
    page = "https://recallwatch.example.org/runs/{run}"
    ctx = open_context(alerts=AlertSettings(channels={"team": SlackSettings()}, run_url=page))
    import_set(ctx.database, questions(4), NAME)
    run = finished_as(ctx, NAME, BROKEN)

    assert last_told(ctx).link == f"https://recallwatch.example.org/runs/{run.id}"


@pytest.mark.usefixtures("bell")
def test_the_cause_and_what_exact_search_found_are_told(ctx: Context) -> None:
    finished_as(ctx, NAME, GOOD)
    run_id = start_run(ctx.database, set_name=NAME)
    store_all(ctx.database, run_id, list(values(*GONE)))
    assert reduce(ctx, run_id)
    with ctx.database.begin() as session:
        found = runs.get(session, run_id)
        found.run.cause = "index"
        found.run.comparison = {**(found.run.comparison or {}), "exact": EXACT.to_json()}
        rungs = [{"ef_search": n, "loss": 1 / n, "ms": n / 10} for n in (20, 40, 80)]
        found.run.exact = {"ef_search": {"questions": 4, "ladder": rungs, "suggested": 80}}

        alert = alert_of(session, found, AlertKind.REGRESSED)
        found.run.exact = {"ef_search": {"questions": 4, "ladder": rungs[:1], "suggested": None}}
        no_advice = alert_of(session, found, AlertKind.REGRESSED)

    assert (alert.cause, alert.exact) == ("index", EXACT)
    assert alert.ef_search == WiderSearch(now=20, now_ms=2, wider=80, wider_ms=8, loss=1 / 80)
    assert no_advice.ef_search is None


@pytest.mark.usefixtures("bell")
def test_at_document_level_the_live_document_of_the_highest_grade_is_named(ctx: Context) -> None:
    asked = [Question("lost?", {"dead:0": 3, "a:0": 1, "b:4": 1, "b:5": 2})]
    import_set(ctx.database, asked, "documents")
    for hit in (1.0, 0.0):
        row = scored(0, hit, hit, hit, missing=["dead"])
        finished(ctx, "documents", [row], {"level": "document"})

    assert [question.expected for question in last_told(ctx).lost_questions] == ["b"]


@pytest.mark.usefixtures("bell")
def test_slow_drift_is_caught_by_the_pinned_baseline_and_told_with_its_figures(
    ctx: Context,
) -> None:
    asked = [replace(question, category="all") for question in questions(4)]
    import_set(ctx.database, asked, "drift")
    # Each run loses less than max_drop (0.02) against the run before; the hit goes with the tenth.
    means = [1.0 - 0.015 * number for number in range(11)]
    first = finished(ctx, "drift", values(*[means[0]] * 4))
    with ctx.database.begin() as session:
        baselines.pin(session, runs.get(session, first.id), by=None)
    drifted = [
        finished(ctx, "drift", (scored(p, float(mean > 0.86), mean, mean) for p in range(4)))
        for mean in means[1:]
    ]

    assert [run.verdict for run in drifted] == ["ok"] + ["regressed"] * 9
    for before, run in zip([first, *drifted], drifted, strict=False):
        assert run.compared_to == before.id
        assert run.comparison is not None
        steps = [change["difference"] for change in run.comparison["changes"][1:]]
        assert steps == pytest.approx([-0.015] * 2)
    # The run before is the baseline itself at first, and compared with once.
    assert [run.baseline_run for run in drifted] == [None] + [first.id] * 9
    assert "against the baseline: recall@5 fell from 1.0000 to 0.9700" in " ".join(
        drifted[1].reasons or ()
    )
    assert [run_id for run_id, _ in told(ctx)] == [run.id for run in drifted[1:]]
    alert = last_told(ctx)
    assert (alert.compared_to, alert.repeat) == (first.id, 9)
    assert alert.changes[1].difference == pytest.approx(-0.15)
    assert [drop.difference for drop in alert.categories] == [pytest.approx(-0.15)]
    assert len(alert.lost_questions) == 4


def _refuse(*_: object) -> None:
    raise CorpusError("the table is gone")


def test_a_run_that_ends_in_evaluation_is_told(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start_run(ctx.database, set_name=NAME)
    monkeypatch.setattr(evaluation, "measure", _refuse)

    evaluate(ctx, run_id, 0)

    assert_told_as_failed(ctx, bell, run_id, "the table is gone")


def test_a_run_that_ends_in_embedding_is_told(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"embedding": {"dimensions": 64}}
    run_id = start_run(ctx.database, {"settings": settings}, set_name=NAME)
    monkeypatch.setattr(embedding, "_warm", _refuse)

    embed(ctx, batch_of(ctx.database, run_id), 0)

    assert_told_as_failed(ctx, bell, run_id, "the table is gone")


def test_a_run_that_a_sweep_ends_is_told(ctx: Context, bell: Bell) -> None:
    run_id = start_run(ctx.database, set_name=NAME)
    execute(ctx.database, "UPDATE recallwatch.run SET deadline_at = now()")

    sweep(ctx)
    sweep(ctx)

    reason = "not finished by its deadline ([queue] deadline)"
    (alert,) = alerts_of(ctx)
    assert bell.messages == [(DELIVER_ALERT, (alert.id,))] * 2
    bell.messages.pop()
    assert_told_as_failed(ctx, bell, run_id, reason)


def assert_told_as_failed(ctx: Context, bell: Bell, run_id: int, reason: str) -> None:
    (alert,) = alerts_of(ctx)
    assert (alert.run_id, alert.kind, alert.state) == (run_id, "unmeasured", AlertState.PENDING)
    assert bell.messages == [(DELIVER_ALERT, (alert.id,))]
    assert last_told(ctx).reasons == (reason,)
    assert run_of(ctx.database, run_id).status == "failed"


def test_a_whole_batch_is_told_of_strategy_by_strategy(open_context: Opener, bell: Bell) -> None:
    ctx = open_context(alerts=telling(team=SlackSettings(on=[AlertKind.REGRESSED])))
    finish_runs(ctx, bell, "fulltext", "vector")
    execute(ctx.database, "UPDATE recallwatch_corpus.chunks SET content = 'x'"
            " WHERE document_id <> 'battery'")  # fmt: skip
    forget_evidence(ctx.database)
    again = finish_runs(ctx, bell, "fulltext", "vector")

    assert [run.verdict for run in again] == ["regressed", "ok"]
    assert told(ctx) == [(again[0].id, "regressed")]
