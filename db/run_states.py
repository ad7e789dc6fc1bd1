"""What moves a run from one state to the next; docs/state_machine.md draws them.

Each transition is one statement, or stands under the run's lock, so that of two processes that
want to end or reopen a run one finds it in another state and changes nothing. Where shards and
run are both written, shards come first: the order in which `db.results.store` locks them too.
"""

import json
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from db import shards
from db.models import Run
from pipeline.types import RunStatus, Verdict
from pipeline.verdict.gate import Finding, Judgement, Rule

UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)

REDUCER_GETS = timedelta(minutes=10)
"""How long past its deadline a run lives on whose shards are all done: it lacks its record only."""


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


# An unfinished run that lacks its record only, and whose reducer may be tried (again).
_WAITS_FOR_REDUCER = """
    r.status IN ('queued', 'running') AND coalesce(r.reduce_next_at <= clock_timestamp(), true)
    AND NOT EXISTS (SELECT FROM recallwatch.shard s WHERE s.run_id = r.id AND s.state <> 'done')
"""


def claim_reduction(session: Session, run_id: int, *, lease: int, attempts: int) -> int | None:
    """Take a run whose shards are all done and return which attempt this is; None: not to be had.

    Commit before reducing: a reduction that kills its process has then counted as an attempt.
    `lease` is the seconds that the reducer gets to take the run's lock. From then on the lock is
    the proof that it lives: a run whose row is locked is not to be had.
    """
    query = text(f"""
        WITH wanted AS MATERIALIZED (
            SELECT r.id FROM recallwatch.run r
            WHERE r.id = :run_id AND {_WAITS_FOR_REDUCER} AND r.reduce_attempts < :attempts
            FOR NO KEY UPDATE OF r SKIP LOCKED)
        UPDATE recallwatch.run r SET reduce_attempts = reduce_attempts + 1,
            reduce_next_at = clock_timestamp() + make_interval(secs => :lease)
        FROM wanted WHERE r.id = wanted.id RETURNING r.reduce_attempts
    """)
    values = {"run_id": run_id, "lease": lease, "attempts": attempts}
    return session.execute(query, values).scalar_one_or_none()


def release_reduction(
    session: Session, run_id: int, *, attempt: int, error: str, wait: float
) -> bool:
    """Have a run reduced again in `wait` seconds, and keep what went wrong.

    False: it is finished, or another reducer has it, for this one was late.
    """
    query = text("""
        WITH own AS MATERIALIZED (
            SELECT id FROM recallwatch.run
            WHERE id = :run_id AND status IN ('queued', 'running') AND reduce_attempts = :attempt
            FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE recallwatch.run r SET reduce_error = :error,
            reduce_next_at = clock_timestamp() + make_interval(secs => :wait)
        FROM own WHERE r.id = own.id RETURNING 1
    """)
    values = {"run_id": run_id, "attempt": attempt, "error": error, "wait": wait}
    return session.execute(query, values).one_or_none() is not None


def reducible(session: Session, *, attempts: int) -> list[int]:
    """Return the runs that wait for the reducer and have tries left."""
    query = text(f"""
        SELECT r.id FROM recallwatch.run r
        WHERE {_WAITS_FOR_REDUCER} AND r.reduce_attempts < :attempts ORDER BY r.id
    """)
    return list(session.execute(query, {"attempts": attempts}).scalars())


def irreducible(session: Session, *, attempts: int) -> list[tuple[int, str]]:
    """Return (run, reason) for the runs whose reducer used up its attempts, and is not at it."""
    query = text(f"""
        SELECT r.id, r.reduce_attempts,
            coalesce(r.reduce_error, 'its worker was lost each time') AS error
        FROM recallwatch.run r
        WHERE {_WAITS_FOR_REDUCER} AND r.reduce_attempts >= :attempts ORDER BY r.id
        FOR NO KEY UPDATE OF r SKIP LOCKED
    """)
    return [
        (row.id, f"the record could not be written in {row.reduce_attempts} tries: {row.error}")
        for row in session.execute(query, {"attempts": attempts})
    ]


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


def complete(run: Run, judgement: Judgement) -> None:
    """Give a locked run its verdict and its end; the CHECKs refuse one whose counts are short."""
    run.status = RunStatus.COMPLETED
    run.verdict = judgement.verdict
    run.reasons = judgement.reasons
    run.findings = [finding.to_json() for finding in judgement.findings]
    run.cause = judgement.cause
    run.finished_at = func.clock_timestamp()


def fail(session: Session, run_ids: Sequence[int], reason: str) -> list[int]:
    """End unfinished runs as unmeasured, with their open shards; return those it ended."""
    return _end(session, run_ids, RunStatus.FAILED, Rule.FAILED, reason)


def cancel(session: Session, run_ids: Sequence[int], reason: str) -> list[int]:
    """Do the same because a person wants it; whoever holds a shard can store nothing any more."""
    return _end(session, run_ids, RunStatus.CANCELLED, Rule.CANCELLED, reason)


def _end(
    session: Session, run_ids: Sequence[int], status: RunStatus, rule: Rule, reason: str
) -> list[int]:
    # One after the other, by number, as everybody does who ends several: see `shards.lock_open`.
    return [run_id for run_id in sorted(run_ids) if _end_one(session, run_id, status, rule, reason)]


def _end_one(session: Session, run_id: int, status: RunStatus, rule: Rule, reason: str) -> bool:
    # From here on nobody resumes it either: that takes its shards first.
    shards.lock_open(session, [run_id])
    finding = Finding(rule=rule, verdict=Verdict.UNMEASURED, text=reason)
    values = {"run_id": run_id, "reason": reason, "status": status,
              "findings": json.dumps([finding.to_json()])}  # fmt: skip
    session.execute(
        text("""
            UPDATE recallwatch.shard s SET state = 'failed', lease_until = NULL, error = :reason
            FROM recallwatch.run r
            WHERE r.id = s.run_id AND r.status IN ('queued', 'running')
              AND s.run_id = :run_id AND s.state IN ('pending', 'leased')
        """),
        values,
    )
    # Open shards by now: it was completed, and its failed questions are asked again since a moment
    # ago. Then this came before that, and the run stays as it is.
    ended = session.execute(
        text("""
            UPDATE recallwatch.run r SET status = :status, verdict = 'unmeasured',
                reasons = ARRAY[:reason], findings = CAST(:findings AS jsonb),
                finished_at = clock_timestamp()
            WHERE id = :run_id AND status IN ('queued', 'running') AND NOT EXISTS (
                SELECT FROM recallwatch.shard s
                WHERE s.run_id = r.id AND s.state IN ('pending', 'leased'))
            RETURNING 1
        """),
        values,
    )
    return ended.one_or_none() is not None


def resume(session: Session, run_id: int, *, deadline: int) -> bool:
    """Let a failed or cancelled run go on with the shards that are not done, all tries anew.

    It gets `deadline` seconds from now, and no notice of re-indexing joins or delays its batch any
    more. False: it is in another state.
    """
    shards.lock_open(session, [run_id])
    session.execute(
        text("""
            UPDATE recallwatch.shard s SET state = 'pending', attempts = 0, error = NULL,
                next_at = NULL, rung_at = NULL
            FROM recallwatch.run r
            WHERE r.id = s.run_id AND r.status IN ('failed', 'cancelled')
              AND s.run_id = :run_id AND s.state = 'failed'
        """),
        {"run_id": run_id},
    )
    if not _reopen(session, run_id, ("failed", "cancelled"), deadline):
        return False
    session.execute(
        text("""
            UPDATE recallwatch.batch b SET quiet_until = NULL FROM recallwatch.run r
            WHERE r.id = :run_id AND b.id = r.batch_id AND b.quiet_until IS NOT NULL
        """),
        {"run_id": run_id},
    )
    return True


def retry_failed(session: Session, run_id: int, *, deadline: int) -> bool:
    """Reopen a completed run's shards that hold a failed question, and its exact search.

    One that was refused stays so. Their results are taken out, so that each question still counts
    once; what they cost was spent, and counts on. False: the run is in another state. Call
    `lock_completed` first, and make sure that nothing hangs on the run's record.
    """
    values = {"run_id": run_id, "paid": list(shards.PAID)}
    if lock_completed(session, run_id) is None:
        return False
    session.execute(text("DELETE FROM recallwatch.exact_result WHERE run_id = :run_id"), values)
    session.execute(
        text("""
            WITH reopened AS (
                UPDATE recallwatch.shard s SET state = 'pending', attempts = 0, error = NULL,
                    next_at = NULL, rung_at = NULL, ef_search = NULL, stats = (
                        SELECT jsonb_object_agg(key, value) FROM jsonb_each(s.stats)
                        WHERE key = ANY(:paid))
                WHERE s.run_id = :run_id AND (s.kind = 'exact' AND NOT s.refused OR EXISTS (
                    SELECT FROM recallwatch.result r WHERE r.run_id = s.run_id
                      AND r.position BETWEEN s.first_position AND s.last_position
                      AND r.outcome = 'failed'))
                RETURNING s.kind, s.first_position, s.last_position
            )
            DELETE FROM recallwatch.result r USING reopened s
            WHERE r.run_id = :run_id AND s.kind = 'served'
              AND r.position BETWEEN s.first_position AND s.last_position
        """),
        values,
    )
    return _reopen(session, run_id, ("completed",), deadline)


def lock_completed(session: Session, run_id: int) -> Run | None:
    """Lock a completed run, read anew, until the transaction ends; None: it is in another state.

    Meanwhile no run is compared with it and nobody pins it: both take FOR SHARE on it.
    """
    completed = select(Run).where(Run.id == run_id, Run.status == RunStatus.COMPLETED)
    return session.scalar(
        completed.with_for_update(key_share=True), execution_options={"populate_existing": True}
    )


def _reopen(session: Session, run_id: int, was: Sequence[str], deadline: int) -> bool:
    query = text("""
        UPDATE recallwatch.run SET
            status = CASE WHEN started_at IS NULL THEN 'queued' ELSE 'running' END,
            verdict = NULL, reasons = NULL, findings = NULL, cause = NULL, finished_at = NULL,
            exact = NULL, metrics = NULL, facts = NULL, by_category = NULL, by_tenant = NULL,
            by_source = NULL, comparison = NULL, compared_to = NULL, baseline_run = NULL,
            baseline_comparison = NULL,
            n_scored = NULL, n_failed = NULL, n_ineligible = NULL, latency = NULL, cost = NULL,
            deadline_at = now() + make_interval(secs => :deadline),
            reduce_attempts = 0, reduce_next_at = NULL, reduce_error = NULL
        WHERE id = :run_id AND status = ANY(:was) AND NOT EXISTS (
            SELECT FROM recallwatch.shard s WHERE s.run_id = :run_id AND s.state = 'failed')
        RETURNING 1
    """)
    values = {"run_id": run_id, "was": list(was), "deadline": deadline}
    return session.execute(query, values).one_or_none() is not None
