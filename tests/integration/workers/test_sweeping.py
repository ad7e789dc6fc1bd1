"""The state says what is to be done when a message was lost, and who does it does it once."""

from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from pydantic import SecretStr
from redis import Redis
from sqlalchemy import text

from db import alerts, run_states
from db.models import Alert
from db.runs import RunContext
from db.session import Database, Session, try_lock
from pipeline.errors import PermanentError, TransientError
from pipeline.settings import Settings
from pipeline.types import AlertState
from tests.integration.db.building import (
    claimed,
    end_run,
    execute,
    expire,
    fetch,
    import_set,
    questions,
    run_of,
    scored,
    start_run,
    store,
    store_all,
    together,
)
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import NOWHERE, Bell
from workers import failing, sweeping
from workers.context import Context
from workers.doorbell import DELIVER_ALERT, EVALUATE_SHARD, REDUCE_RUN
from workers.sweeping import LOCK, Swept, sweep

pytestmark = pytest.mark.usefixtures("bell")

NOTHING = Swept(failed=[], rung=[], reduced=[])


@pytest.fixture
def url(emptied_url: str) -> str:
    """Give the URL of a database without a corpus: nothing here looks at one."""
    return emptied_url


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of two shards an hour ago; no message of it is left."""
    import_set(db, questions(4), "four")
    run_id = start_run(db, set_name="four", shard_size=2)
    execute(db, "UPDATE recallwatch.run SET created_at = now() - interval '1 hour'")
    return run_id


@pytest.fixture
def client(settings: Settings) -> Iterator[Redis]:
    assert settings.redis_url is not None
    with Redis.from_url(settings.redis_url.get_secret_value()) as client:
        yield client


def finish_shards(db: Database, run_id: int) -> None:
    store_all(db, run_id, [scored(position) for position in range(4)])


def test_without_runs_there_is_nothing_to_do(ctx: Context, bell: Bell) -> None:
    assert sweep(ctx) == NOTHING
    assert bell.messages == []


def test_a_forgotten_shard_is_rung_and_then_not_for_a_while(
    ctx: Context, bell: Bell, run: int
) -> None:
    assert sweep(ctx) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])
    assert bell.take() == [(EVALUATE_SHARD, (run, 0)), (EVALUATE_SHARD, (run, 1))]

    assert sweep(ctx) == NOTHING
    assert bell.messages == []


def test_a_shard_is_not_rung_while_a_message_waits_in_a_queue(
    ctx: Context, run: int, client: Redis
) -> None:
    execute(ctx.database, "UPDATE recallwatch.run SET created_at = now() - interval '1 minute'")
    for queue in ("embedding", "evaluation"):
        client.rpush(queue, "{}")
        assert sweep(ctx) == NOTHING
        client.delete(queue)
    client.rpush("default", "{}")

    assert sweep(ctx) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])


def test_after_two_leases_a_shard_is_rung_whatever_the_queues_hold(
    ctx: Context, run: int, client: Redis
) -> None:
    client.rpush("evaluation", "of somebody who shares the broker and never takes it")

    assert sweep(ctx) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])
    assert sweep(ctx) == NOTHING


@pytest.mark.usefixtures("run")
def test_a_young_run_is_left_to_its_own_messages(ctx: Context) -> None:
    execute(ctx.database, "UPDATE recallwatch.run SET created_at = now()")

    assert sweep(ctx, quiet=10) == NOTHING


def test_a_shard_whose_worker_died_is_rung(ctx: Context, run: int) -> None:
    claimed(ctx.database, run, 0)
    claimed(ctx.database, run, 1)
    assert sweep(ctx) == NOTHING

    expire(ctx.database, run, 1)
    assert sweep(ctx) == Swept(failed=[], rung=[(run, 1)], reduced=[])


def test_a_finished_run_is_rung_for_the_reducer_until_it_is_reduced(
    ctx: Context, bell: Bell, run: int
) -> None:
    finish_shards(ctx.database, run)

    assert sweep(ctx) == Swept(failed=[], rung=[], reduced=[run])
    bell.work(ctx)

    assert run_of(ctx.database, run).status == "completed"
    assert sweep(ctx) == NOTHING


def test_a_run_past_its_deadline_is_failed(ctx: Context, run: int) -> None:
    execute(ctx.database, "UPDATE recallwatch.run SET deadline_at = now() - interval '1 s'")

    assert sweep(ctx) == Swept(failed=[run], rung=[], reduced=[])

    ended = run_of(ctx.database, run)
    assert (ended.status, ended.verdict) == ("failed", "unmeasured")
    assert ended.reasons == ["not finished by its deadline ([queue] deadline)"]
    assert fetch(ctx.database, "SELECT DISTINCT state FROM recallwatch.shard") == ["failed"]


def test_a_run_with_a_shard_out_of_attempts_is_failed_with_the_last_error(
    ctx: Context, run: int
) -> None:
    execute(
        ctx.database,
        "UPDATE recallwatch.shard SET attempts = 3, error = '503', next_at = now()"
        " WHERE number = 1",
    )

    assert sweep(ctx) == Swept(failed=[run], rung=[], reduced=[])
    assert run_of(ctx.database, run).reasons == ["shard 1 failed 3 times: 503"]


def test_a_run_that_is_late_and_out_of_attempts_is_failed_once(ctx: Context, run: int) -> None:
    execute(ctx.database, "UPDATE recallwatch.run SET deadline_at = now()")
    execute(ctx.database, "UPDATE recallwatch.shard SET attempts = 3, error = '503'")

    assert sweep(ctx) == Swept(failed=[run], rung=[], reduced=[])
    assert run_of(ctx.database, run).reasons == ["shard 0 failed 3 times: 503"]


def test_a_run_that_was_measured_in_time_is_reduced_though_late(ctx: Context, run: int) -> None:
    finish_shards(ctx.database, run)
    execute(ctx.database, "UPDATE recallwatch.run SET deadline_at = now() + interval '1 hour'")

    swept = sweep(ctx)

    assert swept is not None
    assert (swept.failed, swept.reduced) == ([], [run])


@pytest.mark.usefixtures("run")
def test_one_run_whose_alert_cannot_be_written_keeps_nobody_waiting(
    ctx: Context, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, later = (start_run(ctx.database, set_name="four", shard_size=2) for _ in range(2))
    execute(
        ctx.database,
        "UPDATE recallwatch.run SET deadline_at = now() - interval '1 hour' WHERE id <> :run",
        {"run": run},
    )

    def raise_for_one(_session: object, found: RunContext, _settings: object) -> list[int]:
        if found.run.id == late:
            raise KeyError("outcome")
        return []

    monkeypatch.setattr(failing, "write_alerts", raise_for_one)

    swept = sweep(ctx)

    assert swept == Swept(failed=[late, later], rung=[(run, 0), (run, 1)], reduced=[])
    assert run_of(ctx.database, late).status == "failed"


def test_one_run_that_cannot_be_ended_keeps_nobody_waiting(
    ctx: Context, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, later = (start_run(ctx.database, set_name="four", shard_size=2) for _ in range(2))
    execute(
        ctx.database,
        "UPDATE recallwatch.run SET deadline_at = now() - interval '1 hour' WHERE id <> :run",
        {"run": run},
    )
    fail = run_states.fail

    def fail_but_one(session: Session, run_ids: Sequence[int], reason: str) -> list[int]:
        if late in run_ids:
            session.execute(text("SELECT 1 / 0"))
        return fail(session, run_ids, reason)

    monkeypatch.setattr(run_states, "fail", fail_but_one)

    assert sweep(ctx) == Swept(failed=[later], rung=[(run, 0), (run, 1)], reduced=[])


def test_a_server_that_lets_nobody_end_connections_is_swept_all_the_same(
    ctx: Context, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Session) -> list[int]:
        raise PermanentError("permission denied for function pg_terminate_backend")

    monkeypatch.setattr(sweeping, "end_frozen", refuse)

    assert sweep(ctx) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])


def test_a_sweep_leaves_the_work_to_the_one_that_has_the_lock(ctx: Context, bell: Bell) -> None:
    with ctx.database.begin() as session:
        assert try_lock(session, LOCK)
        assert sweep(ctx) is None
    assert bell.messages == []

    assert sweep(ctx) is not None


def test_sweeps_at_once_ring_each_shard_once(open_context: Opener, bell: Bell, run: int) -> None:
    contexts = [open_context() for _ in range(3)]

    together(*[partial(sweep, context) for context in contexts])

    assert sorted(bell.messages) == [(EVALUATE_SHARD, (run, 0)), (EVALUATE_SHARD, (run, 1))]


def test_a_broker_that_is_down_is_said_and_rings_nothing(
    open_context: Opener, bell: Bell, run: int
) -> None:
    without = open_context(redis_url=SecretStr(NOWHERE))

    with pytest.raises(TransientError, match="the queue does not answer"):
        sweep(without)

    assert bell.messages == []
    assert sweep(open_context()) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])


def test_a_broker_that_is_down_does_not_keep_a_run_alive_past_its_deadline(
    open_context: Opener, run: int
) -> None:
    without = open_context(redis_url=SecretStr(NOWHERE))
    execute(without.database, "UPDATE recallwatch.run SET deadline_at = now()")

    with pytest.raises(TransientError):
        sweep(without)

    assert run_of(without.database, run).status == "failed"


def test_what_is_rung_and_cannot_be_sent_is_rung_again(
    ctx: Context, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TransientError("the queue does not answer")

    with monkeypatch.context() as broken:
        broken.setattr("workers.doorbell._ring", refuse)
        with pytest.raises(TransientError):
            sweep(ctx, quiet=0)

    assert sweep(ctx, quiet=0) == Swept(failed=[], rung=[(run, 0), (run, 1)], reduced=[])


def test_runs_that_are_at_work_are_left_alone(ctx: Context, bell: Bell, run: int) -> None:
    hold = claimed(ctx.database, run, 0)
    store(ctx.database, hold, [scored(0), scored(1)])
    claimed(ctx.database, run, 1)

    assert sweep(ctx, quiet=0) == NOTHING
    assert REDUCE_RUN not in [task for task, _ in bell.messages]


@pytest.fixture
def waiting(ctx: Context, run: int) -> list[int]:
    """Give the alerts of three channels that wait for a worker; no message of them is left."""
    finish_shards(ctx.database, run)
    end_run(ctx.database, run, "regressed")
    with ctx.database.begin() as session:
        return alerts.add(session, run, "regressed", {name: {} for name in "abc"})


def alert_state(ctx: Context, alert_id: int) -> str:
    with ctx.database.begin() as session:
        return session.get_one(Alert, alert_id).state


def test_alerts_that_are_due_are_rung_until_a_worker_takes_them(
    ctx: Context, bell: Bell, waiting: list[int]
) -> None:
    first, second, third = waiting
    with ctx.database.begin() as session:
        hold = alerts.claim(session, second)
        assert hold is not None
        alerts.close(session, hold, AlertState.PENDING, error="429", wait=60)
        assert alerts.claim(session, third)

    for _ in range(2):
        assert sweep(ctx) == NOTHING
        assert bell.take() == [(DELIVER_ALERT, (first,))]

    execute(ctx.database, "UPDATE recallwatch.alert SET next_at = next_at - interval '61 s'")
    sweep(ctx)
    assert bell.take() == [(DELIVER_ALERT, (first,)), (DELIVER_ALERT, (second,))]


def test_a_sweep_ends_what_a_lost_worker_left_and_what_was_not_sent_for_a_day(
    ctx: Context, bell: Bell, waiting: list[int]
) -> None:
    lost, vain, _ = waiting
    with ctx.database.begin() as session:
        assert alerts.claim(session, lost)
        hold = alerts.claim(session, vain)
        assert hold is not None
        alerts.close(session, hold, AlertState.PENDING, error="429", wait=0)
    execute(
        ctx.database,
        "UPDATE recallwatch.alert SET created_at = created_at - interval '25 hours',"
        " claimed_at = claimed_at - interval '11 minutes'",
    )

    sweep(ctx)

    assert [alert_state(ctx, each) for each in waiting] == ["unknown", "failed", "failed"]
    assert bell.messages == []
