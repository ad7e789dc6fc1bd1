"""Batches that wait until re-indexing is over: later notices join them, a sweep lets them go."""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db import runs, shards
from db.models import Batch, Run
from db.runs import RunPlan
from pipeline.types import Trigger

LONGEST = 10
"""Quiet times after which a batch starts, however often it was joined."""

_MEASURED_ALIKE = ("strategy", "settings", "k", "level", "convention", "measures",
                   "relevance_threshold", "gate", "embedding_model")  # fmt: skip
"""What two requests have in common that one run can answer."""


def join(
    session: Session, version_id: int, plans: Sequence[RunPlan], *, quiet: int
) -> tuple[Batch, Sequence[Run]] | None:
    """Find a waiting batch of the same plans, and have it wait `quiet` seconds from now again.

    Its runs take the plans' corpus fingerprints, which are newer. None: there is no such batch.
    Callers at once are told apart by the lock that `db.golden.snapshot` holds. A batch of which
    anything was measured, or a run was cancelled or resumed, is not joined: what it measured was
    of the corpus as it was then.
    """
    waiting = (
        select(Batch)
        .where(
            Batch.version_id == version_id,
            Batch.trigger == Trigger.REINDEX,
            Batch.quiet_until > func.clock_timestamp(),
        )
        .order_by(Batch.id.desc())
        .with_for_update(key_share=True)
    )
    for batch in session.scalars(waiting).all():
        planned = runs.of_batch(session, batch.id)
        if _alike(planned, plans) and _is_untouched(session, planned):
            postpone(session, batch, planned, plans, quiet=quiet)
            return batch, planned
    return None


def _is_untouched(session: Session, planned: Sequence[Run]) -> bool:
    """Say whether nobody began or ended one of the runs, and keep it so."""
    run_ids = [run.id for run in planned]
    shards.lock_open(session, run_ids)
    query = text("""
        SELECT NOT EXISTS (SELECT FROM recallwatch.run
                           WHERE id = ANY(:ids) AND (status <> 'queued' OR started_at IS NOT NULL))
            AND NOT EXISTS (SELECT FROM recallwatch.shard WHERE run_id = ANY(:ids) AND token > 0)
    """)
    return bool(session.scalar(query, {"ids": run_ids}))


def _alike(planned: Sequence[Run], plans: Sequence[RunPlan]) -> bool:
    return _content(planned) == _content(plans)


def _content(each: Sequence[Run] | Sequence[RunPlan]) -> list[str]:
    """Return what is to be measured, one JSON text a run, in no order."""
    return sorted(
        json.dumps([getattr(one, name) for name in _MEASURED_ALIKE], sort_keys=True) for one in each
    )


def postpone(
    session: Session, batch: Batch, planned: Sequence[Run], plans: Sequence[RunPlan], *, quiet: int
) -> None:
    """Let nobody evaluate the batch for `quiet` seconds; its deadlines count from then on."""
    query = text("""
        UPDATE recallwatch.batch SET quiet_until = least(
            clock_timestamp() + make_interval(secs => :quiet),
            created_at + make_interval(secs => :longest))
        WHERE id = :id RETURNING quiet_until
    """)
    values = {"id": batch.id, "quiet": quiet, "longest": LONGEST * quiet}
    until = session.execute(query, values).scalar_one()
    session.execute(
        text("""
            UPDATE recallwatch.shard SET next_at = :until
            WHERE run_id = ANY(:ids) AND state = 'pending'
        """),
        {"until": until, "ids": [run.id for run in planned]},
    )
    newer = {plan.strategy: plan for plan in plans}
    for run in planned:
        run.corpus_fingerprint = newer[run.strategy].corpus_fingerprint
        run.deadline_at = until + newer[run.strategy].deadline
    session.refresh(batch)


def wake(session: Session) -> list[int]:
    """End the wait of the batches whose time has come; ring them after the commit.

    Their shards count as rung now, so that no sweep rings them at the same time.
    """
    query = text("""
        UPDATE recallwatch.batch SET quiet_until = NULL
        WHERE quiet_until <= clock_timestamp() RETURNING id
    """)
    woken = sorted(session.execute(query).scalars())
    session.execute(
        text("""
            UPDATE recallwatch.shard s SET next_at = NULL, rung_at = clock_timestamp()
            FROM recallwatch.run r
            WHERE r.id = s.run_id AND r.batch_id = ANY(:ids) AND s.state = 'pending'
        """),
        {"ids": woken},
    )
    return woken


def quiet_until(session: Session, batch_id: int) -> datetime | None:
    """Return until when a batch waits; None: it has been let go."""
    return session.scalar(select(Batch.quiet_until).filter_by(id=batch_id))
