"""Schedules: since when each is known, and what became of its slots."""

from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from db.models import ScheduleSlot, SeenSchedule
from pipeline.types import SlotOutcome


def first_seen(session: Session, name: str, rule: str, now: datetime) -> datetime:
    """Return since when a schedule of this name and rule is known: from now on, if it is new."""
    insert = text("""
        INSERT INTO recallwatch.seen_schedule (name, rule, seen_at) VALUES (:name, :rule, :now)
        ON CONFLICT (name, rule) DO NOTHING RETURNING seen_at
    """)
    known = seen_at(session, name, rule)
    if known is not None:
        return known
    values = {"name": name, "rule": rule, "now": now}
    # Somebody else may have been faster by a moment.
    return session.scalar(insert, values) or seen_at(session, name, rule) or now


def seen_at(session: Session, name: str, rule: str) -> datetime | None:
    """Return since when a schedule is known; None: no worker has seen it yet."""
    return session.scalar(select(SeenSchedule.seen_at).filter_by(name=name, rule=rule))


def take(
    session: Session,
    name: str,
    due: datetime,
    outcome: SlotOutcome,
    *,
    batch_id: int | None = None,
    reason: str | None = None,
) -> bool:
    """Write what becomes of a slot; False: that stands already, as somebody else wrote it.

    Waits for a transaction that writes the same slot. A started one has a `batch_id`, any other a
    `reason`.
    """
    query = text("""
        INSERT INTO recallwatch.schedule_slot (schedule, due_at, outcome, batch_id, reason)
        VALUES (:name, :due, :outcome, :batch_id, :reason)
        ON CONFLICT (schedule, due_at) DO NOTHING RETURNING 1
    """)
    values = {"name": name, "due": due, "outcome": outcome, "batch_id": batch_id, "reason": reason}
    return session.scalar(query, values) is not None


def find(session: Session, name: str, due: datetime) -> ScheduleSlot | None:
    """Return a slot that something became of."""
    return session.get(ScheduleSlot, (name, due))


def latest(
    session: Session, name: str, *, outcome: SlotOutcome | None = None
) -> ScheduleSlot | None:
    """Return the last slot of a schedule that something became of, or that became `outcome`."""
    query = select(ScheduleSlot).filter_by(schedule=name).order_by(ScheduleSlot.due_at.desc())
    if outcome is not None:
        query = query.filter_by(outcome=outcome)
    return session.scalar(query.limit(1))


def unfinished(session: Session, name: str) -> int | None:
    """Return the last batch of a schedule that has an unfinished run; None: there is none."""
    query = text("""
        SELECT max(s.batch_id) FROM recallwatch.schedule_slot s
        JOIN recallwatch.run r ON r.batch_id = s.batch_id
        WHERE s.schedule = :name AND r.status IN ('queued', 'running')
    """)
    batch_id: int | None = session.scalar(query, {"name": name})
    return batch_id
