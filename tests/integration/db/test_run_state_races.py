"""Whoever ends or reopens a run while others work on it, it is ended or reopened as a whole."""

import threading
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import event

from db import baselines, run_states, runs, shards
from db.session import Database
from db.shards import Claim
from pipeline.errors import UsageError
from tests.integration.db.building import (
    claim,
    claimed,
    end_run,
    expire,
    import_set,
    questions,
    run_of,
    start_run,
    storing,
    together,
)
from tests.integration.db.changing import (
    HOUR,
    cancel,
    completed_with_failures,
    fail,
    resume,
    retry,
    states,
    stored,
)


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of four questions in two shards."""
    import_set(db, questions(4))
    return start_run(db, shard_size=2)


def waits(action: Callable[[], object]) -> threading.Thread:
    """Start an action that must come to wait for a lock that the caller holds."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join(timeout=0.3)
    assert thread.is_alive()
    return thread


def test_a_store_and_a_cancel_agree_on_which_came_first(db: Database) -> None:
    import_set(db, questions(2))
    for _ in range(10):
        run_id = start_run(db)
        hold = claimed(db, run_id)

        was_last, ended = together(storing(db, hold), partial(cancel, db, run_id))

        assert ended == [run_id]
        assert run_of(db, run_id).status == "cancelled"
        assert stored(db, run_id) == ([] if was_last is None else [0, 1])
        assert states(db, run_id) == (["failed"] if was_last is None else ["done"])


def test_of_those_who_cancel_or_resume_at_once_one_does_it(db: Database, run: int) -> None:
    for _ in range(5):
        ended = together(*[partial(cancel, db, run)] * 3)
        assert sorted(ended) == [[], [], [run]]

        assert sorted(together(*[partial(resume, db, run)] * 3)) == [False, False, True]


def test_a_run_that_is_cancelled_and_resumed_at_once_is_cancelled_or_goes_on_as_a_whole(
    db: Database,
) -> None:
    import_set(db, questions(6))
    for _ in range(15):
        run_id = start_run(db, shard_size=1)
        fail(db, run_id)

        ended, resumed = together(partial(cancel, db, run_id), partial(resume, db, run_id))

        assert resumed
        expected = ("cancelled", ["failed"] * 6) if ended else ("queued", ["pending"] * 6)
        assert (run_of(db, run_id).status, states(db, run_id)) == expected


def test_a_cancel_that_comes_while_a_run_is_resumed_waits_and_ends_all_of_it(
    db: Database, run: int
) -> None:
    fail(db, run)
    with db.begin() as session:
        assert run_states.resume(session, run, deadline=HOUR)
        waiting = waits(partial(cancel, db, run))
    waiting.join(timeout=10)

    assert (run_of(db, run).status, states(db, run)) == ("cancelled", ["failed", "failed"])


def test_who_held_a_shard_before_can_do_nothing_in_the_run_that_goes_on(
    db: Database, run: int
) -> None:
    late = claimed(db, run, 0)
    cancel(db, run)
    assert storing(db, late)() is None
    resume(db, run)

    def powerless() -> bool:
        with db.begin() as session:
            released = shards.release(session, late, error="late", wait=60)
            return not released and not shards.holds(session, late)

    assert storing(db, late)() is None
    assert powerless()
    again = claimed(db, run, 0)
    assert storing(db, late)() is None
    assert powerless()
    assert stored(db, run) == []

    assert storing(db, again)() is False
    assert stored(db, run) == [0, 1]


def test_a_late_store_and_a_resume_at_once_store_nothing_of_the_late_one(db: Database) -> None:
    import_set(db, questions(2))
    for _ in range(10):
        run_id = start_run(db)
        late = claimed(db, run_id)
        cancel(db, run_id)

        was_last, resumed = together(storing(db, late), partial(resume, db, run_id))

        assert (was_last, resumed, stored(db, run_id)) == (None, True, [])
        assert storing(db, claimed(db, run_id))() is True


def test_nobody_takes_the_shard_of_one_who_is_about_to_end_its_run(db: Database, run: int) -> None:
    hold = claimed(db, run)
    expire(db, run)

    with db.begin() as session:
        assert shards.holds(session, hold)
        assert claim(db, run) is None
    assert claim(db, run) is not None


def test_workers_that_fail_a_run_at_once_do_not_wait_for_each_other(db: Database) -> None:
    def give_up(hold: Claim) -> bool:
        with db.begin() as session:
            return shards.holds(session, hold) and bool(
                run_states.fail(session, [hold.run_id], "a bad key")
            )

    import_set(db, questions(4))
    for _ in range(10):
        run_id = start_run(db, shard_size=1)
        holds = [claimed(db, run_id, number) for number in (3, 1, 0, 2)]

        ended = together(*[partial(give_up, hold) for hold in holds])

        assert sorted(ended) == [False, False, False, True]
        assert states(db, run_id) == ["failed"] * 4


def test_while_a_run_is_compared_with_another_its_questions_are_not_asked_again(
    db: Database,
) -> None:
    reference = completed_with_failures(db)
    later = start_run(db)
    told: list[str | None] = []

    def ask_again() -> None:
        with db.begin() as session:
            assert run_states.lock_completed(session, reference)
            told.append(runs.users(session, reference))

    with db.begin() as session:
        found = runs.get(session, later)
        reference_run = runs.find_reference(session, found)
        assert reference_run is not None
        found.run.compared_to = reference_run.id
        waiting = waits(ask_again)
    waiting.join(timeout=10)

    assert told == [f"run {later} was compared with it"]


def test_a_run_whose_questions_are_asked_again_is_no_reference_meanwhile(db: Database) -> None:
    import_set(db, questions(8))
    before = end_run(db, start_run(db))
    asked_again = completed_with_failures(db)
    later = start_run(db)
    found: list[int | None] = []

    def look() -> None:
        with db.begin() as session:
            reference = runs.find_reference(session, runs.get(session, later))
        found.append(None if reference is None else reference.id)

    with db.begin() as session:
        assert run_states.retry_failed(session, asked_again, deadline=HOUR)
        waiting = waits(look)
    waiting.join(timeout=10)

    assert found == [before]


def test_a_run_whose_questions_are_asked_again_is_not_pinned_meanwhile(db: Database) -> None:
    run_id = completed_with_failures(db)
    refused: list[str] = []

    def pin() -> None:
        with pytest.raises(UsageError) as error, db.begin() as session:
            baselines.pin(session, runs.get(session, run_id), by=None)
        refused.append(str(error.value))

    with db.begin() as session:
        assert run_states.retry_failed(session, run_id, deadline=HOUR)
        waiting = waits(pin)
    waiting.join(timeout=10)

    assert refused == [f"run {run_id} is running: it measured nothing to pin"]


def test_a_shard_that_is_claimed_while_its_run_is_cancelled_is_ended(db: Database) -> None:
    import_set(db, questions(2))
    for _ in range(10):
        run_id = start_run(db, shard_size=1)

        together(partial(claim, db, run_id, 0), partial(cancel, db, run_id),
                 partial(claim, db, run_id, 1))  # fmt: skip

        assert states(db, run_id) == ["failed", "failed"]


def just_before(db: Database, words: str, action: Callable[[], object]) -> None:
    """Have an action done and committed, once, before the next statement with these words."""
    waiting = [action]

    @event.listens_for(db.engine, "before_cursor_execute")
    def meanwhile(*arguments: object) -> None:
        if waiting and words in str(arguments[2]):
            waiting.pop()()


@pytest.mark.parametrize("how", [cancel, fail])
def test_questions_that_are_asked_again_between_two_statements_of_a_cancel_stay_open(
    db: Database, how: Callable[..., list[int]]
) -> None:
    run_id = completed_with_failures(db)
    just_before(db, "SET status = %(status)s", partial(retry, db, run_id))

    assert how(db, run_id) == []
    opened = ["done", "pending", "pending", "done"]
    assert (run_of(db, run_id).status, states(db, run_id)) == ("running", opened)

    assert how(db, run_id) == [run_id]
    assert states(db, run_id) == ["done", "failed", "failed", "done"]


def test_a_run_that_is_cancelled_between_two_statements_of_a_resume_does_not_go_on_in_part(
    db: Database,
) -> None:
    run_id = completed_with_failures(db)

    def change() -> None:
        assert retry(db, run_id)
        assert cancel(db, run_id) == [run_id]

    just_before(db, "SET\n            status = CASE", change)

    assert not resume(db, run_id)
    ended = ["done", "failed", "failed", "done"]
    assert (run_of(db, run_id).status, states(db, run_id)) == ("cancelled", ended)
    assert resume(db, run_id)
