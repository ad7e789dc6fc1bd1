"""Generations: started, stopped, and filtered when every request is over.

`db.generation_resuming` takes them up again. Their requests are in `db.generation_requests`, the
questions that these gave in `db.candidates` (`drafted`, `keep`, `reject`). Whoever writes a
generation's row and its requests in one transaction locks the generation first (`lock`), so that no
two ever wait for each other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from db.models import Generation
from pipeline.errors import InputError
from pipeline.generation.base import Ask, GenerationStatus
from pipeline.generation.stored import ask_to_json

ASKING = (GenerationStatus.QUEUED, GenerationStatus.RUNNING)
OVER = (GenerationStatus.COMPLETED, GenerationStatus.FAILED, GenerationStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class NewGeneration:
    """What is to be generated; `settings` is all that workers need to know, as JSON values."""

    set_name: str
    settings: Mapping[str, Any]
    corpus_fingerprint: Mapping[str, Any]
    asks: Sequence[Ask]
    message_batches: bool
    max_cost: float | None
    requested_by: str | None
    deadline: timedelta


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of a generation's requests, and of its candidates, are in which state."""

    requests: Mapping[str, int]
    candidates: Mapping[str, int] = field(default_factory=dict)

    @property
    def asked_for(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def over(self) -> int:
        """Those that nothing more is expected of."""
        return self.asked_for - sum(self.requests.get(s, 0) for s in ("pending", "leased", "asked"))


def create(session: Session, new: NewGeneration) -> int:
    """Store a generation and its requests, numbered from 1, and return its id."""
    generation_id: int = session.execute(
        text("""
            INSERT INTO recallwatch.generation (set_name, settings, message_batches,
                corpus_fingerprint, max_cost, requested_by, deadline_at)
            VALUES (:set_name, CAST(:settings AS jsonb), :message_batches,
                CAST(:fingerprint AS jsonb), :max_cost, :requested_by,
                clock_timestamp() + CAST(:deadline AS interval))
            RETURNING id
        """),
        {
            "set_name": new.set_name, "settings": json.dumps(dict(new.settings)),
            "message_batches": new.message_batches, "max_cost": new.max_cost,
            "fingerprint": json.dumps(dict(new.corpus_fingerprint)),
            "requested_by": new.requested_by, "deadline": new.deadline,
        },
    ).scalar_one()  # fmt: skip
    session.execute(
        text("INSERT INTO recallwatch.generation_request (generation_id, number, ask)"
             " VALUES (:id, :number, CAST(:ask AS jsonb))"),
        [{"id": generation_id, "number": number, "ask": json.dumps(ask_to_json(ask))}
         for number, ask in enumerate(new.asks, start=1)],
    )  # fmt: skip
    return generation_id


def get(session: Session, generation_id: int) -> Generation:
    """Return a generation. Raises InputError where there is none of this id."""
    found = session.get(Generation, generation_id)
    if found is None:
        raise InputError(
            f"there is no generation {generation_id}; see: recallwatch golden generations list"
        )
    return found


def recent(session: Session, *, set_name: str | None, limit: int) -> Sequence[Generation]:
    """Return the newest generations, of one set or of all, the newest first."""
    query = select(Generation).order_by(Generation.id.desc()).limit(limit)
    return session.scalars(query if set_name is None else query.filter_by(set_name=set_name)).all()


def counts(session: Session, generation_id: int) -> Counts:
    """Count a generation's requests and candidates by state."""
    return Counts(
        *(
            {
                row.state: row.n
                for row in session.execute(
                    text(f"SELECT state, count(*) AS n FROM recallwatch.{table}"
                         " WHERE generation_id = :id GROUP BY state ORDER BY state"),
                    {"id": generation_id},
                )
            }
            for table in ("generation_request", "candidate")
        )
    )  # fmt: skip


def lock(session: Session, generation_id: int) -> Generation:
    """Lock a generation's row until the transaction ends, and return it as it is now."""
    query = select(Generation).where(Generation.id == generation_id)
    return session.scalars(
        query.with_for_update(key_share=True), execution_options={"populate_existing": True}
    ).one()


def is_late(session: Session, generation_id: int) -> bool:
    """Say whether a generation's deadline has passed."""
    query = text(
        "SELECT deadline_at < clock_timestamp() FROM recallwatch.generation WHERE id = :id"
    )
    return bool(session.scalar(query, {"id": generation_id}))


def mark_running(session: Session, generation_id: int) -> None:
    """Note that the first request is sent."""
    session.execute(
        text("UPDATE recallwatch.generation SET status = 'running'"
             " WHERE id = :id AND status = 'queued'"),
        {"id": generation_id},
    )  # fmt: skip


def cancel(session: Session, generation_id: int) -> list[str]:
    """End a generation because a person wants it; return the message batches at work for it.

    What was asked is paid for: its answers are stored when they come, for `resume` to filter.
    Raises InputError when it is over already, or there is none of this id.
    """
    get(session, generation_id)
    found = lock(session, generation_id)
    if found.status in OVER:
        raise InputError(f"generation {generation_id} is {found.status} already")
    _end(session, generation_id, GenerationStatus.CANCELLED, found.error)
    query = text("""
        SELECT DISTINCT message_batch FROM recallwatch.generation_request
        WHERE generation_id = :id AND state = 'asked' AND message_batch IS NOT NULL
    """)
    return sorted(session.execute(query, {"id": generation_id}).scalars())


def _end(session: Session, generation_id: int, status: GenerationStatus, error: str | None) -> None:
    session.execute(
        text("""
            UPDATE recallwatch.generation
            SET status = :status, error = :error, finished_at = clock_timestamp()
            WHERE id = :id
        """),
        {"id": generation_id, "status": status, "error": error},
    )


_SETTLE = """
UPDATE recallwatch.generation g SET
    status = CASE WHEN drafted THEN 'screening' WHEN answered THEN 'completed' ELSE 'failed' END,
    finished_at = CASE WHEN NOT drafted THEN clock_timestamp() END,
    error = CASE WHEN drafted OR answered THEN g.error ELSE coalesce(g.error, why) END,
    screen_attempts = 0, screen_next_at = NULL, screen_error = NULL
FROM (SELECT
    EXISTS (SELECT FROM recallwatch.candidate
            WHERE generation_id = :id AND state = 'drafted') AS drafted,
    bool_or(state IN ('answered', 'refused')) AS answered,
    bool_or(state IN ('pending', 'leased', 'asked')) AS going_on,
    min(error) AS why
    FROM recallwatch.generation_request WHERE generation_id = :id) AS requests
WHERE g.id = :id AND NOT going_on AND (g.status IN ('queued', 'running')
    OR g.status IN ('completed', 'failed') AND drafted)
RETURNING g.status
"""


def close_if_over(session: Session, generation_id: int) -> GenerationStatus | None:
    """Move a generation on when its last request is over, and return to what; None: it stays.

    To screening where a question was drafted; where none was, it is completed, or failed if no
    request came through. An answer that comes late opens one again, unless it was cancelled. Call
    it under the generation's lock.
    """
    status = session.execute(text(_SETTLE), {"id": generation_id}).scalar_one_or_none()
    return None if status is None else GenerationStatus(status)


_TO_SCREEN = "g.status = 'screening' AND coalesce(g.screen_next_at <= clock_timestamp(), true)"


def claim_screening(
    session: Session, generation_id: int, *, lease: float, attempts: int
) -> int | None:
    """Take a generation's candidates for `lease` seconds and return a token; None: not to be had.

    Commit before filtering: one that kills its process has then counted as an attempt.
    """
    query = text(f"""
        WITH wanted AS MATERIALIZED (
            SELECT g.id FROM recallwatch.generation g
            WHERE g.id = :id AND {_TO_SCREEN} AND g.screen_attempts < :attempts
            FOR NO KEY UPDATE OF g SKIP LOCKED)
        UPDATE recallwatch.generation g SET screen_token = screen_token + 1,
            screen_attempts = screen_attempts + 1,
            screen_next_at = clock_timestamp() + make_interval(secs => :lease)
        FROM wanted WHERE g.id = wanted.id RETURNING g.screen_token
    """)
    values = {"id": generation_id, "lease": lease, "attempts": attempts}
    return session.execute(query, values).scalar_one_or_none()


def renew_screening(session: Session, generation_id: int, token: int, *, lease: float) -> bool:
    """Keep the candidates for another `lease` seconds; False: somebody else has them.

    Call it first in the transaction that stores what was decided: it locks the generation,
    and what is stored is progress, so that earlier attempts count no more.
    """
    query = text("""
        UPDATE recallwatch.generation SET screen_attempts = 1, screen_error = NULL,
            screen_next_at = clock_timestamp() + make_interval(secs => :lease)
        WHERE id = :id AND status = 'screening' AND screen_token = :token RETURNING 1
    """)
    values = {"id": generation_id, "token": token, "lease": lease}
    return session.execute(query, values).one_or_none() is not None


def release_screening(
    session: Session, generation_id: int, token: int, *, error: str, wait: float
) -> bool:
    """Have the candidates filtered again in `wait` seconds; False: somebody else has them."""
    query = text("""
        UPDATE recallwatch.generation SET screen_error = :error,
            screen_next_at = clock_timestamp() + make_interval(secs => :wait)
        WHERE id = :id AND status = 'screening' AND screen_token = :token RETURNING 1
    """)
    values = {"id": generation_id, "token": token, "error": error, "wait": wait}
    return session.execute(query, values).one_or_none() is not None


def to_screen(session: Session, *, attempts: int) -> list[int]:
    """Return the generations whose candidates wait to be filtered."""
    query = text(f"""
        SELECT g.id FROM recallwatch.generation g
        WHERE {_TO_SCREEN} AND g.screen_attempts < :attempts ORDER BY g.id
    """)
    return list(session.execute(query, {"attempts": attempts}).scalars())


def finish(session: Session, generation_id: int) -> bool:
    """End a generation that is filtered; False: a candidate is left, or it is not to be ended."""
    found = lock(session, generation_id)
    left = counts(session, generation_id).candidates.get("drafted", 0)
    if left or found.status != GenerationStatus.SCREENING:
        return False
    _end(session, generation_id, GenerationStatus.COMPLETED, found.error)
    return True


def fail_unscreened(session: Session, *, attempts: int) -> list[int]:
    """Fail the generations whose filtering used up its attempts, and return them."""
    query = text(f"""
        UPDATE recallwatch.generation g SET status = 'failed', finished_at = clock_timestamp(),
            error = 'the questions could not be filtered in ' || screen_attempts || ' tries: '
                || coalesce(screen_error, 'the worker was lost each time')
        WHERE {_TO_SCREEN} AND g.screen_attempts >= :attempts RETURNING g.id
    """)
    return sorted(session.execute(query, {"attempts": attempts}).scalars())
