"""Batches and runs: made by a trigger, read by everybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from db.models import Baseline, Batch, GoldenVersion, Run
from db.run_states import UNFINISHED
from pipeline.errors import UsageError
from pipeline.types import RunStatus, Trigger, Verdict


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a trigger asks of one run; see `db.models.Run` for the fields."""

    strategy: str
    settings: dict[str, Any]
    needs_vectors: bool
    k: int
    level: str
    convention: str
    measures: Sequence[str]
    relevance_threshold: int
    gate: dict[str, Any]
    embedding_model: str | None
    corpus_fingerprint: dict[str, Any]
    git_sha: str | None
    deadline: timedelta


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, in questions; `claimed`: a worker took one of the shards that are left."""

    run_id: int
    status: RunStatus
    size: int
    done: int
    claimed: bool


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run with the batch and the golden version it belongs to."""

    run: Run
    batch: Batch
    version: GoldenVersion


def create_batch(
    session: Session,
    version: GoldenVersion,
    plans: Sequence[RunPlan],
    *,
    trigger: Trigger,
    requested_by: str | None,
) -> tuple[Batch, list[Run]]:
    """Insert a batch and its runs; the shards are `db.shards.plan`'s, in the same transaction."""
    batch = Batch(version_id=version.id, trigger=trigger, requested_by=requested_by)
    session.add(batch)
    session.flush()
    runs = [_new_run(batch, version, plan) for plan in plans]
    session.add_all(runs)
    session.flush()
    return batch, runs


def _new_run(batch: Batch, version: GoldenVersion, plan: RunPlan) -> Run:
    return Run(
        batch_id=batch.id,
        size=version.size,
        strategy=plan.strategy,
        settings=plan.settings,
        needs_vectors=plan.needs_vectors,
        k=plan.k,
        level=plan.level,
        convention=plan.convention,
        measures=list(plan.measures),
        relevance_threshold=plan.relevance_threshold,
        gate=plan.gate,
        embedding_model=plan.embedding_model,
        corpus_fingerprint=plan.corpus_fingerprint,
        git_sha=plan.git_sha,
        deadline_at=func.now() + plan.deadline,
    )


def get(session: Session, run_id: int) -> RunContext:
    """Return a run with its batch and version; raises UsageError when there is none."""
    query = (
        select(Run, Batch, GoldenVersion)
        .join(Batch, Batch.id == Run.batch_id)
        .join(GoldenVersion, GoldenVersion.id == Batch.version_id)
        .where(Run.id == run_id)
    )
    row = session.execute(query).one_or_none()
    if row is None:
        raise UsageError(f"there is no run {run_id}; see: recallwatch runs list")
    return RunContext(*row)


def recent(
    session: Session,
    *,
    set_name: str | None = None,
    strategy: str | None = None,
    limit: int = 20,
) -> list[RunContext]:
    """Return the newest runs first."""
    query = (
        select(Run, Batch, GoldenVersion)
        .join(Batch, Batch.id == Run.batch_id)
        .join(GoldenVersion, GoldenVersion.id == Batch.version_id)
        .order_by(Run.id.desc())
        .limit(limit)
    )
    if set_name is not None:
        query = query.where(GoldenVersion.set_name == set_name)
    if strategy is not None:
        query = query.where(Run.strategy == strategy)
    return [RunContext(*row) for row in session.execute(query)]


def series(
    session: Session,
    *,
    set_name: str | None = None,
    strategy: str | None = None,
    k: int | None = None,
    level: str | None = None,
    last: int = 20,
) -> list[RunContext]:
    """Return the last finished runs of each series, oldest first, the series one after the other.

    A series is what may be compared: one set, strategy, k, level, threshold and convention.
    """
    place = (GoldenVersion.set_name, Run.strategy, Run.k, Run.level, Run.relevance_threshold,
             Run.convention)  # fmt: skip
    asked = zip(place, (set_name, strategy, k, level), strict=False)
    newest = func.row_number().over(partition_by=place, order_by=Run.id.desc()).label("newest")
    numbered = (
        select(Run.id, newest)
        .join(Batch, Batch.id == Run.batch_id)
        .join(GoldenVersion, GoldenVersion.id == Batch.version_id)
        .where(Run.status.not_in(UNFINISHED))
        .where(*(column == value for column, value in asked if value is not None))
        .subquery()
    )
    query = (
        select(Run, Batch, GoldenVersion)
        .join(Batch, Batch.id == Run.batch_id)
        .join(GoldenVersion, GoldenVersion.id == Batch.version_id)
        .join(numbered, numbered.c.id == Run.id)
        .where(numbered.c.newest <= last)
        .order_by(*place, Run.id)
    )
    return [RunContext(*row) for row in session.execute(query)]


def of_batch(session: Session, batch_id: int) -> Sequence[Run]:
    """Return a batch's runs in the order they were asked for."""
    return session.scalars(select(Run).filter_by(batch_id=batch_id).order_by(Run.id)).all()


def progress(session: Session, run_ids: Sequence[int]) -> list[Progress]:
    """Count the questions of finished shards; exact search, which comes after them, is left out."""
    query = text("""
        SELECT r.id, r.status, r.size,
            coalesce(sum(s.last_position - s.first_position + 1)
                     FILTER (WHERE s.kind = 'served' AND s.state = 'done'), 0)::bigint AS done,
            coalesce(bool_or(s.attempts > 0 OR s.next_at IS NOT NULL)
                     FILTER (WHERE s.state <> 'done'), false) AS claimed
        FROM recallwatch.run r LEFT JOIN recallwatch.shard s ON s.run_id = r.id
        WHERE r.id = ANY(:ids) GROUP BY r.id ORDER BY r.id
    """)
    return [
        Progress(row.id, RunStatus(row.status), row.size, row.done, row.claimed)
        for row in session.execute(query, {"ids": list(run_ids)})
    ]


def unfinished(session: Session) -> list[int]:
    """Return the runs that are queued or running."""
    return list(session.scalars(select(Run.id).where(Run.status.in_(UNFINISHED)).order_by(Run.id)))


@dataclass(frozen=True, slots=True)
class Idle:
    """An unfinished run that no worker has anything of; it was queued `minutes` ago."""

    run_id: int
    minutes: float


def idle(session: Session, *, minutes: int) -> list[Idle]:
    """Return the unfinished runs, older than this, where no worker has a shard of any run.

    None where one has: the others then wait for their turn. A reducer's lock, a wait before the
    next try, and one until re-indexing is over count as work too.
    """
    query = text("""
        WITH unfinished AS (
            SELECT id, created_at, reduce_next_at FROM recallwatch.run
            WHERE status IN ('queued', 'running')
            FOR SHARE SKIP LOCKED -- a reducer has it locked while it works
        )
        SELECT id, extract(epoch FROM clock_timestamp() - created_at)::float8 / 60 AS minutes
        FROM unfinished WHERE created_at < clock_timestamp() - make_interval(mins => :minutes)
          AND NOT EXISTS (SELECT FROM unfinished WHERE reduce_next_at > clock_timestamp())
          AND NOT EXISTS (
              SELECT FROM recallwatch.shard s JOIN unfinished u ON u.id = s.run_id
              WHERE greatest(s.lease_until, s.next_at) > clock_timestamp())
        ORDER BY id
    """)
    return [Idle(row.id, row.minutes) for row in session.execute(query, {"minutes": minutes})]


def users(session: Session, run_id: int) -> str | None:
    """Say what hangs on a run's record: a pin, or a run compared with it; None: nothing."""
    if session.scalar(select(Baseline.run_id).where(Baseline.run_id == run_id)) is not None:
        return "it is pinned as a baseline"
    compared = select(Run.id).where((Run.compared_to == run_id) | (Run.baseline_run == run_id))
    later = session.scalar(compared.order_by(Run.id).limit(1))
    return None if later is None else f"run {later} was compared with it"


def find_reference(session: Session, context: RunContext) -> Run | None:
    """Return the last measured run of the same set and strategy that measured the same thing.

    That is: at the same k, level, relevance threshold and metric convention. It is locked, so that
    its questions are not asked again while the run is compared with it.
    """
    run = context.run
    query = (
        select(Run)
        .join(Batch, Batch.id == Run.batch_id)
        .join(GoldenVersion, GoldenVersion.id == Batch.version_id)
        .where(
            GoldenVersion.set_name == context.version.set_name,
            Run.strategy == run.strategy,
            Run.k == run.k,
            Run.level == run.level,
            Run.relevance_threshold == run.relevance_threshold,
            Run.convention == run.convention,
            Run.status == RunStatus.COMPLETED,
            Run.verdict != Verdict.UNMEASURED,
            # What another tenant's chunks took the place of, nobody knows.
            func.coalesce(func.jsonb_typeof(Run.facts["leaks"]), "null") == "null",
            Run.id < run.id,
        )
        .order_by(Run.id.desc())
        .limit(1)
        .with_for_update(read=True, of=Run)
    )
    return session.scalar(query)
