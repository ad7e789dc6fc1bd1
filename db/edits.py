"""Edits of golden questions: written down whole, before and after, so that each can be undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from pipeline.errors import InputError
from pipeline.golden.fingerprint import content_hash, item_hash
from pipeline.types import EditAction, Kind, Question, Source, Status


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgment as it is stored; `evidence_hash` names a row of `evidence`."""

    grade: int
    evidence_hash: str | None = None
    judged_by: str | None = None
    judged_at: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """All of a question that an edit may change."""

    text: str
    kind: str
    status: str
    category: str | None
    tenant: str | None
    language: str | None
    source: str
    must_pass: bool
    external_id: str | None
    notes: str | None
    rejection: str | None = None
    reviewed_by: str | None = None
    reviewed_at: str | None = None
    judgments: Mapping[str, Judged] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """The question that this is a state of."""
        return Question(
            text=self.text,
            expected={key: judged.grade for key, judged in self.judgments.items()},
            kind=Kind(self.kind),
            category=self.category,
            tenant=self.tenant,
            language=self.language,
            source=Source(self.source),
            must_pass=self.must_pass,
            external_id=self.external_id,
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True)
class EditSummary:
    """One edit, as it is listed."""

    id: int
    set_name: str
    action: EditAction
    questions: int
    edited_by: str | None
    edited_at: datetime
    undone_at: datetime | None
    undone_by: str | None


_STATE = """
SELECT q.id, jsonb_build_object(
    'text', q.text, 'kind', q.kind, 'status', q.status, 'category', q.category,
    'tenant', q.tenant, 'language', q.language, 'source', q.source, 'must_pass', q.must_pass,
    'external_id', q.external_id, 'notes', q.notes, 'rejection', q.rejection,
    'reviewed_by', q.reviewed_by, 'reviewed_at', q.reviewed_at,
    'judgments', coalesce((SELECT jsonb_object_agg(j.key, jsonb_build_object(
        'grade', j.grade, 'evidence_hash', j.evidence_hash, 'judged_by', j.judged_by,
        'judged_at', j.judged_at)) FROM recallwatch.judgment j WHERE j.question_id = q.id), '{}')
) AS state
FROM recallwatch.question q WHERE q.id = ANY(:ids) ORDER BY q.id
"""


def states(
    session: Session, question_ids: Sequence[int], *, lock: bool = False
) -> dict[int, State]:
    """Return the questions as they stand; with `lock` nobody else changes them till the commit."""
    query = text(_STATE + ("FOR UPDATE OF q" if lock else ""))
    rows = session.execute(query, {"ids": list(question_ids)})
    return {row.id: _state_of(row.state) for row in rows}


def _state_of(stored: Mapping[str, Any]) -> State:
    judgments = {key: Judged(**judged) for key, judged in stored["judgments"].items()}
    return State(**{**stored, "judgments": judgments})


def _json_of(state: State) -> dict[str, Any]:
    plain = {name: getattr(state, name) for name in State.__slots__ if name != "judgments"}
    judgments = {
        key: {name: getattr(judged, name) for name in Judged.__slots__}
        for key, judged in state.judgments.items()
    }
    return plain | {"judgments": judgments}


_WRITE = """
UPDATE recallwatch.question SET
    text = :text, kind = :kind, status = :status, category = :category, tenant = :tenant,
    language = :language, source = :source, must_pass = :must_pass, external_id = :external_id,
    notes = :notes, rejection = :rejection, reviewed_by = :reviewed_by,
    reviewed_at = CAST(:reviewed_at AS timestamptz), content_hash = :content_hash,
    item_hash = :item_hash, updated_at = clock_timestamp()
WHERE id = :id
"""
_WRITE_JUDGMENTS = """
WITH wanted AS (
    SELECT e.key, (e.value->>'grade')::integer AS grade, e.value->>'evidence_hash' AS evidence_hash,
        e.value->>'judged_by' AS judged_by, (e.value->>'judged_at')::timestamptz AS judged_at
    FROM jsonb_each(CAST(:judgments AS jsonb)) e
), gone AS (
    DELETE FROM recallwatch.judgment j
    WHERE j.question_id = :id AND NOT EXISTS (SELECT FROM wanted w WHERE w.key = j.key)
)
INSERT INTO recallwatch.judgment (question_id, key, grade, evidence_hash, judged_by, judged_at)
SELECT :id, key, grade, evidence_hash, judged_by, coalesce(judged_at, clock_timestamp()) FROM wanted
ON CONFLICT (question_id, key) DO UPDATE SET grade = excluded.grade,
    evidence_hash = excluded.evidence_hash, judged_by = excluded.judged_by,
    judged_at = excluded.judged_at
"""


def apply(
    session: Session,
    set_name: str,
    action: EditAction,
    changes: Mapping[int, State],
    *,
    by: str | None,
) -> int | None:
    """Write the questions' new states as one edit and return its id; None: nothing changes.

    Raises InputError when a state's content is that of another question of the set.
    """
    before = states(session, list(changes), lock=True)
    changed = {each: after for each, after in changes.items() if after != before[each]}
    if not changed:
        return None
    edit_id: int = session.execute(
        text("INSERT INTO recallwatch.edit (set_name, action, edited_by)"
             " VALUES (:set_name, :action, :by) RETURNING id"),
        {"set_name": set_name, "action": action, "by": by},
    ).scalar_one()  # fmt: skip
    for question_id, after in changed.items():
        _write(session, question_id, after)
    now = states(session, list(changed))
    session.execute(
        text("INSERT INTO recallwatch.edit_item (edit_id, question_id, before, after)"
             " VALUES (:edit_id, :id, CAST(:before AS jsonb), CAST(:after AS jsonb))"),
        [
            {"edit_id": edit_id, "id": each, "before": json.dumps(_json_of(before[each])),
             "after": json.dumps(_json_of(now[each]))}
            for each in changed
        ],
    )  # fmt: skip
    return edit_id


def _write(session: Session, question_id: int, state: State) -> None:
    question = state.question
    values = _json_of(state)
    judgments = json.dumps(values.pop("judgments"))
    hashes = {"content_hash": content_hash(question), "item_hash": item_hash(question)}
    _refuse_twin(session, question_id, hashes["content_hash"])
    session.execute(text(_WRITE), values | hashes | {"id": question_id})
    session.execute(text(_WRITE_JUDGMENTS), {"id": question_id, "judgments": judgments})


def _refuse_twin(session: Session, question_id: int, content: str) -> None:
    twin = session.execute(
        text("""
            SELECT other.id FROM recallwatch.question other JOIN recallwatch.question q
              ON other.set_name = q.set_name AND other.id <> q.id
            WHERE q.id = :id AND q.external_id IS NULL AND other.external_id IS NULL
              AND other.content_hash = :content_hash
        """),
        {"id": question_id, "content_hash": content},
    ).scalar()
    if twin is not None:
        raise InputError(
            f"question {question_id} would be the same as question {twin}: reject one of the two"
        )


def undo(session: Session, edit_id: int, *, by: str | None) -> int:
    """Put an edit's questions back as they were, and return how many there are.

    Raises InputError when there is no such edit, it was undone before, or a question has changed
    since: what came later would be lost.
    """
    edit = session.execute(
        text("SELECT undone_at FROM recallwatch.edit WHERE id = :id FOR UPDATE"), {"id": edit_id}
    ).one_or_none()
    if edit is None:
        raise InputError(f"there is no edit {edit_id}; see: recallwatch golden edits")
    if edit.undone_at is not None:
        raise InputError(f"edit {edit_id} was undone already")
    rows = session.execute(
        text("SELECT question_id, before, after FROM recallwatch.edit_item"
             " WHERE edit_id = :id ORDER BY question_id"),
        {"id": edit_id},
    ).all()  # fmt: skip
    now = states(session, [row.question_id for row in rows], lock=True)
    for row in rows:
        if now[row.question_id] != _state_of(row.after):
            raise InputError(
                f"question {row.question_id} has changed since edit {edit_id}: undo later edits"
                " first"
            )
    for row in rows:
        _write(session, row.question_id, _state_of(row.before))
    session.execute(
        text("UPDATE recallwatch.edit SET undone_at = clock_timestamp(), undone_by = :by"
             " WHERE id = :id"),
        {"id": edit_id, "by": by},
    )  # fmt: skip
    return len(rows)


def recent(session: Session, set_name: str, *, limit: int) -> list[EditSummary]:
    """Return the set's edits, the newest first."""
    rows = session.execute(
        text("""
            SELECT e.*, (SELECT count(*) FROM recallwatch.edit_item i WHERE i.edit_id = e.id)
                AS questions
            FROM recallwatch.edit e WHERE e.set_name = :set_name ORDER BY e.id DESC LIMIT :limit
        """),
        {"set_name": set_name, "limit": limit},
    )
    return [
        EditSummary(row.id, row.set_name, EditAction(row.action), row.questions, row.edited_by,
                    row.edited_at, row.undone_at, row.undone_by)
        for row in rows
    ]  # fmt: skip


def with_status(state: State, status: Status, *, by: str | None, at: datetime) -> State:
    """Return the state after a review: who decided, and when."""
    return replace(state, status=status, reviewed_by=by, reviewed_at=at.isoformat())
