"""Failed questions of a completed run that are asked again."""

from typing import Any

import pytest

from db import baselines, exact, runs
from db.session import Database, Session
from pipeline.errors import UsageError
from pipeline.retrieval.strategies import BUILT_IN, HybridStrategy, SqlStrategy
from tests.integration.db.building import fetch
from tests.integration.workers.conftest import Opener
from tests.integration.workers.records import (
    TOO_LONG,
    change_corpus,
    record,
    run_with_failures,
    tokens,
)
from tests.integration.workers.working import (
    Bell,
    finish_runs,
    rows_of,
    run_of,
)
from tests.loopback.openai_server import OpenAIServer, refuse_longer_than
from workers import enqueue, resuming
from workers.context import Context


def test_failed_questions_are_asked_again_and_the_run_is_judged_afresh(
    lenient: Context, bell: Bell, provider: OpenAIServer, db: Database
) -> None:
    [undisturbed] = finish_runs(lenient, bell, "vector")
    run = run_with_failures(lenient, bell, provider)
    before = tokens(db, run.id)

    assert resuming.retry_failed(lenient, run.id) == run.n_failed
    assert run_of(lenient, run.id).status == "running"
    bell.work(lenient)

    again = run_of(lenient, run.id)
    assert (again.status, again.verdict, again.compared_to) == ("completed", "ok", undisturbed.id)
    assert rows_of(lenient, run.id) == rows_of(lenient, undisturbed.id)
    assert record(again) == record(undisturbed)
    assert [after - b for after, b in zip(tokens(db, run.id), before, strict=True)] != [0] * 4
    with pytest.raises(UsageError, match="no question of run"):
        resuming.retry_failed(lenient, run.id)


def test_what_still_fails_can_be_asked_again_and_again(
    lenient: Context, bell: Bell, provider: OpenAIServer
) -> None:
    run = run_with_failures(lenient, bell, provider)
    provider.default = refuse_longer_than(TOO_LONG, "maximum context length is 39")
    for _ in range(2):
        assert resuming.retry_failed(lenient, run.id) == 3
        bell.work(lenient)
        again = run_of(lenient, run.id)
        assert (again.n_failed, again.verdict, record(again)) == (3, run.verdict, record(run))


def test_a_run_that_others_hang_on_keeps_its_failed_questions(
    lenient: Context, bell: Bell, provider: OpenAIServer, db: Database
) -> None:
    run = run_with_failures(lenient, bell, provider)
    with lenient.database.begin() as session:
        baselines.pin(session, runs.get(session, run.id), by="ann")
    with pytest.raises(UsageError, match="stays as it is: it is pinned as a baseline; start a new"):
        resuming.retry_failed(lenient, run.id)
    with lenient.database.begin() as session:
        baselines.unpin(session, run.id)
    [later] = finish_runs(lenient, bell, "vector")
    assert later.compared_to == run.id
    with pytest.raises(UsageError, match=f"stays as it is: run {later.id} was compared with it"):
        resuming.retry_failed(lenient, run.id)

    last = run_with_failures(lenient, bell, provider)
    change_corpus(db)
    with pytest.raises(UsageError, match="the corpus changed since"):
        resuming.retry_failed(lenient, last.id)
    assert run_of(lenient, last.id).n_failed == 3


def test_an_exact_search_that_was_refused_stays_so_when_questions_are_asked_again(
    lenient: Context, bell: Bell, provider: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_all(_ctx: Context, session: Session, *arguments: Any) -> None:  # noqa: ANN401 - of plan_exact
        for run in arguments[-1]:
            exact.refuse(session, run.id, "it would take about 900 seconds")

    monkeypatch.setattr(enqueue, "plan_exact", refuse_all)
    run = run_with_failures(lenient, bell, provider)
    refused = {"n": 0, "index_loss": None, "error": "it would take about 900 seconds"}

    resuming.retry_failed(lenient, run.id)
    bell.work(lenient)

    for each in (run, run_of(lenient, run.id)):
        assert each.exact is not None
        assert {name: each.exact[name] for name in refused} == refused


def test_questions_that_are_asked_again_have_the_stages_of_the_last_time(
    open_context: Opener, bell: Bell
) -> None:
    picky = SqlStrategy(
        statement="SELECT 'reset:0' AS key WHERE 1 / (:question NOT LIKE '%battery%')::int > 0",
        tenant="ignore",
    )
    both = HybridStrategy(arms={"fulltext": 1.0, "picky": 1.0})
    ctx = open_context(strategies={**BUILT_IN, "picky": picky, "both": both})
    [run] = finish_runs(ctx, bell, "both")
    assert (run.status, run.n_failed) == ("completed", 1)

    assert resuming.retry_failed(ctx, run.id) == 1
    bell.work(ctx)

    assert run_of(ctx, run.id).status == "completed"
    stored = fetch(
        ctx.database,
        "SELECT r.outcome, count(s.stage) FROM recallwatch.result r"
        " LEFT JOIN recallwatch.stage_ranking s USING (run_id, position)"
        " GROUP BY r.position, r.outcome ORDER BY r.position",
    )
    assert [(outcome, 0 if outcome == "failed" else 2) for outcome, _ in stored] == [*stored]
