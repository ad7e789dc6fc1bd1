import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from db import run_states, shards
from db.results import ResultRow
from db.session import Database
from db.shards import Claim
from tests.integration.db.building import (
    ATTEMPTS,
    LEASE,
    batch_of,
    claim,
    claimed,
    execute,
    expire,
    fetch,
    import_set,
    on_a_database,
    questions,
    run_of,
    scored,
    shard_of,
    start_batch,
    start_run,
    store,
    wait_of,
)


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of four questions in two shards."""
    import_set(db, questions(4))
    return start_run(db, shard_size=2)


def release(db: Database, hold: Claim, wait: float = 0, error: str = "no answer") -> bool:
    with db.begin() as session:
        return shards.release(session, hold, error=error, wait=wait)


def fail(db: Database, run_id: int, reason: str = "no key") -> list[int]:
    with db.begin() as session:
        return run_states.fail(session, [run_id], reason)


def due(db: Database, *, quiet: int = 0, limit: int = 100) -> list[tuple[int, int]]:
    with db.begin() as session:
        return shards.due(session, quiet=quiet, limit=limit)


def test_a_shard_that_somebody_changes_at_this_moment_is_not_waited_for(
    db: Database, run: int
) -> None:
    with db.begin() as session:
        shards.ring_pending(session, run)
        assert claim(db, run) is None

    assert claim(db, run) is not None


def test_patience_that_a_server_asked_for_uses_up_no_attempt(db: Database, run: int) -> None:
    for _ in range(ATTEMPTS + 2):
        hold = claimed(db, run, 0)
        with db.begin() as session:
            assert shards.release(session, hold, error="429", wait=0, counted=False)

    assert shard_of(db, run).attempts == 0
    assert exhausted(db) == []
    assert claimed(db, run, 0).token == ATTEMPTS + 3


def exhausted(db: Database, attempts: int = ATTEMPTS) -> list[tuple[int, str]]:
    with db.begin() as session:
        return shards.exhausted(session, attempts=attempts)


def rows_of(hold: Claim) -> list[ResultRow]:
    return [scored(position) for position in range(hold.first, hold.last + 1)]


@on_a_database
@given(size=st.integers(1, 400), shard_size=st.integers(1, 500), n_runs=st.integers(1, 3))
def test_the_shards_of_a_run_cover_each_question_once(
    db: Database, size: int, shard_size: int, n_runs: int
) -> None:
    import_set(db, questions(1))
    ids = start_batch(db, *[{}] * n_runs)
    execute(db, "DELETE FROM recallwatch.shard")
    with db.begin() as session:
        n_shards = shards.plan(session, ids, size, shard_size)

    for run_id in ids:
        slices = fetch(
            db,
            "SELECT number, first_position, last_position FROM recallwatch.shard"
            " WHERE run_id = :run ORDER BY number",
            {"run": run_id},
        )
        covered = [p for _, first, last in slices for p in range(first, last + 1)]
        assert covered == list(range(size))
        assert [number for number, _, _ in slices] == list(range(n_shards))
        assert all(last - first < shard_size for _, first, last in slices)


def test_a_claim_holds_its_slice_under_a_token_and_a_lease(db: Database, run: int) -> None:
    hold = claimed(db, run, 1)
    shard = shard_of(db, run, 1)

    assert hold == Claim(run_id=run, number=1, token=1, attempt=1, first=2, last=3)
    assert len(hold) == 2
    assert (shard.state, shard.worker, shard.next_at) == ("leased", "w", None)
    [seconds] = fetch(
        db,
        "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8"
        " FROM recallwatch.shard WHERE state = 'leased'",
    )
    assert LEASE - 10 < seconds <= LEASE


def test_a_shard_that_somebody_holds_is_not_to_be_had(db: Database, run: int) -> None:
    claimed(db, run)

    assert claim(db, run) is None
    assert shard_of(db, run).token == 1


def test_a_shard_that_does_not_exist_is_not_to_be_had(db: Database, run: int) -> None:
    assert claim(db, run, 2) is None
    assert claim(db, run + 1) is None


def test_a_shard_whose_lease_ran_out_is_claimed_under_a_higher_token(
    db: Database, run: int
) -> None:
    first = claimed(db, run)
    expire(db, run)

    second = claimed(db, run)

    assert (second.token, second.attempt) == (first.token + 1, 2)


def test_a_worker_that_lost_its_claim_can_neither_store_nor_release(db: Database, run: int) -> None:
    lost = claimed(db, run)
    expire(db, run)
    held = claimed(db, run)

    assert store(db, lost, rows_of(lost)) is None
    assert release(db, lost) is False

    shard = shard_of(db, run)
    assert (shard.state, shard.token, shard.error) == ("leased", held.token, None)
    assert fetch(db, "SELECT * FROM recallwatch.result") == []


def test_a_worker_whose_lease_ran_out_unnoticed_may_still_store(db: Database, run: int) -> None:
    hold = claimed(db, run)
    expire(db, run)

    assert store(db, hold, rows_of(hold)) is False
    assert shard_of(db, run).state == "done"


def test_a_finished_shard_is_not_to_be_had_again(db: Database, run: int) -> None:
    hold = claimed(db, run)
    store(db, hold, rows_of(hold))
    expire(db, run)

    assert claim(db, run) is None
    assert store(db, hold, rows_of(hold)) is None
    assert release(db, hold) is False


def test_a_released_shard_waits_and_remembers_why(db: Database, run: int) -> None:
    hold = claimed(db, run)

    assert release(db, hold, wait=30, error="429") is True

    shard = shard_of(db, run)
    assert (shard.state, shard.error, shard.lease_until) == ("pending", "429", None)
    assert 20 < wait_of(db, run) <= 30
    assert claim(db, run) is None
    expire(db, run)
    assert claimed(db, run).attempt == 2


def test_a_shard_is_tried_no_more_often_than_allowed(db: Database, run: int) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        hold = claimed(db, run)
        assert hold.attempt == attempt
        release(db, hold)

    assert claim(db, run) is None


def test_no_shard_of_a_finished_run_is_to_be_had(db: Database, run: int) -> None:
    fail(db, run)

    assert claim(db, run, 1) is None


def test_a_worker_at_work_when_its_run_fails_stores_nothing(db: Database, run: int) -> None:
    hold = claimed(db, run)
    fail(db, run)

    assert store(db, hold, rows_of(hold)) is None
    assert release(db, hold) is False
    assert fetch(db, "SELECT state, error FROM recallwatch.shard") == [("failed", "no key")] * 2


def test_failing_a_run_ends_it_once_with_the_first_reason(db: Database, run: int) -> None:
    done = claimed(db, run)
    store(db, done, rows_of(done))

    assert fail(db, run, "first") == [run]
    assert fail(db, run, "second") == []

    ended = run_of(db, run)
    assert (ended.status, ended.verdict, ended.reasons) == ("failed", "unmeasured", ["first"])
    assert ended.finished_at is not None
    assert fetch(db, "SELECT state FROM recallwatch.shard ORDER BY number") == ["done", "failed"]


def hold(db: Database, batch: int, number: int = 0, lease: int = 60) -> tuple[int, int] | None:
    with db.begin() as session:
        return shards.hold_for_embedding(session, batch, number, lease=lease)


def end_hold(db: Database, batch: int, number: int = 0, wait: float = 0) -> list[int]:
    with db.begin() as session:
        error = "503" if wait else None
        return shards.end_hold(session, batch, number, wait=wait, error=error)


@pytest.fixture
def batch(db: Database) -> tuple[int, list[int]]:
    """Start two runs that need vectors and one that does not; give the batch and its runs."""
    import_set(db, questions(4))
    ids = start_batch(db, {}, {"needs_vectors": False}, {"strategy": "exact"}, shard_size=3)
    return batch_of(db, ids[0]), ids


def test_a_held_shard_waits_in_the_runs_that_need_vectors_only(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, fulltext, exact) = batch

    assert hold(db, batch_id, 1) == (3, 3)

    assert claim(db, vector, 1) is None
    assert claim(db, exact, 1) is None
    assert claim(db, fulltext, 1) is not None
    assert claim(db, vector, 0) is not None


def test_a_shard_is_held_by_one_embedder_at_a_time(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, _, exact) = batch
    assert hold(db, batch_id) == (0, 2)
    assert hold(db, batch_id) is None

    assert end_hold(db, batch_id) == [vector, exact]

    assert claim(db, vector) is not None
    assert claim(db, exact) is not None


def test_the_hold_of_an_embedder_that_died_ends_by_itself(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, _, exact) = batch
    hold(db, batch_id, lease=60)
    assert 50 < wait_of(db, vector) <= 60

    expire(db, vector)

    assert claim(db, vector) is not None
    assert claim(db, exact) is None


def test_the_shards_of_a_batch_are_locked_by_the_number_of_their_runs(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (first, _, last) = batch
    with db.begin() as ending:
        shards.lock_open(ending, [first])
        for change in (hold, end_hold):
            waiting = threading.Thread(target=change, args=(db, batch_id))
            waiting.start()
            wait_until_somebody_waits(db)
            with db.begin() as session:
                session.execute(text("SET LOCAL lock_timeout = '1s'"))
                shards.lock_open(session, [last])
    # Both go on when the first is free.
    waiting.join(timeout=20)
    assert not waiting.is_alive()


def wait_until_somebody_waits(db: Database) -> None:
    while not fetch(
        db,
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database()",
    ):
        time.sleep(0.02)


def test_nothing_is_held_once_every_run_has_its_shard(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, _, exact) = batch
    claimed(db, vector)
    assert hold(db, batch_id) == (0, 2)
    assert end_hold(db, batch_id) == [exact]
    claimed(db, exact)

    assert hold(db, batch_id) is None
    assert end_hold(db, batch_id) == []


def test_an_embedder_that_could_not_lets_the_shard_wait(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, _, exact) = batch
    hold(db, batch_id)

    end_hold(db, batch_id, wait=8)

    for run_id in (vector, exact):
        assert 0 < wait_of(db, run_id) <= 8
        assert shard_of(db, run_id).error == "503"
        assert shard_of(db, run_id).attempts == 0


def test_what_embedding_took_is_added_to_the_first_run_that_needs_it(
    db: Database, batch: tuple[int, list[int]]
) -> None:
    batch_id, (vector, fulltext, exact) = batch
    for stats in ('{"texts": 3, "seconds": 0.5}', '{"texts": 1}'):
        with db.begin() as session:
            shards.add_stats(session, batch_id, 0, stats=stats)

    held = claimed(db, vector)
    with db.begin() as session:
        shards.close(session, held, stats='{"texts": 2, "hits": 7}')

    assert shard_of(db, vector).stats == {"texts": 6, "seconds": 0.5, "hits": 7}
    for other in (shard_of(db, fulltext), shard_of(db, exact), shard_of(db, vector, 1)):
        assert other.stats is None


def test_nothing_is_held_for_a_finished_run(db: Database, batch: tuple[int, list[int]]) -> None:
    batch_id, ids = batch
    for run_id in ids:
        fail(db, run_id)

    assert hold(db, batch_id) is None
    assert end_hold(db, batch_id) == []


def test_a_shard_is_due_when_it_can_be_claimed(db: Database, run: int) -> None:
    assert due(db) == [(run, 0), (run, 1)]

    release(db, claimed(db, run, 0), wait=60)
    claimed(db, run, 1)
    assert due(db) == []

    expire(db, run, 0)
    expire(db, run, 1)
    assert due(db) == [(run, 0), (run, 1)]


def test_a_shard_is_not_due_for_a_while_after_it_was_rung(db: Database, run: int) -> None:
    assert due(db, quiet=30) == []
    execute(db, "UPDATE recallwatch.run SET created_at = now() - interval '31 s'")

    assert due(db, quiet=30) == [(run, 0), (run, 1)]
    assert due(db, quiet=30) == []
    execute(db, "UPDATE recallwatch.shard SET rung_at = now() - interval '31 s' WHERE number = 1")
    assert due(db, quiet=30) == [(run, 1)]


def test_no_more_shards_are_due_at_once_than_asked_for(db: Database, run: int) -> None:
    assert due(db, limit=1) == [(run, 0)]


def test_nothing_is_due_of_finished_shards_and_runs(db: Database, run: int) -> None:
    done = claimed(db, run)
    store(db, done, rows_of(done))
    assert due(db) == [(run, 1)]

    fail(db, run)
    assert due(db) == []


def test_a_run_is_exhausted_when_a_shard_used_up_its_attempts(db: Database, run: int) -> None:
    release(db, claimed(db, run, 1), error="429")
    assert exhausted(db, attempts=2) == []

    release(db, claimed(db, run, 1), error="503")
    assert exhausted(db, attempts=2) == [(run, "shard 1 failed 2 times: 503")]


def test_the_last_attempt_is_given_its_lease(db: Database, run: int) -> None:
    claimed(db, run)
    assert exhausted(db, attempts=1) == []

    expire(db, run)
    [(failed_run, reason)] = exhausted(db, attempts=1)
    assert failed_run == run
    assert "worker was lost" in reason


def test_a_finished_run_is_not_exhausted(db: Database, run: int) -> None:
    release(db, claimed(db, run))
    fail(db, run)

    assert exhausted(db, attempts=1) == []
