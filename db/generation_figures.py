"""What a generation asked for, cost and gave, counted."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import generations
from db.generations import Counts

SHOWN_FAULTS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of a generation. `spent` is in US dollars, with what is reserved or unknown.

    `rejections`: filter -> candidates, most first. `faults`: why requests have no questions ->
    requests, the most frequent few. `unchecked`: what could not be looked at, as for lack of room
    in the cap -> questions.
    """

    counts: Counts
    spent: float
    input_tokens: int
    output_tokens: int
    rejections: Mapping[str, int]
    faults: Mapping[str, int]
    unchecked: Mapping[str, int]


def figures(session: Session, generation_id: int) -> Figures:
    """Count a generation. Raises InputError where there is none of this id."""
    found = generations.get(session, generation_id)
    tokens = session.execute(
        text("""
            SELECT coalesce(sum(input_tokens), 0)::bigint AS tokens_in,
                coalesce(sum(output_tokens), 0)::bigint AS tokens_out
            FROM recallwatch.generation_request WHERE generation_id = :id
        """),
        {"id": generation_id},
    ).one()
    return Figures(
        generations.counts(session, generation_id), found.spent, tokens.tokens_in,
        tokens.tokens_out, _rejections(session, generation_id), _faults(session, generation_id),
        _unchecked(session, generation_id),
    )  # fmt: skip


def _rejections(session: Session, generation_id: int) -> dict[str, int]:
    query = text("""
        SELECT rejection, count(*) AS n FROM recallwatch.candidate
        WHERE generation_id = :id AND state = 'rejected' GROUP BY rejection
        ORDER BY n DESC, rejection
    """)
    return {row.rejection: row.n for row in session.execute(query, {"id": generation_id})}


def _faults(session: Session, generation_id: int) -> dict[str, int]:
    query = text("""
        SELECT error, count(*) AS n FROM recallwatch.generation_request
        WHERE generation_id = :id AND error IS NOT NULL GROUP BY error
        ORDER BY n DESC, error LIMIT :limit
    """)
    rows = session.execute(query, {"id": generation_id, "limit": SHOWN_FAULTS})
    return {row.error: row.n for row in rows}


def _unchecked(session: Session, generation_id: int) -> dict[str, int]:
    query = text("""
        SELECT reason, count(*) AS n FROM recallwatch.candidate c CROSS JOIN LATERAL (
            SELECT jsonb_array_elements_text(c.facts->'notes') AS reason
            UNION ALL SELECT key || ' could not be asked: ' || value
            FROM jsonb_each_text(c.facts->'not_asked')) AS notes
        WHERE c.generation_id = :id GROUP BY reason ORDER BY n DESC, reason LIMIT :limit
    """)
    rows = session.execute(query, {"id": generation_id, "limit": SHOWN_FAULTS})
    return {row.reason: row.n for row in rows}
