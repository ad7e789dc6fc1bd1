"""The outbox: alerts are written with the verdict, and claimed before they are posted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from db.models import Alert, Run
from pipeline.errors import UsageError
from pipeline.types import AlertState

GIVE_UP_AFTER = 24 * 3600
"""Seconds after which an alert that is not sent is failed: it is tried for a day."""

CLAIM_LASTS = 600
"""Seconds after which a claim that nobody closed is a crash: nobody knows what was posted."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An alert that this process alone may post now; `attempt` counts from 1."""

    id: int
    channel: str
    payload: Mapping[str, Any]
    attempt: int


def add(
    session: Session, run_id: int, kind: str, payloads: Mapping[str, Mapping[str, Any]]
) -> list[int]:
    """Write an alert for each channel, with its payload; one that is there is left as it is."""
    query = text("""
        INSERT INTO recallwatch.alert (run_id, channel, kind, payload)
        SELECT :run_id, key, :kind, value::jsonb FROM json_each(CAST(:payloads AS json))
        ON CONFLICT (run_id, channel, kind) DO NOTHING RETURNING id
    """)
    values = {"run_id": run_id, "kind": kind, "payloads": json.dumps(payloads)}
    return list(session.execute(query, values).scalars())


def claim(session: Session, alert_id: int) -> Claimed | None:
    """Take an alert whose time has come; commit before posting. None: it is not to be had."""
    query = text("""
        UPDATE recallwatch.alert SET state = 'claimed', attempts = attempts + 1,
            claimed_at = clock_timestamp(), error = NULL
        WHERE id = :id AND state = 'pending' AND next_at <= clock_timestamp()
        RETURNING id, channel, payload, attempts
    """)
    row = session.execute(query, {"id": alert_id}).one_or_none()
    return None if row is None else Claimed(row.id, row.channel, row.payload, row.attempts)


def close(
    session: Session,
    claimed: Claimed,
    state: AlertState,
    *,
    error: str | None = None,
    wait: float = 0,
) -> bool:
    """Say what became of a claim; False: it was aged meanwhile, and what that said stands.

    `PENDING` has it tried again in `wait` seconds.
    """
    query = text("""
        UPDATE recallwatch.alert SET state = :state, error = :error,
            sent_at = CASE WHEN :state = 'sent' THEN clock_timestamp() END,
            next_at = clock_timestamp() + make_interval(secs => :wait)
        WHERE id = :id AND state = 'claimed' AND attempts = :attempt RETURNING 1
    """)
    values = {"id": claimed.id, "attempt": claimed.attempt, "state": state, "error": error,
              "wait": wait}  # fmt: skip
    return session.execute(query, values).one_or_none() is not None


def due(session: Session) -> list[int]:
    """Return the alerts that wait for a worker."""
    query = text("""
        SELECT id FROM recallwatch.alert
        WHERE state = 'pending' AND next_at <= clock_timestamp() ORDER BY id LIMIT 100
    """)
    return list(session.execute(query).scalars())


def on_their_way(session: Session, run_ids: Sequence[int]) -> int:
    """Count the runs' alerts that a worker is about to post, or posts."""
    query = text("""
        SELECT count(*) FROM recallwatch.alert WHERE run_id = ANY(:ids)
          AND (state = 'claimed' OR state = 'pending' AND next_at <= clock_timestamp())
    """)
    return session.scalar(query, {"ids": list(run_ids)}) or 0


def age(session: Session) -> int:
    """End what was left lying: claims of a crashed worker, and what was not sent within a day."""
    query = text("""
        UPDATE recallwatch.alert SET
            state = CASE state WHEN 'claimed' THEN 'unknown' ELSE 'failed' END,
            error = CASE state WHEN 'claimed'
                THEN 'the worker was lost while it posted: it may or may not have arrived'
                ELSE 'not delivered within a day: ' || coalesce(error, 'no worker took it') END
        WHERE state = 'claimed' AND claimed_at < clock_timestamp() - make_interval(secs => :claim)
           OR state = 'pending' AND created_at < clock_timestamp() - make_interval(secs => :day)
        RETURNING id
    """)
    values = {"claim": CLAIM_LASTS, "day": GIVE_UP_AFTER}
    return len(session.execute(query, values).all())


def resend(session: Session, alert_id: int) -> None:
    """Let an alert go out again because a person says so.

    The attempts count on: they tell an older claim, whose worker may still come back, from the
    next one. Raises UsageError for one that is not there, or that is on its way.
    """
    query = text("""
        UPDATE recallwatch.alert SET state = 'pending', sent_at = NULL,
            next_at = clock_timestamp(), created_at = clock_timestamp(), error = NULL
        WHERE id = :id AND state IN ('sent', 'failed', 'unknown') RETURNING 1
    """)
    if session.execute(query, {"id": alert_id}).one_or_none() is None:
        raise UsageError(
            f"alert {alert_id} is not there or still on its way; see: recallwatch alerts list"
        )


def recent(session: Session, *, limit: int, state: AlertState | None = None) -> Sequence[Alert]:
    """Return the newest alerts first, of one state or of all."""
    query = select(Alert).order_by(Alert.id.desc()).limit(limit)
    return session.scalars(query if state is None else query.filter_by(state=state)).all()


def counts(session: Session, *, days: int) -> dict[AlertState, int]:
    """Count the alerts of the last days by state."""
    query = text("""
        SELECT state, count(*) AS n FROM recallwatch.alert
        WHERE created_at > clock_timestamp() - make_interval(days => :days)
        GROUP BY state ORDER BY state
    """)
    return {AlertState(row.state): row.n for row in session.execute(query, {"days": days})}


# The finished runs before a run that measured the same thing; a cancelled one says nothing.
_BEFORE = """
WITH this AS (
    SELECT r.*, v.set_name FROM recallwatch.run r
    JOIN recallwatch.batch b ON b.id = r.batch_id
    JOIN recallwatch.golden_version v ON v.id = b.version_id WHERE r.id = :run_id
), before AS (
    SELECT r.id, r.verdict FROM recallwatch.run r
    JOIN recallwatch.batch b ON b.id = r.batch_id
    JOIN recallwatch.golden_version v ON v.id = b.version_id
    JOIN this t ON v.set_name = t.set_name AND r.strategy = t.strategy AND r.k = t.k
        AND r.level = t.level AND r.convention = t.convention
        AND r.relevance_threshold = t.relevance_threshold AND r.id < t.id
    WHERE r.verdict IS NOT NULL AND r.status <> 'cancelled'
)
"""


def told_in_a_row(session: Session, run_id: int, verdict: str, kind: str) -> dict[str, int]:
    """Count by channel how often it was told, in the runs of the same thing just before this one.

    Only those since the last run with another verdict; what certainly did not arrive was not told.
    """
    query = text(f"""
        {_BEFORE} SELECT a.channel, count(*) AS n FROM recallwatch.alert a
        JOIN before ON before.id = a.run_id
        WHERE a.kind = :kind AND a.state <> 'failed'
            AND before.id > coalesce((SELECT max(id) FROM before WHERE verdict <> :verdict), 0)
        GROUP BY a.channel
    """)
    rows = session.execute(query, {"run_id": run_id, "verdict": verdict, "kind": kind})
    return {row.channel: row.n for row in rows}


_TOLD_BAD = f"""
{_BEFORE}, told AS (
    SELECT a.id, a.run_id, a.kind, a.channel FROM recallwatch.alert a WHERE a.state <> 'failed'
        AND (a.run_id IN (SELECT id FROM before) OR a.run_id = :run_id)
), bad AS (
    SELECT * FROM told t WHERE kind IN ('regressed', 'unmeasured') AND NOT EXISTS (
        SELECT FROM told later
        WHERE later.kind = 'recovered' AND (later.run_id, later.id) > (t.run_id, t.id))
)
"""


def unrecovered(session: Session, run_id: int) -> Sequence[Run]:
    """Return the runs before, of the same thing, that were told as bad, oldest first.

    Only those since the last one that was told as recovered, in the order of the runs, and of a
    run's own alerts. The run itself is among them when it failed before it was resumed, or fell
    when its failed questions were asked again.
    """
    query = text(f"{_TOLD_BAD} SELECT DISTINCT run_id FROM bad")
    ids = session.scalars(query, {"run_id": run_id}).all()
    return session.scalars(select(Run).where(Run.id.in_(ids)).order_by(Run.id)).all()


def told_bad(session: Session, run_id: int) -> set[str]:
    """Return the channels that were told of those runs."""
    query = text(f"{_TOLD_BAD} SELECT DISTINCT channel FROM bad")
    return set(session.scalars(query, {"run_id": run_id}))


@dataclass(frozen=True, slots=True)
class ToldStale:
    """When a channel was last told that a set is stale: days ago, and the share of keys gone."""

    days: float
    share: float


def told_stale(session: Session, set_name: str) -> dict[str, ToldStale]:
    """Return by channel when it was last told that the golden set is stale."""
    query = text("""
        SELECT DISTINCT ON (a.channel) a.channel,
            extract(epoch FROM clock_timestamp() - a.created_at)::float8 / 86400 AS days,
            coalesce((a.payload->>'missing_keys')::float8
                     / nullif((a.payload->>'expected_keys')::float8, 0), 0) AS share
        FROM recallwatch.alert a JOIN recallwatch.run r ON r.id = a.run_id
        JOIN recallwatch.batch b ON b.id = r.batch_id
        JOIN recallwatch.golden_version v ON v.id = b.version_id
        WHERE a.kind = 'golden_stale' AND a.state <> 'failed' AND v.set_name = :set_name
        ORDER BY a.channel, a.id DESC
    """)
    rows = session.execute(query, {"set_name": set_name})
    return {row.channel: ToldStale(row.days, row.share) for row in rows}


def first_of_batch(session: Session, batch_id: int) -> int:
    """Return the run that a batch's alert about its golden set hangs on, so that there is one."""
    query = text("SELECT min(id) FROM recallwatch.run WHERE batch_id = :id")
    return int(session.execute(query, {"id": batch_id}).scalar_one())
