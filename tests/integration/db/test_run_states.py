"""A run's way from state to state: what each transition changes, and what keeps it away."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from db import baselines, results, run_states, runs, shards
from db.session import Database
from pipeline.errors import UsageError
from tests.integration.db.building import (
    claimed,
    end_run,
    execute,
    expire,
    failed,
    import_set,
    questions,
    run_of,
    scored,
    shard_of,
    start_run,
    store,
    store_all,
)
from tests.integration.db.changing import (
    HOUR,
    cancel,
    completed_with_failures,
    fail,
    reduction,
    resume,
    retry,
    states,
    stored,
)

FINISHED = ("completed", "failed", "cancelled")


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of four questions in two shards."""
    import_set(db, questions(4))
    return start_run(db, shard_size=2)


def end(db: Database, run_id: int, status: str) -> None:
    end_run(db, run_id, "ok" if status == "completed" else "unmeasured", status)


def test_a_run_is_running_from_its_first_claim_on(db: Database, run: int) -> None:
    with db.begin() as session:
        run_states.mark_running(session, run)
    first = run_of(db, run)
    with db.begin() as session:
        run_states.mark_running(session, run)

    assert (first.status, run_of(db, run).started_at) == ("running", first.started_at)
    assert first.started_at is not None


@pytest.mark.parametrize("status", FINISHED)
def test_a_finished_run_is_neither_begun_nor_locked_nor_ended_nor_reduced(
    db: Database, run: int, status: str
) -> None:
    end(db, run, status)
    before = run_of(db, run)

    with db.begin() as session:
        run_states.mark_running(session, run)
        assert run_states.lock(session, run) is None
        assert not run_states.release_reduction(session, run, attempt=0, error="late", wait=0)
    execute(db, "UPDATE recallwatch.shard SET state = 'done'")
    assert cancel(db, run) == fail(db, run) == []
    assert not reduction(db, run)

    after = run_of(db, run)
    assert (after.status, after.verdict, after.reasons) == (status, before.verdict, None)
    assert (after.finished_at, after.reduce_error) == (before.finished_at, None)
    with db.begin() as session:
        assert run_states.reducible(session, attempts=3) == []
        assert run_states.irreducible(session, attempts=0) == []
        assert run_states.overdue(session) == []


def test_a_reducer_that_is_late_does_not_speak_for_the_one_that_took_its_place(
    db: Database, run: int
) -> None:
    store_all(db, run, [scored(position) for position in range(4)])
    assert reduction(db, run) == 1
    execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")
    assert reduction(db, run) == 2

    with db.begin() as session:
        assert not run_states.release_reduction(session, run, attempt=1, error="late", wait=0)
    assert run_of(db, run).reduce_error is None


def test_a_reducer_at_work_keeps_others_away_however_long_it_takes(db: Database, run: int) -> None:
    store_all(db, run, [scored(position) for position in range(4)])
    assert reduction(db, run, attempts=1)
    execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")

    with db.begin() as working:
        assert run_states.lock(working, run) is not None
        assert reduction(db, run) is None
        with db.begin() as sweeping:
            assert run_states.irreducible(sweeping, attempts=1) == []
    with db.begin() as sweeping:
        assert len(run_states.irreducible(sweeping, attempts=1)) == 1


@pytest.mark.parametrize("how", [cancel, fail])
def test_what_ends_a_run_ends_its_open_shards_and_keeps_what_was_measured(
    db: Database, how: Callable[..., list[int]]
) -> None:
    import_set(db, questions(6))
    run_id, other = (start_run(db, shard_size=2) for _ in range(2))
    store(db, claimed(db, run_id, 0), [scored(0), scored(1)])
    claimed(db, run_id, 1)

    assert how(db, run_id) == [run_id]

    ended = run_of(db, run_id)
    reason = "cancelled by ann" if how is cancel else "overdue"
    status = "cancelled" if how is cancel else "failed"
    assert (ended.status, ended.verdict, ended.reasons) == (status, "unmeasured", [reason])
    [finding] = ended.findings or []
    assert (finding["rule"], finding["verdict"], finding["text"]) == (status, "unmeasured", reason)
    assert states(db, run_id) == ["done", "failed", "failed"]
    assert [shard_of(db, run_id, number).error for number in range(3)] == [None, reason, reason]
    assert stored(db, run_id) == [0, 1]
    assert (run_of(db, other).status, states(db, other)) == ("queued", ["pending"] * 3)
    assert how(db, run_id) == []


def test_of_several_runs_those_that_were_unfinished_are_ended(db: Database) -> None:
    import_set(db, questions(2))
    first, done, last = (start_run(db) for _ in range(3))
    end(db, done, "completed")

    assert cancel(db, last, done, first) == [first, last]
    assert run_of(db, done).status == "completed"


def test_a_reducer_has_a_run_for_its_lease_and_as_often_as_there_are_attempts(
    db: Database, run: int
) -> None:
    store(db, claimed(db, run, 0), [scored(0), scored(1)])
    assert not reduction(db, run), "a shard is open"
    store(db, claimed(db, run, 1), [scored(2), scored(3)])

    for attempt in (1, 2, 3):
        with db.begin() as session:
            assert run_states.reducible(session, attempts=3) == [run]
        assert reduction(db, run)
        assert not reduction(db, run), "another one has it"
        with db.begin() as session:
            assert run_states.reducible(session, attempts=3) == []
            assert run_states.irreducible(session, attempts=attempt) == []
        execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")

    assert not reduction(db, run)
    assert reduction(db, run, attempts=4)
    execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")
    with db.begin() as session:
        assert run_states.reducible(session, attempts=4) == []
        [(run_id, reason)] = run_states.irreducible(session, attempts=4)
    assert (run_id, reason) == (
        run, "the record could not be written in 4 tries: its worker was lost each time"
    )  # fmt: skip


def test_a_reduction_that_went_wrong_waits_and_says_why(db: Database, run: int) -> None:
    store_all(db, run, [scored(position) for position in range(4)])
    assert reduction(db, run)
    with db.begin() as session:
        assert run_states.release_reduction(session, run, attempt=1, error="disk full", wait=60)

    assert not reduction(db, run)
    execute(db, "UPDATE recallwatch.run SET reduce_next_at = now()")
    with db.begin() as session:
        [(_, reason)] = run_states.irreducible(session, attempts=1)
    assert reason.endswith("in 1 tries: disk full")
    assert reduction(db, run)


@pytest.mark.parametrize("how", [cancel, fail])
def test_a_run_goes_on_with_the_shards_that_were_not_done_and_all_its_tries(
    db: Database, run: int, how: Callable[..., list[int]]
) -> None:
    with db.begin() as session:
        run_states.mark_running(session, run)
    started = run_of(db, run).started_at
    store(db, claimed(db, run, 0), [scored(0), scored(1)])
    claimed(db, run, 1)
    execute(
        db,
        "UPDATE recallwatch.run SET deadline_at = now() - interval '1 day', reduce_attempts = 3,"
        " reduce_error = 'x', reduce_next_at = now() + interval '1 hour'",
    )
    how(db, run)

    assert resume(db, run)

    opened = run_of(db, run)
    assert (opened.status, opened.started_at) == ("running", started)
    ends = (opened.verdict, opened.reasons, opened.findings, opened.finished_at)
    assert ends == (None, None, None, None)
    assert (opened.reduce_attempts, opened.reduce_error, opened.reduce_next_at) == (0, None, None)
    left = (opened.deadline_at - datetime.now(UTC)).total_seconds()
    assert HOUR - 60 < left <= HOUR
    shard = shard_of(db, run, 1)
    assert states(db, run) == ["done", "pending"]
    assert (shard.attempts, shard.error, shard.rung_at) == (0, None, None)
    assert stored(db, run) == [0, 1]
    assert store(db, claimed(db, run, 1), [scored(2), scored(3)]) is True
    assert not resume(db, run)


def test_a_run_that_nobody_had_begun_is_queued_again(db: Database, run: int) -> None:
    cancel(db, run)

    assert resume(db, run)
    assert run_of(db, run).status == "queued"


@pytest.mark.parametrize("status", ["queued", "running", "completed"])
def test_only_a_failed_or_cancelled_run_goes_on(db: Database, run: int, status: str) -> None:
    if status == "completed":
        end(db, run, status)
    else:
        execute(db, "UPDATE recallwatch.run SET status = :status", {"status": status})

    assert not resume(db, run)
    assert run_of(db, run).status == status


def test_failed_questions_are_asked_again_with_their_shards(db: Database) -> None:
    run_id = completed_with_failures(db)

    assert retry(db, run_id)

    opened = run_of(db, run_id)
    assert opened.status == "running"
    record = (opened.verdict, opened.finished_at, opened.n_scored, opened.n_failed,
              opened.n_ineligible, opened.metrics, opened.facts, opened.latency, opened.cost,
              opened.by_category, opened.by_tenant)  # fmt: skip
    assert record == (None,) * 11
    assert states(db, run_id) == ["done", "pending", "pending", "done"]
    assert stored(db, run_id) == [0, 1, 6, 7]
    assert claimed(db, run_id, 1).attempt == 1
    assert not retry(db, run_id)


def test_what_was_spent_on_questions_that_are_asked_again_still_counts(db: Database) -> None:
    run_id = completed_with_failures(db)

    retry(db, run_id)

    assert shard_of(db, run_id, 1).stats == {"embedded_texts": 2, "embedding_calls": 1}
    assert (shard_of(db, run_id, 0).stats or {})["questions"] == 2
    for number in (1, 2):
        rows = [scored(2 * number), scored(2 * number + 1)]
        assert store(db, claimed(db, run_id, number), rows) is (number == 2)
    with db.begin() as session:
        total = results.shard_stats(session, run_id)
    assert (total["questions"], total["retrieve_seconds"], total["underfilled"]) == (8, 1.0, 2)
    assert (total["embedded_texts"], total["embedding_calls"], total["cached_texts"]) == (8, 4, 6)


@pytest.mark.parametrize("status", ["queued", "running", "failed", "cancelled"])
def test_only_a_completed_run_has_its_questions_asked_again(
    db: Database, run: int, status: str
) -> None:
    store_all(db, run, [*map(failed, range(4))])
    if status in FINISHED:
        end(db, run, status)
    else:
        execute(db, "UPDATE recallwatch.run SET status = :status", {"status": status})

    assert not retry(db, run)
    with db.begin() as session:
        assert run_states.lock_completed(session, run) is None
    assert (run_of(db, run).status, stored(db, run)) == (status, [0, 1, 2, 3])


def test_a_cancelled_run_is_never_a_reference_and_cannot_be_pinned(db: Database, run: int) -> None:
    store(db, claimed(db, run, 0), [scored(0), scored(1)])
    cancel(db, run)
    later = start_run(db)

    with db.begin() as session:
        assert runs.find_reference(session, runs.get(session, later)) is None
    with (
        pytest.raises(UsageError, match=f"run {run} is cancelled: it measured nothing to pin"),
        db.begin() as session,
    ):
        baselines.pin(session, runs.get(session, run), by=None)


def test_shards_that_were_done_before_are_no_sign_of_a_worker(db: Database, run: int) -> None:
    def seen() -> tuple[int, bool]:
        with db.begin() as session:
            [found] = runs.progress(session, [run])
        return found.done, found.claimed

    store(db, claimed(db, run, 0), [scored(0), scored(1)])
    claimed(db, run, 1)
    assert seen() == (2, True)
    cancel(db, run)
    resume(db, run)

    assert seen() == (2, False)
    claimed(db, run, 1)
    assert seen() == (2, True)


def test_runs_that_nobody_works_on_are_named_after_a_while(db: Database) -> None:
    def idle() -> list[int]:
        with db.begin() as session:
            return [each.run_id for each in runs.idle(session, minutes=5)]

    import_set(db, questions(4))
    young, old, ended, reduced = (start_run(db, shard_size=2) for _ in range(4))
    cancel(db, ended)
    store_all(db, reduced, [scored(position) for position in range(4)])
    execute(
        db,
        "UPDATE recallwatch.run SET created_at = now() - interval '6 minutes' WHERE id <> :run",
        {"run": young},
    )

    assert idle() == [old, reduced]
    with db.begin() as session:
        assert runs.idle(session, minutes=5)[0].minutes == pytest.approx(6, abs=0.5)
        assert runs.unfinished(session) == [young, old, reduced]
    hold = claimed(db, old)
    assert idle() == [], "one is at work, so the others wait for their turn"
    expire(db, old)
    assert idle() == [old, reduced]
    hold = claimed(db, old)
    with db.begin() as session:
        shards.release(session, hold, error="429", wait=60)
    assert idle() == []
    expire(db, old)
    assert reduction(db, reduced)
    assert idle() == []
