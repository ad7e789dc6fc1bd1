"""Notices of a re-index: many within a minute start one batch, once all is quiet."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from celery.exceptions import Retry
from structlog.testing import capture_logs

from db import shards
from db.models import Batch
from db.session import Database, Session
from pipeline.errors import CorpusError, TransientError, UsageError
from pipeline.settings import QueueSettings
from pipeline.types import Kind, Question
from tests.integration.db.building import claim, execute, fetch, import_set, run_of, together
from tests.integration.db.changing import cancel
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import Bell
from workers import context
from workers import reindexing as notices
from workers.context import Context
from workers.doorbell import EMBED_SHARD, EVALUATE_SHARD
from workers.enqueue import Request, start, start_batch
from workers.reindexing import TRIES, Reindexed, reindexed, reindexed_notice
from workers.sweeping import sweep

FULLTEXT = Request(["fulltext"])
BOTH = Request(["vector", "fulltext"])

QUIET = 60


def notice(ctx: Context, request: Request = FULLTEXT, *documents: str) -> Reindexed:
    return reindexed(ctx, request, documents)


def batches(ctx: Context) -> list[int]:
    return fetch(ctx.database, "SELECT id FROM recallwatch.batch ORDER BY id")


def waits(ctx: Context) -> list[float]:
    """Return the seconds that each waiting batch still waits."""
    return [
        float(seconds)
        for seconds in fetch(
            ctx.database,
            "SELECT extract(epoch FROM quiet_until - clock_timestamp()) FROM recallwatch.batch"
            " WHERE quiet_until IS NOT NULL ORDER BY id",
        )
    ]


def pass_time(ctx: Context, seconds: float) -> None:
    """Move what is stored into the past."""
    execute(
        ctx.database,
        """
        WITH shards AS (
            UPDATE recallwatch.shard SET next_at = next_at - make_interval(secs => :seconds)
        )
        UPDATE recallwatch.batch SET quiet_until = quiet_until - make_interval(secs => :seconds),
            created_at = created_at - make_interval(secs => :seconds)
        """,
        {"seconds": seconds},
    )


def test_a_notice_starts_a_batch_that_waits_for_quiet(ctx: Context, bell: Bell) -> None:
    started = notice(ctx, BOTH).started

    assert bell.messages == []
    assert not started.joined
    assert started.quiet_until is not None
    assert waits(ctx) == [pytest.approx(QUIET, abs=5)]
    assert fetch(ctx.database, "SELECT trigger FROM recallwatch.batch") == ["reindex"]
    assert sweep(ctx, quiet=0) is not None
    assert bell.messages == []


def test_when_it_is_quiet_a_sweep_rings_the_batch_as_any_other(ctx: Context, bell: Bell) -> None:
    started = notice(ctx, BOTH).started
    pass_time(ctx, QUIET)

    swept = sweep(ctx)

    assert swept is not None
    assert swept.woken == [started.batch_id]
    vector, fulltext = started.run_ids
    assert bell.messages == [
        *((EMBED_SHARD, (started.batch_id, number)) for number in range(3)),
        *((EVALUATE_SHARD, (fulltext, number)) for number in range(3)),
    ]
    bell.work(ctx)
    assert [run_of(ctx.database, run_id).status for run_id in (vector, fulltext)] == [
        "completed", "completed",
    ]  # fmt: skip
    assert sweep(ctx, quiet=0) is not None
    assert bell.messages == []


def test_what_was_rung_in_vain_is_rung_by_a_later_sweep(ctx: Context, bell: Bell) -> None:
    started = notice(ctx).started
    pass_time(ctx, QUIET)
    sweep(ctx)
    lost = bell.take()

    assert len(lost) == 3
    sweep(ctx, quiet=0)
    bell.work(ctx)
    assert run_of(ctx.database, started.run_ids[0]).status == "completed"


def test_a_notice_while_it_waits_joins_and_puts_the_start_off(ctx: Context) -> None:
    first = notice(ctx).started
    pass_time(ctx, 40)
    second = notice(ctx).started

    assert batches(ctx) == [first.batch_id]
    assert (second.batch_id, second.run_ids) == (first.batch_id, first.run_ids)
    assert second.joined
    assert waits(ctx) == [pytest.approx(QUIET, abs=5)]
    [behind] = fetch(
        ctx.database,
        "SELECT count(*) FROM recallwatch.shard s, recallwatch.batch"
        " WHERE s.next_at IS DISTINCT FROM quiet_until",
    )
    assert behind == 0


def test_a_notice_that_joins_brings_the_newer_fingerprint_and_deadline(ctx: Context) -> None:
    run_id = notice(ctx).started.run_ids[0]
    before = run_of(ctx.database, run_id)
    execute(ctx.database, "DELETE FROM recallwatch_corpus.chunks WHERE document_id = 'weight'")
    pass_time(ctx, 40)

    notice(ctx)

    after = run_of(ctx.database, run_id)
    assert (before.corpus_fingerprint["chunks"], after.corpus_fingerprint["chunks"]) == (8, 7)
    assert before.corpus_fingerprint["texts"] != after.corpus_fingerprint["texts"]
    assert after.deadline_at > before.deadline_at


def test_endless_notices_do_not_put_it_off_for_ever(ctx: Context, bell: Bell) -> None:
    first = notice(ctx).started
    for _ in range(19):
        pass_time(ctx, 30)
        assert notice(ctx).started.joined
    assert waits(ctx) == [pytest.approx(30, abs=5)]

    pass_time(ctx, 30)
    sweep(ctx)

    assert len(bell.messages) == 3
    later = notice(ctx).started
    assert (later.joined, batches(ctx)) == (False, [first.batch_id, later.batch_id])


def test_a_batch_that_has_begun_is_not_joined(ctx: Context, bell: Bell) -> None:
    first = notice(ctx).started
    pass_time(ctx, QUIET)
    sweep(ctx)

    second = notice(ctx).started

    assert second.batch_id != first.batch_id
    assert len(bell.messages) == 3


def test_a_batch_whose_time_has_come_is_not_joined_though_no_sweep_came(ctx: Context) -> None:
    first = notice(ctx).started
    pass_time(ctx, QUIET)

    assert notice(ctx).started.batch_id != first.batch_id


@pytest.mark.parametrize(
    "other", [Request(["vector"]), BOTH, Request(["fulltext"], k=2),
              Request(["fulltext"], level="document"), Request(["fulltext"], set_name="other"),
              Request(["fulltext"], max_drop=0.5)],
)  # fmt: skip
def test_a_notice_that_asks_for_something_else_starts_its_own_batch(
    ctx: Context, other: Request
) -> None:
    import_set(ctx.database, GOLDEN, "other")
    first, second = notice(ctx).started, notice(ctx, other).started

    assert batches(ctx) == [first.batch_id, second.batch_id]
    assert not second.joined


def test_a_changed_golden_set_starts_its_own_batch(ctx: Context) -> None:
    first = notice(ctx).started
    import_set(ctx.database, [Question("What does it weigh?", {"weight:0": 1})])

    assert notice(ctx).started.version_id != first.version_id
    assert len(batches(ctx)) == 2


def test_the_order_of_strategies_makes_no_difference(ctx: Context) -> None:
    notice(ctx, BOTH)

    assert notice(ctx, Request(["fulltext", "vector"])).started.joined


def test_ten_notices_at_once_start_one_batch(open_context: Opener, bell: Bell) -> None:
    callers = [open_context() for _ in range(10)]

    found = together(*(partial(notice, ctx) for ctx in callers))

    assert len({each.started.batch_id for each in found}) == 1
    assert sorted(each.started.joined for each in found) == [False, *[True] * 9]
    assert len(batches(callers[0])) == 1
    pass_time(callers[0], QUIET)
    together(*(partial(sweep, ctx) for ctx in callers[:3]))
    assert len(bell.messages) == 3


def test_a_notice_and_a_sweep_at_the_same_moment_agree_whether_it_has_begun(
    open_context: Opener, bell: Bell
) -> None:
    one, other = open_context(), open_context()
    for hundredths in range(8):
        first = notice(one).started
        pass_time(one, QUIET - hundredths / 100)

        second, _ = together(partial(notice, one), partial(sweep, other))

        assert isinstance(second, Reindexed)
        rung = {arguments[0] for _, arguments in bell.take()}
        assert not (second.started.joined and first.run_ids[0] in rung)
        pass_time(one, QUIET)
        sweep(one)
        bell.take()


@pytest.mark.parametrize("how", [claim, cancel])
def test_a_batch_that_a_worker_begins_or_somebody_cancels_at_the_last_moment_is_not_joined(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, how: Callable[[Database, int], object]
) -> None:
    first = notice(ctx).started
    [run_id] = first.run_ids
    before = run_of(ctx.database, run_id)
    lock_open = shards.lock_open

    def meanwhile(session: Session, run_ids: Sequence[int]) -> None:
        monkeypatch.setattr(shards, "lock_open", lock_open)
        execute(ctx.database, "UPDATE recallwatch.shard SET next_at = NULL")
        assert how(ctx.database, run_id)
        lock_open(session, run_ids)

    monkeypatch.setattr(shards, "lock_open", meanwhile)
    second = notice(ctx).started

    assert (second.joined, second.batch_id > first.batch_id) == (False, True)
    assert run_of(ctx.database, run_id).deadline_at == before.deadline_at
    assert set(
        fetch(
            ctx.database,
            "SELECT next_at FROM recallwatch.shard WHERE run_id = :run",
            {"run": run_id},
        )
    ) == {None}


def test_without_a_quiet_time_each_notice_starts_a_batch_at_once(
    open_context: Opener, bell: Bell
) -> None:
    ctx = open_context(queue=QueueSettings(reindex_quiet=0))

    notice(ctx)
    assert len(bell.messages) == 3
    notice(ctx)
    assert (len(bell.messages), len(batches(ctx))) == (6, 2)


def test_start_batch_joins_too(ctx: Context, monkeypatch: pytest.MonkeyPatch, bell: Bell) -> None:
    monkeypatch.setattr(context, "current", lambda: ctx)

    first = start_batch(["fulltext"], trigger="reindex")
    assert start_batch(["fulltext"], trigger="reindex").batch_id == first.batch_id
    assert start(ctx, FULLTEXT).batch_id != first.batch_id
    assert len(bell.messages) == 3


def test_the_state_of_the_expected_keys_is_told_first(ctx: Context) -> None:
    found = notice(ctx)

    assert (found.started.keys.expected, found.started.keys.gone) == (9, 3)
    assert (found.documents.expected, found.documents.unknown) == ([], [])


def test_of_named_documents_it_is_told_which_keys_are_gone_and_who_expects_them(
    ctx: Context,
) -> None:
    execute(ctx.database, "DELETE FROM recallwatch_corpus.chunks WHERE chunk_index = 1")
    named = ["reset", "gone", "warranty", "battery", "lost", "reset"]

    found = notice(ctx, FULLTEXT, *named).documents

    told = {
        each.document_id: (each.expected, list(each.gone), each.questions)
        for each in found.expected
    }
    assert told == {
        "reset": (2, ["reset:1"], 1),
        "gone": (3, ["gone:0", "gone:1", "gone:2"], 2),
        "battery": (2, ["battery:1"], 1),
    }
    assert list(told) == ["reset", "gone", "battery"]
    assert found.unknown == ["gone", "lost"]


def test_an_id_with_colons_is_a_document_and_a_longer_one_is_another(ctx: Context) -> None:
    import_set(
        ctx.database,
        [
            Question("One?", {"http://a:0": 1}),
            Question("Two?", {"http://a:80:0": 1, "reset:0": 1}),
            Question("None?", {}, kind=Kind.UNANSWERABLE),
        ],
        replace=True,
    )

    found = notice(ctx, FULLTEXT, "http://a").documents

    [document] = found.expected
    assert (document.document_id, list(document.gone)) == ("http://a", ["http://a:0"])
    assert found.unknown == ["http://a"]


def test_a_notice_that_cannot_be_followed_starts_nothing(ctx: Context) -> None:
    with pytest.raises(UsageError, match="unknown strategy"):
        notice(ctx, Request(["vectr"]))
    execute(ctx.database, "TRUNCATE recallwatch_corpus.chunks")
    with pytest.raises(CorpusError, match="is empty"):
        notice(ctx)

    assert batches(ctx) == []


def send(**keywords: Any) -> None:  # noqa: ANN401 - what another app sends
    reindexed_notice(**keywords)


@pytest.fixture
def worker(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(context, "current", lambda: ctx)
    return ctx


def batch(ctx: Context) -> Batch:
    with ctx.database.begin() as session:
        found = session.get(Batch, batches(ctx)[0])
        assert found is not None
        return found


@pytest.mark.parametrize("documents", [None, [], ["reset", "gone"], [7, 8], "reset", 7])
def test_the_task_takes_what_other_apps_send(worker: Context, documents: object) -> None:
    send(documents=documents, strategies=["fulltext"], k=2, requested_by="ingest")

    assert len(batches(worker)) == 1
    assert (batch(worker).trigger, batch(worker).requested_by) == ("reindex", "ingest")


def test_a_task_that_cannot_be_followed_is_logged(worker: Context) -> None:
    with capture_logs() as logs:
        send(strategies=["vectr"])

    assert batches(worker) == []
    [refused] = logs
    assert (refused["event"], refused["log_level"]) == ("reindexed_refused", "error")
    assert "unknown strategy 'vectr'" in refused["reason"]


def test_while_a_server_does_not_answer_a_notice_is_tried_for_about_a_minute(
    worker: Context, monkeypatch: pytest.MonkeyPatch  # noqa: ARG001 - the worker's context
) -> None:  # fmt: skip
    def refuse(*_: object) -> None:
        raise TransientError("the corpus database does not answer")

    monkeypatch.setattr(notices, "reindexed", refuse)
    waited: list[float] = []
    for retries in range(TRIES):
        reindexed_notice.push_request(retries=retries, called_directly=False, is_eager=True)
        try:
            with pytest.raises((Retry, TransientError)) as caught:
                send()
        finally:
            reindexed_notice.pop_request()
        if isinstance(caught.value, Retry):
            waited.append(caught.value.when)

    assert waited == [2, 4, 8, 16, 32]
