"""Task tick: start the batches that are due, each slot of a schedule once."""

from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from db import schedules
from db.session import Session
from pipeline.errors import RecallwatchError, TransientError
from pipeline.schedules import Schedule, last_due, next_due, to_timedelta
from pipeline.types import SlotOutcome, Trigger
from workers import context
from workers.app import app
from workers.context import Context
from workers.doorbell import TICK
from workers.enqueue import Request, start
from workers.schedule import TICK_EVERY

log = structlog.get_logger(__name__)


class SlotTakenError(Exception):
    """Somebody else has dealt with the slot meanwhile."""


@app.task(name=TICK)
def tick_schedules() -> None:
    """Start what the schedules in the settings say is due."""
    tick(context.current(), datetime.now(UTC))


def tick(ctx: Context, now: datetime) -> dict[str, SlotOutcome]:
    """Deal with the last slot of each schedule; return what became of those dealt with now.

    The slot's row is written in the transaction that writes its batch, so that however many beats
    and workers do this at once, one batch starts.
    """
    dealt_with = {}
    for schedule in ctx.settings.schedule:
        with structlog.contextvars.bound_contextvars(schedule=schedule.name):
            due = _due(ctx, schedule, now) if schedule.enabled else None
            outcome = _deal_with(ctx, schedule, due, now) if due else None
        if outcome is not None:
            dealt_with[schedule.name] = outcome
    return dealt_with


def _due(ctx: Context, schedule: Schedule, now: datetime) -> datetime | None:
    """Return the slot that waits for a batch.

    None: it has been dealt with, it is from before the schedule was known, or it is too late.
    """
    due = last_due(schedule, now)
    with ctx.database.begin() as session:
        since = schedules.first_seen(session, schedule.name, schedule.rule, now)
        if due is None or due <= since or now > due + to_timedelta(schedule.grace):
            return None
        return None if schedules.find(session, schedule.name, due) else due


def _deal_with(
    ctx: Context, schedule: Schedule, due: datetime, now: datetime
) -> SlotOutcome | None:
    with ctx.database.begin() as session:
        unfinished = schedules.unfinished(session, schedule.name)
    if unfinished is not None:
        reason = f"batch {unfinished} of this schedule was not finished"
        return _close(ctx, schedule, due, SlotOutcome.SKIPPED, reason)
    try:
        started = start(ctx, _request(schedule), within=partial(_take, schedule, due))
    except SlotTakenError:
        return None
    except TransientError as error:
        return _postpone(ctx, schedule, due, now, str(error))
    except RecallwatchError as error:
        return _close(ctx, schedule, due, SlotOutcome.FAILED, str(error))
    except Exception as error:
        log.exception("schedule_raised")
        return _postpone(ctx, schedule, due, now, repr(error))
    log.info("schedule_started", batch=started.batch_id, due=due.isoformat())
    return SlotOutcome.STARTED


def _request(schedule: Schedule) -> Request:
    return Request(
        strategies=schedule.strategies,
        set_name=schedule.set,
        k=schedule.k,
        level=schedule.level,
        trigger=Trigger.SCHEDULE,
        requested_by=schedule.name,
    )


def _take(schedule: Schedule, due: datetime, session: Session, batch_id: int) -> None:
    """Write the slot beside its batch; raises SlotTakenError, which undoes the batch."""
    if not schedules.take(session, schedule.name, due, SlotOutcome.STARTED, batch_id=batch_id):
        raise SlotTakenError


def _postpone(
    ctx: Context, schedule: Schedule, due: datetime, now: datetime, reason: str
) -> SlotOutcome | None:
    """Leave the slot to the next tick; when that comes too late, it has failed.

    When only the queue did not answer, the batch stands, and a sweep rings it.
    """
    log.warning("schedule_postponed", reason=reason)
    ends = due + to_timedelta(schedule.grace)
    following = next_due(schedule, due) or ends
    if now + timedelta(seconds=TICK_EVERY) < min(ends, following):
        return None
    return _close(ctx, schedule, due, SlotOutcome.FAILED, reason)


def _close(
    ctx: Context, schedule: Schedule, due: datetime, outcome: SlotOutcome, reason: str
) -> SlotOutcome | None:
    """Write why the slot has no batch; None: somebody else has dealt with it."""
    with ctx.database.begin() as session:
        if not schedules.take(session, schedule.name, due, outcome, reason=reason):
            return None
    log.warning("schedule_not_started", outcome=outcome, due=due.isoformat(), reason=reason)
    return outcome
