"""Questions that wait for a person's word, and what the person says."""

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import edits, evidence
from db.edits import Judged, State
from db.locks import lock_set
from pipeline.golden.judgments import kind_from
from pipeline.types import EditAction, Status

READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Filter:
    """Which questions of a set to review; None takes any."""

    status: Status = Status.PROPOSED
    category: str | None = None
    tenant: str | None = None
    source: str | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class ProposedKey:
    """A key that may be expected too, why, and how similar its chunk is (cosine)."""

    key: str
    reason: str
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Item:
    """A question to review. `proposed` are keys that it does not expect yet, likely ones first."""

    id: int
    state: State
    proposed: Sequence[ProposedKey]
    provenance: Mapping[str, Any]


def waiting(session: Session, set_name: str, wanted: Filter) -> list[int]:
    """Return the ids of the questions to review, the oldest first."""
    query = text("""
        SELECT id FROM recallwatch.question
        WHERE set_name = :set_name AND status = :status
          AND (CAST(:category AS text) IS NULL OR category = :category)
          AND (CAST(:tenant AS text) IS NULL OR tenant = :tenant)
          AND (CAST(:source AS text) IS NULL OR source = :source)
          AND (CAST(:generation AS text) IS NULL
               OR provenance->>'generation' = CAST(:generation AS text))
        ORDER BY id
    """)
    return list(session.scalars(query, {"set_name": set_name} | asdict(wanted)))


def known(session: Session, set_name: str, question_ids: Sequence[int]) -> list[int]:
    """Return those of the ids that are of the set, in their order."""
    query = text(
        "SELECT id FROM recallwatch.question WHERE set_name = :set_name AND id = ANY(:ids)"
    )
    found = set(session.scalars(query, {"set_name": set_name, "ids": list(question_ids)}))
    return [question_id for question_id in question_ids if question_id in found]


def statuses(session: Session, question_ids: Sequence[int]) -> dict[int, str]:
    """Return the questions' statuses."""
    query = text("SELECT id, status FROM recallwatch.question WHERE id = ANY(:ids)")
    rows = session.execute(query, {"ids": list(question_ids)})
    return {row.id: row.status for row in rows}


def items(session: Session, question_ids: Sequence[int]) -> Iterator[Item]:
    """Yield the questions that there are, in the order of their ids, some hundred at a time."""
    for start in range(0, len(question_ids), READ_AT_ONCE):
        ids = list(question_ids[start : start + READ_AT_ONCE])
        proposed = _proposed(session, ids)
        provenance = _provenance(session, ids)
        for question_id, state in edits.states(session, ids).items():
            keys = [key for key in proposed.get(question_id, ()) if key.key not in state.judgments]
            yield Item(question_id, state, keys, provenance[question_id])


def _proposed(session: Session, question_ids: Sequence[int]) -> dict[int, list[ProposedKey]]:
    query = text("""
        SELECT * FROM recallwatch.proposed_key WHERE question_id = ANY(:ids)
        ORDER BY question_id, similarity DESC NULLS LAST, key
    """)
    found: dict[int, list[ProposedKey]] = {}
    for row in session.execute(query, {"ids": list(question_ids)}):
        found.setdefault(row.question_id, []).append(
            ProposedKey(row.key, row.reason, row.similarity)
        )
    return found


def _provenance(session: Session, question_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    query = text("SELECT id, provenance FROM recallwatch.question WHERE id = ANY(:ids)")
    rows = session.execute(query, {"ids": list(question_ids)})
    return {row.id: row.provenance or {} for row in rows}


def mark(state: State) -> str:
    """Return 16 hexadecimal digits that are others once a question is changed in any way.

    Evidence that is noted for a judgment changes nothing that a reviewer was shown.
    """
    shown = asdict(state)
    for judged in shown["judgments"].values():
        del judged["evidence_hash"]
    canonical = json.dumps(shown, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def with_keys(
    state: State, expected: Mapping[str, int], *, by: str | None, again: Container[str] = ()
) -> State:
    """Return the state with these keys and grades; the kind follows from them.

    Who said so, and when, is noted with each judgment that is new or has another grade, and of the
    keys that were judged `again`; the others stay as they were.
    """
    judgments = {
        key: _judged(state.judgments.get(key), grade, by, again=key in again)
        for key, grade in expected.items()
    }
    return replace(state, judgments=judgments, kind=kind_from(None, expected).value)


def _judged(before: Judged | None, grade: int, by: str | None, *, again: bool) -> Judged:
    if before is not None and before.grade == grade and not again:
        return before
    known = None if before is None else before.evidence_hash
    now = datetime.now(UTC).isoformat()
    return Judged(grade, evidence_hash=known, judged_by=by, judged_at=now)


def with_evidence(state: State, contents: Mapping[str, str]) -> State:
    """Return the state with the hashes of the texts that these keys were judged on."""
    judgments = dict(state.judgments)
    for key, content in contents.items():
        judgments[key] = replace(judgments[key], evidence_hash=_hash(content))
    return replace(state, judgments=judgments)


def keep(session: Session, set_name: str, contents: Iterable[str]) -> None:
    """Keep texts that questions of a set are judged on, and have the set to oneself."""
    lock_set(session, set_name)
    evidence.add(session, {_hash(content): content for content in contents})


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def reviewed(
    state: State, status: Status, *, by: str | None, rejection: str | None = None
) -> State:
    """Return the state after a person's word: accepted (`ACTIVE`) or rejected, and why."""
    return edits.with_status(state, status, by=by, at=datetime.now(UTC), rejection=rejection)


def decide(
    session: Session, set_name: str, action: EditAction, seen: Item, after: State, *, by: str | None
) -> int | None:
    """Write one question's new state as an edit; see `db.edits.apply`.

    Raises InputError when somebody changed the question since it was seen.
    """
    return edits.apply(
        session, set_name, action, {seen.id: after}, by=by, seen={seen.id: seen.state}
    )


@dataclass(frozen=True, slots=True)
class LastEdit:
    """The newest edit of one question that somebody made in a review and has not undone."""

    id: int
    question_id: int
    action: EditAction


def last_edit(session: Session, set_name: str, by: str | None) -> LastEdit | None:
    """Return what a person did last in reviews of a set; None: nothing that stands."""
    query = text("""
        SELECT e.id, min(i.question_id) AS question_id, e.action
        FROM recallwatch.edit e JOIN recallwatch.edit_item i ON i.edit_id = e.id
        WHERE e.set_name = :set_name AND e.edited_by IS NOT DISTINCT FROM CAST(:by AS text)
          AND e.undone_at IS NULL AND e.action IN ('accept', 'reject', 'change')
        GROUP BY e.id HAVING count(*) = 1 ORDER BY e.id DESC LIMIT 1
    """)
    row = session.execute(query, {"set_name": set_name, "by": by}).one_or_none()
    return None if row is None else LastEdit(row.id, row.question_id, EditAction(row.action))
