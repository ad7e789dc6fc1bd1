"""Keys of a batch's questions that no longer stand for what was judged: they are not scored."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from pipeline.types import KeyState

ROWS_PER_STATEMENT = 10_000


@dataclass(frozen=True, slots=True)
class Stale:
    """A key of the question at a position, and where its text is now."""

    position: int
    key: str
    state: KeyState


def put(session: Session, batch_id: int, stale: Sequence[Stale]) -> None:
    """Store a batch's stale keys in the place of those it had."""
    session.execute(
        text("DELETE FROM recallwatch.stale_key WHERE batch_id = :batch_id"),
        {"batch_id": batch_id},
    )
    query = text("""
        INSERT INTO recallwatch.stale_key (batch_id, position, key, state)
        SELECT :batch_id, position, key, state
        FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS row(position integer, key text, state text)
    """)
    for start in range(0, len(stale), ROWS_PER_STATEMENT):
        rows = [asdict(each) for each in stale[start : start + ROWS_PER_STATEMENT]]
        session.execute(query, {"batch_id": batch_id, "rows": json.dumps(rows)})


def of(session: Session, batch_id: int, first: int, last: int) -> Mapping[int, frozenset[str]]:
    """Return position -> stale keys, of the questions from `first` to `last`, both included."""
    query = text("""
        SELECT position, array_agg(key) AS keys FROM recallwatch.stale_key
        WHERE batch_id = :batch_id AND position BETWEEN :first AND :last GROUP BY position
    """)
    rows = session.execute(query, {"batch_id": batch_id, "first": first, "last": last})
    return {row.position: frozenset(row.keys) for row in rows}
