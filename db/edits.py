"""Edits of golden questions: written down whole, before and after, so that each can be undone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.locks import lock_set
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
    judgments = {
        key: Judged(**{**judged, "judged_at": _in_utc(judged["judged_at"])})
        for key, judged in stored["judgments"].items()
    }
    reviewed_at = _in_utc(stored["reviewed_at"])
    return State(**{**stored, "judgments": judgments, "reviewed_at": reviewed_at})


def _in_utc(moment: str | None) -> str | None:
    """Return the same moment in one spelling: that of PostgreSQL hangs on the session's zone."""
    return None if moment is None else datetime.fromisoformat(moment).astimezone(UTC).isoformat()


def _json_of(state: State) -> dict[str, Any]:
    plain = {name: getattr(state, name) for name in State.__slots__ if name != "judgments"}
    judgments = {
        key: {name: getattr(judged, name) for name in Judged.__slots__}
        for key, judged in state.judgments.items()
    }
    return plain | {"judgments": judgments}


# Two questions of an edit may exchange what is unique. Each index would refuse the first of them:
# so all give theirs up before any is written. No hash of a question has blanks.
_GIVE_UP = """
UPDATE recallwatch.question SET external_id = NULL, content_hash = 'in edit ' || id
WHERE id = ANY(:ids)
"""
_WRITE = """
UPDATE recallwatch.question q SET
    text = n.text, kind = n.kind, status = n.status, category = n.category, tenant = n.tenant,
    language = n.language, source = n.source, must_pass = n.must_pass,
    external_id = n.external_id, notes = n.notes, rejection = n.rejection,
    reviewed_by = n.reviewed_by, reviewed_at = n.reviewed_at, content_hash = n.content_hash,
    item_hash = n.item_hash, updated_at = clock_timestamp()
FROM jsonb_to_recordset(CAST(:states AS jsonb)) AS n (
    id bigint, text text, kind text, status text, category text, tenant text, language text,
    source text, must_pass boolean, external_id text, notes text, rejection text,
    reviewed_by text, reviewed_at timestamptz, content_hash text, item_hash text)
WHERE q.id = n.id
"""
# What was judged is noted when a batch starts, perhaps after the edit was begun: an edit that does
# not know of it leaves it where the judgment is the same.
_WRITE_JUDGMENTS = """
WITH edited AS (
    SELECT * FROM jsonb_to_recordset(CAST(:states AS jsonb)) AS n (id bigint, judgments jsonb)
), wanted AS (
    SELECT n.id, e.key, (e.value->>'grade')::integer AS grade,
        e.value->>'evidence_hash' AS evidence_hash, e.value->>'judged_by' AS judged_by,
        (e.value->>'judged_at')::timestamptz AS judged_at
    FROM edited n, jsonb_each(n.judgments) e
), gone AS (
    DELETE FROM recallwatch.judgment j USING edited n
    WHERE j.question_id = n.id AND NOT n.judgments ? j.key
)
INSERT INTO recallwatch.judgment AS j (question_id, key, grade, evidence_hash, judged_by, judged_at)
SELECT id, key, grade, evidence_hash, judged_by, coalesce(judged_at, clock_timestamp()) FROM wanted
ON CONFLICT (question_id, key) DO UPDATE SET grade = excluded.grade,
    evidence_hash = coalesce(
        excluded.evidence_hash,
        CASE WHEN j.judged_at = excluded.judged_at THEN j.evidence_hash END),
    judged_by = excluded.judged_by, judged_at = excluded.judged_at
"""
WRITTEN_AT_ONCE = 1_000
"""Questions a statement: one for all of a large set would hold it in memory several times."""


def apply(
    session: Session,
    set_name: str,
    action: EditAction,
    changes: Mapping[int, State],
    *,
    by: str | None,
    seen: Mapping[int, State] | None = None,
) -> int | None:
    """Write the questions' new states as one edit and return its id; None: nothing changes.

    `seen`: the states that the changes were made from, where a person or time lay between. Raises
    InputError when a question is not in the set or is no longer as it was seen, and when a new
    state has the content, or the external id, of another question of the set.
    """
    lock_set(session, set_name)
    before = states(session, list(changes), lock=True)
    _refuse_strangers(session, set_name, changes)
    for question_id, state in (seen or {}).items():
        if not _same(state, before[question_id]):
            raise InputError(f"question {question_id} has been changed meanwhile: look at it again")
    changed = {each: after for each, after in changes.items() if after != before[each]}
    if not changed:
        return None
    edit_id: int = session.execute(
        text("INSERT INTO recallwatch.edit (set_name, action, edited_by)"
             " VALUES (:set_name, :action, :by) RETURNING id"),
        {"set_name": set_name, "action": action, "by": by},
    ).scalar_one()  # fmt: skip
    _write_all(session, set_name, changed)
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


def _refuse_strangers(session: Session, set_name: str, changes: Mapping[int, State]) -> None:
    query = text(
        "SELECT id FROM recallwatch.question WHERE id = ANY(:ids) AND set_name = :set_name"
    )
    known = set(session.scalars(query, {"ids": list(changes), "set_name": set_name}))
    strangers = sorted(changes.keys() - known)
    if strangers:
        raise InputError(
            f"golden set {set_name} has no question {strangers[0]}; see: recallwatch golden list"
            f" --set {set_name}"
        )


def _same(seen: State, now: State) -> bool:
    """Tell whether a question is as it was seen, whatever evidence was noted for it since."""
    return _without_evidence(seen) == _without_evidence(now)


def _without_evidence(state: State) -> State:
    """Return the state as people judged it: who judges anew leaves another `judged_at`."""
    judgments = {
        key: replace(judged, evidence_hash=None) for key, judged in state.judgments.items()
    }
    return replace(state, judgments=judgments)


def _write_all(session: Session, set_name: str, changed: Mapping[int, State]) -> None:
    written = [_written(question_id, state) for question_id, state in changed.items()]
    _refuse_twins_within(written)
    session.execute(text(_GIVE_UP), {"ids": list(changed)})
    for start in range(0, len(written), WRITTEN_AT_ONCE):
        part = json.dumps(written[start : start + WRITTEN_AT_ONCE])
        _refuse_twins(session, set_name, part)
        try:
            session.execute(text(_WRITE), {"states": part})
        except IntegrityError as error:  # not to be seen before: a transaction was adding it
            raise InputError(
                "a question would be the same as one that was added just now: look again"
            ) from error
        session.execute(text(_WRITE_JUDGMENTS), {"states": part})


def _written(question_id: int, state: State) -> dict[str, Any]:
    question = state.question
    hashes = {"content_hash": content_hash(question), "item_hash": item_hash(question)}
    return _json_of(state) | hashes | {"id": question_id}


def _refuse_twins_within(written: Sequence[Mapping[str, Any]]) -> None:
    by_identity: dict[tuple[str, str], int] = {}
    for each in written:
        name = "content_hash" if each["external_id"] is None else "external_id"
        twin = by_identity.setdefault((name, each[name]), each["id"])
        if twin != each["id"]:
            raise _same_as(each["id"], twin)


# Each way to be the same has an index of its own. The edit's own questions gave up theirs.
_TWINS = """
WITH written AS (
    SELECT * FROM jsonb_to_recordset(CAST(:states AS jsonb))
        AS n (id bigint, external_id text, content_hash text)
)
SELECT n.id, q.id AS twin FROM written n JOIN recallwatch.question q
    ON q.set_name = :set_name AND q.external_id = n.external_id
UNION ALL
SELECT n.id, q.id FROM written n JOIN recallwatch.question q
    ON q.set_name = :set_name AND q.external_id IS NULL AND q.content_hash = n.content_hash
WHERE n.external_id IS NULL
LIMIT 1
"""


def _refuse_twins(session: Session, set_name: str, states_written: str) -> None:
    values = {"set_name": set_name, "states": states_written}
    found = session.execute(text(_TWINS), values).one_or_none()
    if found is not None:
        raise _same_as(found.id, found.twin)


def _same_as(question_id: int, twin: int) -> InputError:
    return InputError(
        f"question {question_id} would be the same as question {twin}: reject one of the two"
    )


def undo(session: Session, edit_id: int, *, by: str | None) -> int:
    """Put an edit's questions back as they were, and return how many there are.

    Evidence that was noted since then stays. Raises InputError when there is no such edit, it was
    undone before, a question has changed since (what came later would be lost), or one would be
    the same as another by now.
    """
    query = text("SELECT set_name FROM recallwatch.edit WHERE id = :id")
    set_name = session.scalar(query, {"id": edit_id})
    if set_name is None:
        raise InputError(f"there is no edit {edit_id}; see: recallwatch golden edits")
    lock_set(session, set_name)
    undone_at = session.scalar(
        text("SELECT undone_at FROM recallwatch.edit WHERE id = :id"), {"id": edit_id}
    )
    if undone_at is not None:
        raise InputError(f"edit {edit_id} was undone already")
    rows = session.execute(
        text("SELECT question_id, before, after FROM recallwatch.edit_item"
             " WHERE edit_id = :id ORDER BY question_id"),
        {"id": edit_id},
    ).all()  # fmt: skip
    now = states(session, [row.question_id for row in rows], lock=True)
    for row in rows:
        if not _same(_state_of(row.after), now[row.question_id]):
            _refuse_changed(session, edit_id, row.question_id)
    _write_all(session, set_name, {row.question_id: _state_of(row.before) for row in rows})
    session.execute(
        text("UPDATE recallwatch.edit SET undone_at = clock_timestamp(), undone_by = :by"
             " WHERE id = :id"),
        {"id": edit_id, "by": by},
    )  # fmt: skip
    return len(rows)


def _refuse_changed(session: Session, edit_id: int, question_id: int) -> NoReturn:
    later = session.scalar(
        text("""
            SELECT max(e.id) FROM recallwatch.edit e
            JOIN recallwatch.edit_item i ON i.edit_id = e.id AND i.question_id = :question_id
            WHERE e.id > :edit_id AND e.undone_at IS NULL
        """),
        {"edit_id": edit_id, "question_id": question_id},
    )
    changed = f"question {question_id} has changed since edit {edit_id}"
    if later is None:
        raise InputError(f"{changed}, by an import: correct it by hand")
    raise InputError(f"{changed}: undo the later one first, with recallwatch golden undo {later}")


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


def with_status(
    state: State, status: Status, *, by: str | None, at: datetime, rejection: str | None = None
) -> State:
    """Return the state after a review: who decided, when, and why it was rejected if it was."""
    return replace(
        state, status=status.value, reviewed_by=by, reviewed_at=at.isoformat(), rejection=rejection
    )
