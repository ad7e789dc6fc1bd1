"""What a process holds open, and when it has to let go of it."""

import json
import multiprocessing
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from celery.exceptions import SoftTimeLimitExceeded

from db.session import Database
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import SettingsError
from pipeline.settings import Settings
from tests.integration.db.building import execute, expire
from tests.integration.workers.working import (
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    start_runs,
)
from tests.interrupting import interrupted_after
from workers import context
from workers.context import KEPT_RETRIEVERS, Context
from workers.evaluation import evaluate


def works(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT 1").fetchone() == (1,)


def interrupt_a_statement(ctx: Context) -> None:
    with pytest.raises(SoftTimeLimitExceeded), interrupted_after(0.2, SoftTimeLimitExceeded):
        ctx.corpus().execute("SELECT pg_sleep(30)")


def test_a_connection_to_the_corpus_is_kept(ctx: Context) -> None:
    assert ctx.corpus() is ctx.corpus()


def test_a_statement_that_a_time_limit_ended_costs_its_connection_only(ctx: Context) -> None:
    interrupt_a_statement(ctx)

    assert works(ctx.corpus())


def test_a_transaction_that_a_time_limit_ended_costs_its_connection_only(ctx: Context) -> None:
    with (
        pytest.raises(SoftTimeLimitExceeded),
        interrupted_after(0.2, SoftTimeLimitExceeded),
        ctx.corpus().transaction(),
    ):
        ctx.corpus().execute("SELECT pg_sleep(30)")

    assert works(ctx.corpus())


def test_a_worker_goes_on_after_a_task_that_ran_into_its_time_limit(
    ctx: Context, bell: Bell
) -> None:
    [expected] = finish_runs(ctx, bell, "vector")
    run_id = start_runs(ctx, "vector").run_ids[0]
    interrupt_a_statement(ctx)

    for number in range(3):
        evaluate(ctx, run_id, number)

    assert rows_of(ctx, run_id) == rows_of(ctx, expected.id)


def test_a_corpus_that_restarted_is_connected_to_anew(
    ctx: Context, bell: Bell, db: Database
) -> None:
    [expected] = finish_runs(ctx, bell, "vector")
    run_id = start_runs(ctx, "vector").run_ids[0]
    execute(
        db,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    bell.work(ctx)
    expire(db, run_id, 0)
    finish_by_sweeping(ctx, bell)

    assert rows_of(ctx, run_id) == rows_of(ctx, expected.id)


def test_retrievers_are_kept_by_what_their_runs_describe(ctx: Context, bell: Bell) -> None:
    vector, fulltext = finish_runs(ctx, bell, "vector", "fulltext")
    known = ctx.retriever(vector.settings, vector.corpus_fingerprint)

    assert ctx.retriever(vector.settings, vector.corpus_fingerprint) is known
    assert ctx.retriever(fulltext.settings, vector.corpus_fingerprint) is not known
    rebuilt = vector.corpus_fingerprint | {"index": None}
    assert ctx.retriever(vector.settings, rebuilt) is known
    reloaded = vector.corpus_fingerprint | {"texts": "other"}
    assert ctx.retriever(vector.settings, reloaded) is not known


def test_no_more_than_a_few_retrievers_are_kept(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "fulltext")
    for number in range(KEPT_RETRIEVERS + 3):
        ctx.retriever(run.settings, run.corpus_fingerprint | {"chunks": number})

    assert len(ctx._retrievers) == KEPT_RETRIEVERS


def test_an_embedder_is_kept_by_its_settings(ctx: Context) -> None:
    other = EmbeddingSettings(dimensions=128)

    assert ctx.embedder() is ctx.embedder(ctx.settings.embedding)
    assert ctx.embedder(other) is not ctx.embedder()
    assert ctx.embedder(other).dimensions == 128


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda ctx: ctx.database, "DATABASE_URL"),
        (lambda ctx: ctx.corpus(), "DATABASE_URL"),
        (lambda ctx: ctx.redis, "REDIS_URL"),
    ],
)
def test_a_server_that_is_not_configured_is_named(
    use: Callable[[Context], object], name: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{name} is not set"):
        use(Context(Settings()))


def _report(pipe: Any) -> None:  # noqa: ANN401 - multiprocessing's
    child = context.current()
    answer = child.corpus().execute("SELECT pg_backend_pid()").fetchone()
    pipe.send(json.dumps([id(child), answer]))
    child.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_holds_connections_of_its_own(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.database_url is not None
    monkeypatch.setenv("DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setattr(context, "_current", None)
    parent = context.current()
    backend = parent.corpus().execute("SELECT pg_backend_pid()").fetchone()
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()

    child = fork.Process(target=_report, args=(theirs,))
    child.start()
    assert ours.poll(20)
    _, childs_backend = json.loads(ours.recv())
    child.join(20)

    assert backend is not None
    assert childs_backend[0] != backend[0]
    assert works(parent.corpus())
    assert context.current() is parent
    parent.close()
