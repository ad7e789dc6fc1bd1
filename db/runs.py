"""Batches and runs: made by a trigger, finished once, read by everybody."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from db.models import Batch, GoldenVersion, Run
from pipeline.errors import UsageError
from pipeline.types import RunStatus, Trigger, Verdict
from pipeline.verdict.gate import Finding, Judgement, Rule

UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)


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
    """How far a run is, in questions."""

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
    """Count the questions of finished shards; `claimed` says whether any worker took one.

    Exact search, which comes after them, is not counted.
    """
    query = text("""
        SELECT r.id, r.status, r.size,
            coalesce(sum(s.last_position - s.first_position + 1)
                     FILTER (WHERE s.kind = 'served' AND s.state = 'done'), 0)::bigint AS done,
            coalesce(bool_or(s.token > 0 OR s.next_at IS NOT NULL), false) AS claimed
        FROM recallwatch.run r LEFT JOIN recallwatch.shard s ON s.run_id = r.id
        WHERE r.id = ANY(:ids) GROUP BY r.id ORDER BY r.id
    """)
    return [
        Progress(row.id, RunStatus(row.status), row.size, row.done, row.claimed)
        for row in session.execute(query, {"ids": list(run_ids)})
    ]


def mark_running(session: Session, run_id: int) -> None:
    """Note that a worker took the run's first shard."""
    session.execute(
        update(Run)
        .where(Run.id == run_id, Run.status == RunStatus.QUEUED)
        .values(status=RunStatus.RUNNING, started_at=func.now())
    )


def lock(session: Session, run_id: int) -> Run | None:
    """Lock an unfinished run's row until the transaction ends; None when it is finished."""
    # Every result that is written holds FOR KEY SHARE on its run, through the foreign key: a plain
    # FOR UPDATE would conflict with it, and two shards stored at once would deadlock.
    unfinished = select(Run).where(Run.id == run_id, Run.status.in_(UNFINISHED))
    return session.scalar(unfinished.with_for_update(key_share=True))


def complete(run: Run, judgement: Judgement) -> None:
    """Give a locked run its verdict and its end; the CHECKs refuse one whose counts are short."""
    run.status = RunStatus.COMPLETED
    run.verdict = judgement.verdict
    run.reasons = judgement.reasons
    run.findings = [finding.to_json() for finding in judgement.findings]
    run.cause = judgement.cause
    run.finished_at = func.clock_timestamp()


def fail(session: Session, run_ids: Sequence[int], reason: str) -> list[int]:
    """End unfinished runs as unmeasured, with their open shards; return those it ended.

    Shards first, then runs: the order in which `db.results.store` locks them too.
    """
    finding = Finding(rule=Rule.FAILED, verdict=Verdict.UNMEASURED, text=reason)
    values = {"ids": list(run_ids), "reason": reason, "findings": json.dumps([finding.to_json()])}
    session.execute(
        text("""
            UPDATE recallwatch.shard SET state = 'failed', lease_until = NULL, error = :reason
            WHERE run_id = ANY(:ids) AND state IN ('pending', 'leased')
        """),
        values,
    )
    ended = session.execute(
        text("""
            UPDATE recallwatch.run SET status = 'failed', verdict = 'unmeasured',
                reasons = ARRAY[:reason], findings = CAST(:findings AS jsonb),
                finished_at = clock_timestamp()
            WHERE id = ANY(:ids) AND status IN ('queued', 'running') RETURNING id
        """),
        values,
    )
    return list(ended.scalars())


REDUCER_GETS = timedelta(minutes=10)
"""How long past its deadline a run lives on whose shards are all done: it lacks its record only."""


def overdue(session: Session) -> list[int]:
    """Return the unfinished runs whose deadline has passed."""
    query = text("""
        SELECT r.id FROM recallwatch.run r
        WHERE r.status IN ('queued', 'running') AND r.deadline_at < now()
          AND (r.deadline_at < now() - CAST(:reducer_gets AS interval) OR EXISTS (
              SELECT FROM recallwatch.shard s WHERE s.run_id = r.id AND s.state <> 'done'))
        ORDER BY r.id
    """)
    return list(session.execute(query, {"reducer_gets": REDUCER_GETS}).scalars())


def finished_shards_only(session: Session) -> list[int]:
    """Return the unfinished runs all of whose shards are done: they wait for the reducer."""
    query = text("""
        SELECT r.id FROM recallwatch.run r
        WHERE r.status IN ('queued', 'running') AND NOT EXISTS (
            SELECT FROM recallwatch.shard s WHERE s.run_id = r.id AND s.state <> 'done')
    """)
    return list(session.execute(query).scalars())


def find_reference(session: Session, context: RunContext) -> Run | None:
    """Return the last measured run of the same set and strategy that measured the same thing.

    That is: at the same k, level, relevance threshold and metric convention.
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
            Run.id < run.id,
        )
        .order_by(Run.id.desc())
        .limit(1)
    )
    return session.scalar(query)
