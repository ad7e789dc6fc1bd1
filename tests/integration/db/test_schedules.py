"""What is stored of schedules: since when each is known, and a slot's one row."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from db import schedules
from db.session import Database
from pipeline.types import SlotOutcome
from tests.integration.db.building import (
    batch_of,
    end_run,
    execute,
    fetch,
    import_set,
    questions,
    start_run,
)

DUE = datetime(2026, 11, 30, 6, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture
def run(db: Database) -> int:
    import_set(db, questions(2))
    return start_run(db)


def take(db: Database, due: datetime, batch_id: int | None = None) -> bool:
    outcome = SlotOutcome.STARTED if batch_id else SlotOutcome.SKIPPED
    reason = None if batch_id else "it was not finished"
    with db.begin() as session:
        return schedules.take(session, "weekly", due, outcome, batch_id=batch_id, reason=reason)


def test_a_schedule_is_known_since_it_was_first_seen(db: Database) -> None:
    with db.begin() as session:
        assert schedules.seen_at(session, "weekly", "0 6 * * 1 UTC") is None
        for now in (DUE, DUE + WEEK):
            assert schedules.first_seen(session, "weekly", "0 6 * * 1 UTC", now) == DUE
        assert schedules.first_seen(session, "weekly", "0 7 * * 1 UTC", DUE + WEEK) == DUE + WEEK
        assert schedules.seen_at(session, "weekly", "0 6 * * 1 UTC") == DUE


def test_a_slot_is_taken_once(db: Database, run: int) -> None:
    batch_id = batch_of(db, run)

    assert take(db, DUE, batch_id)
    assert not take(db, DUE, batch_id)
    assert not take(db, DUE)
    assert take(db, DUE + WEEK)

    with db.begin() as session:
        latest = schedules.latest(session, "weekly")
        started = schedules.latest(session, "weekly", outcome=SlotOutcome.STARTED)
        found = schedules.find(session, "weekly", DUE)
    assert latest is not None
    assert started is not None
    assert (latest.due_at, latest.reason) == (DUE + WEEK, "it was not finished")
    assert (started.due_at, started.batch_id) == (DUE, batch_id)
    assert found is started


@pytest.mark.parametrize("committed", [True, False])
def test_who_takes_a_slot_at_the_same_time_waits_and_then_knows(
    db: Database, run: int, *, committed: bool
) -> None:
    """The second of two on real connections gets the slot only when the first one gives it up."""
    batch_id = batch_of(db, run)
    second: list[bool] = []
    waiting = threading.Thread(target=lambda: second.append(take(db, DUE)))

    with db.begin() as session:
        assert schedules.take(session, "weekly", DUE, SlotOutcome.STARTED, batch_id=batch_id)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        if not committed:
            session.rollback()
    waiting.join(10)

    assert second == [not committed]


def test_a_batch_with_an_unfinished_run_is_unfinished(db: Database, run: int) -> None:
    take(db, DUE, batch_of(db, run))

    with db.begin() as session:
        assert schedules.unfinished(session, "weekly") == batch_of(db, run)
        assert schedules.unfinished(session, "other") is None
    end_run(db, run)
    with db.begin() as session:
        assert schedules.unfinished(session, "weekly") is None


@pytest.mark.parametrize(
    "values", ["'started', NULL, NULL", "'skipped', NULL, NULL", "'missed', NULL, 'late'"]
)
def test_a_slot_that_says_neither_its_batch_nor_why_not_is_refused(
    db: Database, values: str
) -> None:
    with pytest.raises(IntegrityError, match="schedule_slot_"):
        execute(db, f"INSERT INTO recallwatch.schedule_slot VALUES ('a', now(), {values})")  # noqa: S608 - of these three

    assert fetch(db, "SELECT count(*) FROM recallwatch.schedule_slot") == [0]
