"""Questions that a model wrote: filtered one by one, and stored as golden questions where kept."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.locks import lock_set
from pipeline.generation.base import Ask
from pipeline.generation.stored import ask_from_json
from pipeline.golden.fingerprint import content_hash, item_hash
from pipeline.types import Kind, Question, Source, Status


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A question that waits to be filtered; `ask` holds the chunks that it was written from.

    `expected` are the keys of the chunks that it needs, by the model's word; with their grades.
    """

    generation_id: int
    number: int
    ordinal: int
    set_name: str
    text: str
    expected: Mapping[str, int]
    kind: Kind
    category: str | None
    tenant: str | None
    language: str | None
    ask: Ask


@dataclass(frozen=True, slots=True)
class Alternative:
    """A key that may be expected too: a reviewer decides."""

    key: str
    reason: str
    similarity: float | None = None


def drafted(session: Session, generation_id: int, limit: int) -> list[CandidateRow]:
    """Return the first candidates that nobody decided on yet, in the order of their requests."""
    query = text("""
        SELECT c.*, g.set_name, r.ask FROM recallwatch.candidate c
        JOIN recallwatch.generation_request r USING (generation_id, number)
        JOIN recallwatch.generation g ON g.id = c.generation_id
        WHERE c.generation_id = :id AND c.state = 'drafted'
        ORDER BY c.number, c.ordinal LIMIT :limit
    """)
    return [
        CandidateRow(
            row.generation_id, row.number, row.ordinal, row.set_name, row.text, row.expected,
            Kind(row.kind), row.category, row.tenant, row.language, ask_from_json(row.ask),
        )
        for row in session.execute(query, {"id": generation_id, "limit": limit})
    ]  # fmt: skip


def categories(
    session: Session, generation_id: int, numbers: Collection[int]
) -> dict[int, list[str]]:
    """Return, for each of these requests, the categories of its candidates in their order."""
    query = text("""
        SELECT number, array_agg(coalesce(category, '') ORDER BY ordinal) AS given
        FROM recallwatch.candidate WHERE generation_id = :id AND number = ANY(:numbers)
        GROUP BY number
    """)
    rows = session.execute(query, {"id": generation_id, "numbers": list(numbers)})
    return {row.number: row.given for row in rows}


_DECIDE = """
UPDATE recallwatch.candidate SET state = :state, rejection = :rejection, detail = :detail,
    facts = CAST(:facts AS jsonb), question_id = :question_id
WHERE generation_id = :generation_id AND number = :number AND ordinal = :ordinal
  AND state = 'drafted'
RETURNING 1
"""


def reject(
    session: Session,
    candidate: CandidateRow,
    rejection: str,
    detail: str | None,
    facts: Mapping[str, Any] | None = None,
) -> bool:
    """Refuse a candidate, by the filter's name and what it saw; False: it was decided before."""
    return _decide(session, candidate, "rejected", rejection=rejection, detail=detail, facts=facts)


def keep(
    session: Session,
    candidate: CandidateRow,
    facts: Mapping[str, Any],
    proposed_keys: Sequence[Alternative],
    status: Status,
) -> int | None:
    """Make a golden question of a candidate and return its id.

    It takes the set's lock. None, and nothing changed: the set has that very question, or the
    candidate was decided before.
    The chunks that it was written from become the evidence of its judgments. `facts` also go into
    the question's provenance, beside where it came from.
    """
    lock_set(session, candidate.set_name)
    question_id = _insert(session, candidate, facts, status)
    if question_id is None:
        return None
    if not _decide(session, candidate, "kept", facts=facts, question_id=question_id):
        session.execute(
            text("DELETE FROM recallwatch.question WHERE id = :id"), {"id": question_id}
        )
        return None
    _judge(session, candidate, question_id)
    session.execute(
        text("""
            INSERT INTO recallwatch.proposed_key (question_id, key, reason, similarity)
            SELECT :id, p.key, p.reason, p.similarity
            FROM jsonb_to_recordset(CAST(:keys AS jsonb))
                AS p (key text, reason text, similarity double precision)
            ON CONFLICT (question_id, key) DO NOTHING
        """),
        {"id": question_id, "keys": json.dumps(_without_expected(candidate, proposed_keys))},
    )
    return question_id


def _without_expected(
    candidate: CandidateRow, proposed: Sequence[Alternative]
) -> list[dict[str, Any]]:
    return [
        {"key": each.key, "reason": each.reason, "similarity": each.similarity}
        for each in proposed
        if each.key not in candidate.expected
    ]


def _decide(
    session: Session,
    candidate: CandidateRow,
    state: str,
    *,
    rejection: str | None = None,
    detail: str | None = None,
    facts: Mapping[str, Any] | None = None,
    question_id: int | None = None,
) -> bool:
    values = {
        "generation_id": candidate.generation_id, "number": candidate.number,
        "ordinal": candidate.ordinal, "state": state, "rejection": rejection, "detail": detail,
        "facts": None if facts is None else json.dumps(dict(facts)), "question_id": question_id,
    }  # fmt: skip
    return session.execute(text(_DECIDE), values).one_or_none() is not None


_INSERT = """
INSERT INTO recallwatch.question (set_name, text, content_hash, item_hash, kind, category, tenant,
    language, source, status, must_pass, provenance)
SELECT g.set_name, :text, :content_hash, :item_hash, :kind, :category, :tenant, :language,
    :source, :status, false, jsonb_build_object(
        'generation', g.id, 'request', CAST(:number AS integer),
        'ordinal', CAST(:ordinal AS integer), 'model', g.settings->'generation'->'model',
        'prompt_version', g.settings->'prompt_version', 'facts', CAST(:facts AS jsonb))
FROM recallwatch.generation g WHERE g.id = :generation_id
ON CONFLICT (set_name, content_hash) WHERE external_id IS NULL DO NOTHING
RETURNING id
"""


def _insert(
    session: Session, candidate: CandidateRow, facts: Mapping[str, Any], status: Status
) -> int | None:
    question = Question(
        text=candidate.text,
        expected=candidate.expected,
        kind=candidate.kind,
        category=candidate.category,
        tenant=candidate.tenant,
        language=candidate.language,
        source=Source.SYNTHETIC,
    )
    values = {
        "generation_id": candidate.generation_id, "number": candidate.number,
        "ordinal": candidate.ordinal, "text": question.text, "kind": question.kind,
        "category": question.category, "tenant": question.tenant, "language": question.language,
        "source": question.source, "status": status, "content_hash": content_hash(question),
        "item_hash": item_hash(question), "facts": json.dumps(dict(facts)),
    }  # fmt: skip
    return session.execute(text(_INSERT), values).scalar_one_or_none()


_JUDGE = """
WITH judged AS (
    SELECT * FROM jsonb_to_recordset(CAST(:judged AS jsonb))
        AS j (key text, grade integer, hash text, content text)
), kept AS (
    INSERT INTO recallwatch.evidence (hash, text)
    SELECT DISTINCT hash, content FROM judged WHERE hash IS NOT NULL ORDER BY hash
    ON CONFLICT (hash) DO NOTHING
)
INSERT INTO recallwatch.judgment (question_id, key, grade, evidence_hash, judged_by)
SELECT :id, j.key, j.grade, j.hash, g.settings->'generation'->>'model'
FROM judged j, recallwatch.generation g WHERE g.id = :generation_id
"""


def _judge(session: Session, candidate: CandidateRow, question_id: int) -> None:
    contents = {chunk.key: chunk.content for chunk in candidate.ask.chunks}
    judged = [
        {"key": key, "grade": grade, "content": contents.get(key),
         "hash": _hash(contents[key]) if key in contents else None}
        for key, grade in candidate.expected.items()
    ]  # fmt: skip
    session.execute(
        text(_JUDGE),
        {"id": question_id, "generation_id": candidate.generation_id,
         "judged": json.dumps(judged)},
    )  # fmt: skip


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
