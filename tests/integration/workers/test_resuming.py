"""Runs that are cancelled, resumed or asked again end with the numbers of an undisturbed one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from db.models import GoldenItem, Run
from db.results import ResultRow
from db.session import Database
from pipeline.alerts.settings import SlackSettings
from pipeline.corpus.statistics import CorpusFingerprint, fingerprint
from pipeline.errors import UsageError
from pipeline.settings import QueueSettings
from pipeline.types import Trigger
from tests.integration.db.building import execute, fetch, shard_of
from tests.integration.workers.conftest import Opener, embedding_of
from tests.integration.workers.records import change_corpus, record, run_with_failures, tokens
from tests.integration.workers.working import (
    TASKS,
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    run_of,
    start_runs,
    telling,
    told,
)
from tests.loopback.openai_server import OpenAIServer, refuse, vectors
from workers import evaluation, measuring, resuming
from workers.context import Context
from workers.doorbell import DELIVER_ALERT, EMBED_SHARD, REDUCE_RUN
from workers.enqueue import Request, start
from workers.reducing import reduce


def work(ctx: Context, bell: Bell, messages: int) -> None:
    """Work on the next messages, and leave the others."""
    for _ in range(messages):
        task, arguments = bell.messages.pop(0)
        TASKS[task](ctx, *arguments)


def work_until_told(ctx: Context, bell: Bell) -> None:
    """Work until there is nothing left but alerts to deliver, and drop those."""
    while any(task != DELIVER_ALERT for task, _ in bell.messages):
        work(ctx, bell, 1)
    bell.take()


def told_of_runs(ctx: Context) -> list[tuple[int, str]]:
    """Return runs and kinds of the alerts; that a key is gone, which it always is, left out."""
    return [(run_id, kind) for run_id, kind in told(ctx) if kind != "golden_stale"]


def asked(provider: OpenAIServer) -> list[str]:
    return sorted(text for request in provider.requests for text in request.texts)


@pytest.mark.parametrize("done", range(4))
@pytest.mark.parametrize("strategy", ["fulltext", "vector", "hybrid"])
def test_a_run_that_is_cancelled_anywhere_and_resumed_is_as_an_undisturbed_one(
    ctx: Context, bell: Bell, db: Database, strategy: str, done: int
) -> None:
    [undisturbed] = finish_runs(ctx, bell, strategy)
    [run_id] = start_runs(ctx, strategy).run_ids
    while bell.messages[0][0] == EMBED_SHARD:
        work(ctx, bell, 1)
    work(ctx, bell, done)

    assert resuming.cancel(ctx, [run_id], by="ann") == [run_id]
    before = tokens(db, run_id)
    bell.work(ctx)

    cancelled = run_of(ctx, run_id)
    assert (cancelled.status, cancelled.verdict) == ("cancelled", "unmeasured")
    assert (cancelled.reasons, cancelled.metrics) == (["cancelled by ann"], None)
    assert tokens(db, run_id) == before, "nobody took a shard of it any more"

    left = resuming.resume(ctx, run_id)
    assert left == (3 - done or (0 if strategy == "fulltext" else 1))
    if left == 0:
        assert bell.messages == [(REDUCE_RUN, (run_id,))]
    bell.work(ctx)

    resumed = run_of(ctx, run_id)
    assert (resumed.status, resumed.compared_to) == ("completed", undisturbed.id)
    assert resumed.verdict == "ok"
    assert rows_of(ctx, run_id) == rows_of(ctx, undisturbed.id)
    assert record(resumed) == record(undisturbed)
    assert tokens(db, run_id)[:done] == [1] * done, "what was done is not searched again"


def test_a_worker_that_holds_a_shard_of_a_cancelled_run_stores_nothing_even_when_it_goes_on(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    [undisturbed] = finish_runs(ctx, bell, "fulltext")
    [run_id] = start_runs(ctx, "fulltext").run_ids
    measure = measuring.measure

    def be_slow(
        ctx: Context, run: Run, items: Sequence[GoldenItem]
    ) -> tuple[list[ResultRow], dict[str, float]]:
        monkeypatch.setattr(evaluation, "measure", measure)
        found = measure(ctx, run, items)
        resuming.cancel(ctx, [run_id])
        bell.take()
        resuming.resume(ctx, run_id)
        return found

    monkeypatch.setattr(evaluation, "measure", be_slow)
    work(ctx, bell, 1)

    assert shard_of(db, run_id, 0).state == "pending"
    assert rows_of(ctx, run_id) == []
    bell.work(ctx)
    assert rows_of(ctx, run_id) == rows_of(ctx, undisturbed.id)
    assert tokens(db, run_id) == [2, 1, 1]


def test_a_provider_is_not_paid_twice_for_a_run_that_goes_on(
    remote: Context, bell: Bell, provider: OpenAIServer
) -> None:
    [run_id] = start_runs(remote, "vector").run_ids
    work(remote, bell, 4)
    resuming.cancel(remote, [run_id])
    bell.work(remote)

    resuming.resume(remote, run_id)
    bell.work(remote)

    run = run_of(remote, run_id)
    assert (run.status, run.n_failed) == ("completed", 0)
    assert len(asked(provider)) == len(set(asked(provider))) == run.size
    assert run.cost is not None
    assert run.cost["embedded_texts"] == run.size


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as raised:
        action()
    return str(raised.value)


def test_unknown_runs_and_those_in_another_state_are_told(ctx: Context, bell: Bell) -> None:
    [done] = finish_runs(ctx, bell, "fulltext")
    [queued] = start_runs(ctx, "fulltext").run_ids

    assert "there is no run 999; see: recallwatch runs list" in refusal(
        lambda: resuming.cancel(ctx, [queued, 999])
    )
    assert "there is no run 999" in refusal(lambda: resuming.resume(ctx, 999))
    assert "there is no run 999" in refusal(lambda: resuming.retry_failed(ctx, 999))
    only = "only a failed or cancelled one goes on"
    for run_id, status in ((queued, "queued"), (done.id, "completed")):
        said = refusal(partial(resuming.resume, ctx, run_id))
        assert said == f"run {run_id} is {status}: {only}"
    assert refusal(lambda: resuming.retry_failed(ctx, done.id)) == (
        f"no question of run {done.id} failed"
    )
    assert refusal(lambda: resuming.retry_failed(ctx, queued)) == (
        f"run {queued} is queued, not completed: wait for its end"
    )
    assert run_of(ctx, queued).status == "queued", "one wrong id and none is cancelled"
    resuming.cancel(ctx, [queued])
    assert refusal(lambda: resuming.retry_failed(ctx, queued)) == (
        f"run {queued} is cancelled, not completed: it can be resumed"
    )


def test_a_run_whose_corpus_changed_does_not_go_on(ctx: Context, bell: Bell, db: Database) -> None:
    [run_id] = start_runs(ctx, "fulltext").run_ids
    work(ctx, bell, 1)
    resuming.cancel(ctx, [run_id])
    change_corpus(db)

    with pytest.raises(UsageError, match=f"the corpus changed since run {run_id} was queued"):
        resuming.resume(ctx, run_id)

    assert run_of(ctx, run_id).status == "cancelled"


def test_a_run_that_failed_is_told_of_once_however_often_it_does_and_when_it_is_well(
    open_context: Opener, bell: Bell, provider: OpenAIServer
) -> None:
    ctx = open_context(
        embedding=embedding_of(provider), alerts=telling(), queue=QueueSettings(lease=60)
    )
    finish_runs(ctx, bell, "vector")
    ctx.redis.flushdb()
    ctx = open_context(
        embedding=embedding_of(provider), alerts=telling(team=SlackSettings()),
        queue=QueueSettings(lease=60),
    )  # fmt: skip
    provider.default = refuse(401, "a bad key")
    [run_id] = start_runs(ctx, "vector").run_ids
    work(ctx, bell, 1)
    bell.take()
    assert run_of(ctx, run_id).status == "failed"
    assert told_of_runs(ctx) == [(run_id, "unmeasured")]

    for _ in range(2):
        resuming.resume(ctx, run_id)
        work(ctx, bell, 1)
        bell.take()
        assert run_of(ctx, run_id).status == "failed"
        assert told_of_runs(ctx) == [(run_id, "unmeasured")]

    provider.default = vectors()
    resuming.resume(ctx, run_id)
    work_until_told(ctx, bell)
    assert run_of(ctx, run_id).verdict == "ok"
    assert told_of_runs(ctx) == [(run_id, "unmeasured"), (run_id, "recovered")]


def test_a_run_whose_results_are_gone_fails_again_when_resumed_and_is_told_of_once(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    ctx = open_context(alerts=telling(team=SlackSettings()))
    [run_id] = start_runs(ctx, "fulltext").run_ids
    work(ctx, bell, 3)
    bell.take()
    execute(db, "DELETE FROM recallwatch.result WHERE position = 2")

    for _ in range(2):
        assert not reduce(ctx, run_id)
        run = run_of(ctx, run_id)
        assert run.status == "failed"
        assert (run.reasons or [""])[0].startswith("1 of 8 results are missing")
        assert told_of_runs(ctx) == [(run_id, "unmeasured")]
        resuming.resume(ctx, run_id)


def finish(ctx: Context, bell: Bell) -> Run:
    """Evaluate full text; alerts stay where they are."""
    [run_id] = start_runs(ctx, "fulltext").run_ids
    work_until_told(ctx, bell)
    return run_of(ctx, run_id)


def test_a_cancelled_run_is_told_to_nobody_and_does_not_interrupt_a_row(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    ctx = open_context(alerts=telling(team=SlackSettings()))
    first = finish(ctx, bell)
    change_corpus(db)
    fallen = finish(ctx, bell)
    [cancelled] = start_runs(ctx, "fulltext").run_ids
    resuming.cancel(ctx, [cancelled])
    bell.work(ctx)
    change_corpus(db, "battery")
    worse = finish(ctx, bell)

    assert (first.verdict, worse.compared_to) == ("baseline", fallen.id)
    assert told_of_runs(ctx) == [(fallen.id, "regressed"), (worse.id, "regressed")]
    repeats = fetch(
        db,
        "SELECT (payload->>'repeat')::int FROM recallwatch.alert WHERE kind = 'regressed'"
        " ORDER BY id",
    )
    assert repeats == [1, 2]


def test_what_a_lost_message_left_of_a_resumed_run_a_sweep_does(ctx: Context, bell: Bell) -> None:
    [undisturbed] = finish_runs(ctx, bell, "vector")
    [run_id] = start_runs(ctx, "vector").run_ids
    resuming.cancel(ctx, [run_id])
    bell.take()
    resuming.resume(ctx, run_id)
    bell.take()

    finish_by_sweeping(ctx, bell)

    assert record(run_of(ctx, run_id)) == record(undisturbed)


def test_a_notice_of_reindexing_does_not_join_a_batch_that_was_cancelled(
    open_context: Opener, bell: Bell
) -> None:
    ctx = open_context(queue=QueueSettings(reindex_quiet=60))
    request = Request(strategies=["fulltext"], trigger=Trigger.REINDEX)
    first, joined = start(ctx, request), start(ctx, request)
    assert (joined.batch_id, joined.joined) == (first.batch_id, True)

    resuming.cancel(ctx, first.run_ids)

    second = start(ctx, request)
    assert (second.joined, second.batch_id > first.batch_id) == (False, True)
    assert bell.messages == []


def test_a_notice_of_reindexing_does_not_join_a_run_that_was_resumed(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    ctx = open_context(queue=QueueSettings(reindex_quiet=60))
    request = Request(strategies=["fulltext"], trigger=Trigger.REINDEX)
    first = start(ctx, request)
    [run_id] = first.run_ids
    resuming.cancel(ctx, [run_id])

    assert resuming.resume(ctx, run_id) == 3
    work(ctx, bell, 1)
    measured = run_of(ctx, run_id).corpus_fingerprint
    execute(db, "DELETE FROM recallwatch_corpus.chunks WHERE document_id = 'battery'")
    second = start(ctx, request)

    assert (second.joined, second.batch_id > first.batch_id) == (False, True)
    assert run_of(ctx, run_id).corpus_fingerprint == measured
    assert run_of(ctx, second.run_ids[0]).corpus_fingerprint != measured
    assert [shard_of(db, run_id, number).next_at for number in range(3)] == [None] * 3


def test_a_resumed_run_starts_at_once_and_the_others_of_its_batch_when_it_is_quiet(
    open_context: Opener, bell: Bell, db: Database
) -> None:
    ctx = open_context(queue=QueueSettings(reindex_quiet=60))
    request = Request(strategies=["fulltext", "vector"], trigger=Trigger.REINDEX)
    resumed, other = start(ctx, request).run_ids
    resuming.cancel(ctx, [resumed])

    resuming.resume(ctx, resumed)
    bell.work(ctx)

    assert (run_of(ctx, resumed).status, run_of(ctx, other).status) == ("completed", "queued")
    assert not start(ctx, request).joined
    execute(db, "UPDATE recallwatch.shard SET next_at = now() WHERE run_id = :run", {"run": other})
    finish_by_sweeping(ctx, bell)
    assert run_of(ctx, other).status == "completed"


@pytest.mark.parametrize("how", [resuming.resume, resuming.retry_failed])
def test_nobody_waits_for_a_run_while_its_corpus_is_looked_at(
    lenient: Context,
    bell: Bell,
    provider: OpenAIServer,
    db: Database,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Context, int], int],
) -> None:
    if how is resuming.resume:
        [run_id] = start_runs(lenient, "fulltext").run_ids
        resuming.cancel(lenient, [run_id])
    else:
        run_id = run_with_failures(lenient, bell, provider).id
    looked = []

    def look(*arguments: Any) -> CorpusFingerprint:  # noqa: ANN401 - of fingerprint
        with db.begin() as session:
            for table in ("run", "shard"):
                column = "id" if table == "run" else "run_id"
                query = text(
                    f"SELECT FROM recallwatch.{table} WHERE {column} = :run FOR UPDATE NOWAIT"
                )
                looked.append(len(session.execute(query, {"run": run_id}).all()))
        return fingerprint(*arguments)

    monkeypatch.setattr(resuming, "fingerprint", look)

    assert how(lenient, run_id) == 3
    assert looked[0] == 1
    assert run_of(lenient, run_id).status in {"queued", "running"}


def test_a_run_that_changed_while_its_corpus_was_looked_at_is_looked_at_again(
    lenient: Context, bell: Bell, provider: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with_failures(lenient, bell, provider)

    def meanwhile(*arguments: Any) -> CorpusFingerprint:  # noqa: ANN401 - of fingerprint
        monkeypatch.setattr(resuming, "fingerprint", fingerprint)
        finish_runs(lenient, bell, "vector")
        return fingerprint(*arguments)

    monkeypatch.setattr(resuming, "fingerprint", meanwhile)

    with pytest.raises(UsageError, match=f"run {run.id + 1} was compared with it"):
        resuming.retry_failed(lenient, run.id)
    assert run_of(lenient, run.id).n_failed == 3
