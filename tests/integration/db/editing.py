"""Edits of stored questions in a few words."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import text

from db import edits
from db.edits import EditSummary, State
from db.session import Database
from pipeline.types import EditAction
from tests.integration.db.building import SET, execute, fetch, import_set, questions

AT = datetime(2026, 3, 2, 6, tzinfo=UTC)


# A generation adds questions without the lock that imports and edits of a set take.
INSERT_LIKE = text("""
    INSERT INTO recallwatch.question
        (set_name, text, content_hash, item_hash, kind, source, status, must_pass)
    SELECT set_name, :text, :hash, item_hash, kind, source, status, must_pass
    FROM recallwatch.question WHERE id = :id
""")
WAITING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND wait_event_type = 'Lock' AND query LIKE '%UPDATE recallwatch.question q SET%'
"""


def stored(db: Database, n: int = 2) -> list[int]:
    """Import n questions and return their ids."""
    import_set(db, questions(n))
    return fetch(db, "SELECT id FROM recallwatch.question ORDER BY id")


def state_of(db: Database, question_id: int) -> State:
    return states_of(db, question_id)[question_id]


def states_of(db: Database, *ids: int) -> dict[int, State]:
    with db.begin() as session:
        return edits.states(session, ids)


def apply(
    db: Database,
    changes: Mapping[int, State],
    *,
    seen: Mapping[int, State] | None = None,
    action: EditAction = EditAction.CHANGE,
) -> int | None:
    with db.begin() as session:
        return edits.apply(session, SET, action, changes, by="ann", seen=seen)


def change(db: Database, question_id: int, **fields: object) -> int:
    """Change a question's fields as one edit and return its id."""
    changed = replace(state_of(db, question_id), **fields)  # type: ignore[arg-type]  # any field
    edit_id = apply(db, {question_id: changed})
    assert edit_id is not None
    return edit_id


def undo(db: Database, edit_id: int) -> int:
    with db.begin() as session:
        return edits.undo(session, edit_id, by="bob")


def recent(db: Database) -> list[EditSummary]:
    with db.begin() as session:
        return edits.recent(session, SET, limit=10)


def note_evidence(db: Database, question_id: int, text: str = "as judged") -> None:
    """Give a question's judgments that lack it their evidence, as the start of a batch does."""
    execute(db, "INSERT INTO recallwatch.evidence VALUES (:text, :text) ON CONFLICT DO NOTHING",
            {"text": text})  # fmt: skip
    execute(db, "UPDATE recallwatch.judgment SET evidence_hash = :text"
                " WHERE question_id = :id AND evidence_hash IS NULL",
            {"text": text, "id": question_id})  # fmt: skip
