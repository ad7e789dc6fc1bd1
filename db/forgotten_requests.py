"""What a sweep finds of generations: requests whose workers died, or whose messages were lost."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import generation_requests, generations
from db.generation_requests import CLAIMABLE
from pipeline.generation.base import GenerationStatus

LATE = "not sent by the generation's deadline ([queue] deadline)"


@dataclass(frozen=True, slots=True)
class Due:
    """A request that wants a worker; `message_batches`: with others of its generation."""

    generation_id: int
    number: int
    message_batches: bool


def to_look_after(session: Session) -> list[int]:
    """Return the generations that still ask, and those with a request whose asker died."""
    query = text("""
        SELECT id FROM recallwatch.generation WHERE status IN ('queued', 'running')
        UNION SELECT generation_id FROM recallwatch.generation_request
        WHERE state = 'asked' AND lease_until < clock_timestamp() ORDER BY 1
    """)
    return list(session.execute(query).scalars())


_GIVE_UP = """
UPDATE recallwatch.generation_request SET state = 'unknown', lease_until = NULL,
    error = 'its worker was lost after it was sent: it may have been paid for'
WHERE generation_id = :id AND state = 'asked' AND lease_until < clock_timestamp()
"""
_FAIL_EXHAUSTED = """
UPDATE recallwatch.generation_request SET state = 'failed', lease_until = NULL, next_at = NULL,
    error = attempts || ' attempts failed: ' || coalesce(error, 'its worker was lost each time')
WHERE generation_id = :id AND attempts >= :attempts
  AND (state = 'pending' OR state = 'leased' AND lease_until < clock_timestamp())
"""


def look_after(session: Session, generation_id: int) -> GenerationStatus | None:
    """End a generation's requests that nobody can answer or send, and move it on if it is over.

    Those sent by a worker that died since become unknown; those out of attempts fail, and past its
    deadline all that were not sent. Returns what the generation turned to.
    """
    found = generations.lock(session, generation_id)
    session.execute(text(_GIVE_UP), {"id": generation_id})
    attempts = found.settings["generation"]["attempts"]
    session.execute(text(_FAIL_EXHAUSTED), {"id": generation_id, "attempts": attempts})
    if found.status in generations.ASKING and generations.is_late(session, generation_id):
        return generation_requests.stop(session, generation_id, LATE)
    return generations.close_if_over(session, generation_id)


def due(session: Session, *, quiet: float, limit: int) -> list[Due]:
    """Return the requests that want a worker and were not rung for `quiet` seconds."""
    query = text(f"""
        WITH due AS MATERIALIZED (
            SELECT r.generation_id, r.number, g.message_batches
            FROM recallwatch.generation_request r
            JOIN recallwatch.generation g ON g.id = r.generation_id
            WHERE {CLAIMABLE} AND coalesce(r.rung_at, g.created_at)
                < clock_timestamp() - make_interval(secs => :quiet)
            ORDER BY r.generation_id, r.number LIMIT :limit FOR NO KEY UPDATE OF r SKIP LOCKED)
        UPDATE recallwatch.generation_request r SET rung_at = clock_timestamp() FROM due d
        WHERE r.generation_id = d.generation_id AND r.number = d.number
        RETURNING r.generation_id, r.number, d.message_batches
    """)
    rows = session.execute(query, {"quiet": quiet, "limit": limit})
    return sorted((Due(*row) for row in rows), key=lambda each: (each.generation_id, each.number))
