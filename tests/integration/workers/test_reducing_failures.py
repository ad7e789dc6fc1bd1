"""A record that cannot be written: it is tried again, and then the run says why it has none."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from db.models import Run
from db.session import Database
from pipeline.alerts.settings import SlackSettings
from pipeline.errors import TransientError
from tests.integration.db.building import (
    execute,
    import_set,
    questions,
    run_of,
    scored,
    start_run,
    store_all,
)
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import Bell, telling, told
from workers import resuming
from workers.context import Context
from workers.doorbell import REDUCE_RUN
from workers.reducing import reduce
from workers.sweeping import sweep

pytestmark = pytest.mark.usefixtures("bell")

ATTEMPTS = 3
"""[queue] attempts of the settings."""


@pytest.fixture
def url(emptied_url: str) -> str:
    """Give the URL of a database without a corpus: nothing here looks at one."""
    return emptied_url


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    return open_context(alerts=telling(team=SlackSettings()))


@pytest.fixture
def run(db: Database) -> int:
    """Give a run that lacks nothing but its record."""
    import_set(db, questions(4), "four")
    run_id = start_run(db, {"needs_vectors": False}, set_name="four", shard_size=2)
    store_all(db, run_id, [scored(position) for position in range(4)])
    return run_id


def let_time_pass(db: Database) -> None:
    execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")


def broken(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    patch.setattr("workers.reducing.judge_run", fail)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("boom"), "RuntimeError('boom')"),
        (TransientError("the database is full"), "the database is full"),
        (SoftTimeLimitExceeded(), "not done in 60 seconds ([queue] lease)"),
    ],
)
def test_a_record_that_cannot_be_written_is_given_up_with_the_reason(
    ctx: Context, bell: Bell, db: Database, run: int, monkeypatch: pytest.MonkeyPatch,
    error: Exception, said: str,
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        broken(patch, error)
        for attempt in range(1, ATTEMPTS + 1):
            assert not reduce(ctx, run)
            assert not reduce(ctx, run), "it is not tried at once"
            waiting = run_of(db, run)
            assert (waiting.status, waiting.metrics) == ("queued", None)
            assert (waiting.reduce_attempts, waiting.reduce_error) == (attempt, said)
            let_time_pass(db)
    sweep(ctx)

    ended = run_of(db, run)
    reason = f"the record could not be written in {ATTEMPTS} tries: {said}"
    assert (ended.status, ended.verdict, ended.reasons) == ("failed", "unmeasured", [reason])
    assert told(ctx) == [(run, "unmeasured")]
    assert not sweep_again(ctx, bell)


def sweep_again(ctx: Context, bell: Bell) -> list[tuple[int, ...]]:
    """Return the runs that another sweep has reduced."""
    bell.take()
    sweep(ctx)
    return [arguments for task, arguments in bell.take() if task == REDUCE_RUN]


def test_a_reducer_that_kills_its_process_each_time_is_given_up_too(
    ctx: Context, db: Database, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        broken(patch, SystemExit(9))
        for _ in range(ATTEMPTS):
            with pytest.raises(SystemExit):
                reduce(ctx, run)
            let_time_pass(db)
    sweep(ctx)

    assert run_of(db, run).reasons == [
        f"the record could not be written in {ATTEMPTS} tries: its worker was lost each time"
    ]


def test_a_sweep_has_it_tried_again_until_it_can_be_written(
    ctx: Context, bell: Bell, db: Database, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        broken(patch, RuntimeError("boom"))
        reduce(ctx, run)
    sweep(ctx)
    assert bell.take() == [], "its time has not come"

    let_time_pass(db)
    sweep(ctx)
    assert bell.messages == [(REDUCE_RUN, (run,))]
    bell.work(ctx)

    assert measured(run_of(db, run)) == ("completed", "baseline", 4)


def test_a_run_that_was_given_up_goes_on_when_it_is_resumed(
    ctx: Context, bell: Bell, db: Database, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(db, "UPDATE recallwatch.run SET reduce_attempts = :n", {"n": ATTEMPTS})
    sweep(ctx)
    bell.take()
    assert run_of(db, run).status == "failed"
    monkeypatch.setattr(resuming, "_need_same_corpus", lambda *_: None)

    assert resuming.resume(ctx, run) == 0
    assert bell.messages == [(REDUCE_RUN, (run,))]
    assert reduce(ctx, run)

    assert measured(run_of(db, run)) == ("completed", "baseline", 4)


def measured(run: Run) -> tuple[str, str | None, int | None]:
    return run.status, run.verdict, run.n_scored
