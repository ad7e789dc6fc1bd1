"""Requests that went out together: which message batch they are in, what is still awaited."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import generations
from db.generation_requests import Claim
from pipeline.generation.base import GenerationStatus
from pipeline.generation.stored import ask_from_json


def note(session: Session, claims: Sequence[Claim], message_batch: str) -> bool:
    """Note the provider's id of the batch that these requests went out in: it is looked at by that.

    Also of one that was given up meanwhile, because to send so many took long. False: somebody
    cancelled the generation, and did not know of the batch.
    """
    found = generations.lock(session, claims[0].generation_id)
    query = text("""
        UPDATE recallwatch.generation_request r
        SET message_batch = :batch, state = 'asked', error = NULL, lease_until = NULL
        FROM unnest(CAST(:numbers AS integer[]), CAST(:tokens AS bigint[])) AS sent (number, token)
        WHERE r.generation_id = :id AND r.number = sent.number AND r.token = sent.token
          AND r.state IN ('asked', 'unknown')
    """)
    session.execute(
        query,
        {"id": claims[0].generation_id, "batch": message_batch,
         "numbers": [each.number for each in claims], "tokens": [each.token for each in claims]},
    )  # fmt: skip
    return found.status != GenerationStatus.CANCELLED


def awaited(session: Session, generation_id: int, message_batch: str) -> list[Claim]:
    """Return a batch's requests that have no answer yet."""
    query = text("""
        SELECT number, token, attempts, ask FROM recallwatch.generation_request
        WHERE generation_id = :id AND message_batch = :batch AND state = 'asked' ORDER BY number
    """)
    return [
        Claim(generation_id, row.number, row.token, row.attempts, ask_from_json(row.ask))
        for row in session.execute(query, {"id": generation_id, "batch": message_batch})
    ]


def at_work(session: Session, *, quiet: float) -> list[tuple[int, int]]:
    """Return (generation, request) for the first awaited request of each batch: see `holding`.

    Not of those that were returned in the last `quiet` seconds.
    """
    query = text("""
        WITH first AS MATERIALIZED (
            SELECT DISTINCT ON (generation_id, message_batch) generation_id, message_batch, number,
                rung_at
            FROM recallwatch.generation_request
            WHERE state = 'asked' AND message_batch IS NOT NULL
            ORDER BY generation_id, message_batch, number)
        UPDATE recallwatch.generation_request r SET rung_at = clock_timestamp() FROM first f
        WHERE r.generation_id = f.generation_id AND r.number = f.number AND coalesce(
            f.rung_at < clock_timestamp() - make_interval(secs => :quiet), true)
        RETURNING r.generation_id, r.number
    """)
    rows = session.execute(query, {"quiet": quiet})
    return sorted((row.generation_id, row.number) for row in rows)


def holding(session: Session, generation_id: int, number: int) -> str | None:
    """Return the batch that a request's answer is awaited from; None: from none."""
    query = text("""
        SELECT message_batch FROM recallwatch.generation_request
        WHERE generation_id = :id AND number = :number AND state = 'asked'
    """)
    found: str | None = session.scalar(query, {"id": generation_id, "number": number})
    return found


def complain(session: Session, generation_id: int, message_batch: str, error: str) -> None:
    """Note why a batch could not be looked at; it will be again."""
    query = text("""
        UPDATE recallwatch.generation_request SET error = :error
        WHERE generation_id = :id AND message_batch = :batch AND state = 'asked'
    """)
    session.execute(query, {"id": generation_id, "batch": message_batch, "error": error})
