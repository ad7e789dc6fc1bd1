"""What happens at once, on real connections: one wins, and nothing waits for ever."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import text

from db import results, run_states, shards
from db.models import Run
from db.session import Database, Session
from tests.integration.db.building import (
    claim,
    claimed,
    execute,
    expire,
    fetch,
    import_set,
    questions,
    run_of,
    scored,
    shard_of,
    start_run,
    storing,
    together,
)


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of four questions in two shards."""
    import_set(db, questions(4))
    return start_run(db, shard_size=2)


def ending(db: Database, run_id: int) -> Callable[[], None]:
    def end() -> None:
        with db.begin() as session:
            run_states.fail(session, [run_id], "overdue")

    return end


def test_of_many_workers_that_claim_a_shard_one_has_it(db: Database, run: int) -> None:
    for token in range(1, 6):
        claims = together(*[lambda: claim(db, run, attempts=100)] * 6)

        [hold] = [hold for hold in claims if hold is not None]
        assert hold.token == token == shard_of(db, run).token
        expire(db, run)


def test_shards_that_are_stored_at_the_same_moment_do_not_wait_for_each_other(
    db: Database, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_copied = threading.Barrier(2)
    lock = run_states.lock

    def lock_once_both_have_copied(session: Session, run_id: int) -> Run | None:
        both_copied.wait(timeout=10)
        return lock(session, run_id)

    monkeypatch.setattr(run_states, "lock", lock_once_both_have_copied)
    holds = [claimed(db, run, 0), claimed(db, run, 1)]

    was_last = together(*[storing(db, hold) for hold in holds])

    assert sorted(was_last, key=bool) == [False, True]
    assert fetch(db, "SELECT count(*) FROM recallwatch.result") == [4]


def test_one_of_the_last_shards_sees_that_it_was_the_last(db: Database) -> None:
    import_set(db, questions(4))
    for _ in range(10):
        run_id = start_run(db, shard_size=1)
        holds = [claimed(db, run_id, number) for number in range(4)]

        was_last = together(*[storing(db, hold) for hold in holds])

        assert was_last.count(True) == 1
        assert was_last.count(False) == 3


def test_a_claim_and_the_end_of_its_run_leave_no_shard_open(db: Database) -> None:
    import_set(db, questions(2))
    for _ in range(10):
        run_id = start_run(db, shard_size=1)

        together(partial(claim, db, run_id, 0), ending(db, run_id), partial(claim, db, run_id, 1))

        states = fetch(
            db, "SELECT state FROM recallwatch.shard WHERE run_id = :run", {"run": run_id}
        )
        assert states == ["failed", "failed"]


def test_a_store_and_the_end_of_its_run_agree_on_which_came_first(db: Database) -> None:
    import_set(db, questions(2))
    for _ in range(10):
        run_id = start_run(db)
        hold = claimed(db, run_id)

        stored, _ = together(storing(db, hold), ending(db, run_id))

        count = fetch(
            db, "SELECT count(*) FROM recallwatch.result WHERE run_id = :run", {"run": run_id}
        )
        assert run_of(db, run_id).status == "failed"
        assert count == ([0] if stored is None else [2])
        assert shard_of(db, run_id).state == ("failed" if stored is None else "done")


def test_a_shard_that_one_sweep_is_about_to_ring_is_not_due_for_another(
    db: Database, run: int
) -> None:
    execute(db, "UPDATE recallwatch.run SET created_at = now() - interval '1 hour'")

    with db.begin() as one, db.begin() as other:
        other.execute(text("SET LOCAL lock_timeout = '1s'"))
        assert shards.due(one, quiet=60, limit=100) == [(run, 0), (run, 1)]
        assert shards.due(other, quiet=60, limit=100) == []


def test_one_embedder_at_a_time_holds_a_shard(db: Database, run: int) -> None:
    batch_id = run_of(db, run).batch_id

    def hold() -> tuple[int, int] | None:
        with db.begin() as session:
            return shards.hold_for_embedding(session, batch_id, 0, lease=60)

    for _ in range(5):
        assert [slice_ for slice_ in together(*[hold] * 4) if slice_] == [(0, 1)]
        expire(db, run)


def test_a_store_that_waits_for_the_run_sees_what_the_other_one_committed(
    db: Database, run: int
) -> None:
    first, second = claimed(db, run, 0), claimed(db, run, 1)
    rows = [scored(0), scored(1)]
    seen: list[bool | None] = []
    with db.begin() as session:
        assert results.store(session, first, rows, stats={}) is False
        waiting = threading.Thread(target=lambda: seen.append(storing(db, second)()))
        waiting.start()
        waiting.join(timeout=0.3)
        assert waiting.is_alive()
    waiting.join(timeout=10)

    assert seen == [True]
