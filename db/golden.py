"""Golden sets: questions as people edit them, and the immutable versions that runs evaluate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from db.locks import lock_set
from db.models import GoldenItem, GoldenVersion
from pipeline.errors import InputError
from pipeline.golden.duplicates import check_size
from pipeline.golden.fingerprint import version_fingerprint
from pipeline.types import Kind, Level, Question, Source, Status


@dataclass(frozen=True, slots=True)
class SetSummary:
    """One golden set, counted."""

    set_name: str
    active: int
    unanswerable: int
    other: int
    judgments: int
    versions: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question with its id and status."""

    id: int
    status: Status
    question: Question


def snapshot(session: Session, set_name: str) -> GoldenVersion:
    """Return the version of the set's active questions, making it where it is new.

    Same content, same version: only the stored hashes are read to know. Raises InputError when
    the set has no active question.
    """
    lock_set(session, set_name)
    fingerprint = _fingerprint(session, set_name)
    return _known(session, set_name, fingerprint) or _make_version(session, set_name, fingerprint)


def current(session: Session, set_name: str) -> GoldenVersion | None:
    """Return the version of the set's active questions; None where none was made of them yet."""
    return _known(session, set_name, _fingerprint(session, set_name))


def _fingerprint(session: Session, set_name: str) -> str:
    hashes = text(
        "SELECT item_hash FROM recallwatch.question"
        " WHERE set_name = :set_name AND status = 'active'"
    )
    rows = session.execute(
        hashes, {"set_name": set_name}, execution_options={"yield_per": 10_000}
    ).scalars()
    return version_fingerprint(rows)


def _known(session: Session, set_name: str, fingerprint: str) -> GoldenVersion | None:
    query = select(GoldenVersion).filter_by(set_name=set_name, fingerprint=fingerprint)
    return session.scalar(query)


# LATERAL, so that the plan is the same before the tables were ever analyzed: guessing a few rows,
# the planner would group all judgments anew for each question.
_COPY_ITEMS = """
INSERT INTO recallwatch.golden_item (version_id, position, question_id, external_id, content_hash,
    text, expected, kind, category, tenant, language, source, must_pass)
SELECT :version_id, row_number() OVER (ORDER BY q.id) - 1, q.id, q.external_id, q.content_hash,
    q.text, coalesce(j.expected, '{}'), q.kind, q.category, q.tenant, q.language, q.source,
    q.must_pass
FROM recallwatch.question q
CROSS JOIN LATERAL (SELECT jsonb_object_agg(key, grade) AS expected
                    FROM recallwatch.judgment WHERE question_id = q.id) j
WHERE q.set_name = :set_name AND q.status = 'active'
"""


def _make_version(session: Session, set_name: str, fingerprint: str) -> GoldenVersion:
    size = session.scalar(
        text("SELECT count(*) FROM recallwatch.question"
             " WHERE set_name = :set_name AND status = 'active'"),
        {"set_name": set_name},
    )  # fmt: skip
    if not size:
        raise InputError(
            f"golden set {set_name!r} has no active question; run:"
            f" recallwatch golden import FILE --set {set_name}"
        )
    check_size(size, f"golden set {set_name!r}")
    version = GoldenVersion(set_name=set_name, fingerprint=fingerprint, size=size)
    session.add(version)
    session.flush()
    session.execute(text(_COPY_ITEMS), {"version_id": version.id, "set_name": set_name})
    return version


def items(session: Session, version_id: int, first: int, last: int) -> Sequence[GoldenItem]:
    """Return a version's items from position `first` to `last`, both included, in order."""
    query = (
        select(GoldenItem)
        .where(GoldenItem.version_id == version_id, GoldenItem.position.between(first, last))
        .order_by(GoldenItem.position)
    )
    return session.scalars(query).all()


def texts(session: Session, version_id: int) -> Iterator[str]:
    """Yield each distinct text of the version's questions once."""
    query = text("SELECT DISTINCT text FROM recallwatch.golden_item WHERE version_id = :version_id")
    yield from session.execute(
        query, {"version_id": version_id}, execution_options={"yield_per": 10_000}
    ).scalars()


def expected_keys(session: Session, version_id: int) -> Iterator[str]:
    """Yield each distinct key that a question of the version expects (grade >= 1) once."""
    query = text(
        "SELECT DISTINCT e.key FROM recallwatch.golden_item, jsonb_each_text(expected) e"
        " WHERE version_id = :version_id AND e.value::integer >= 1"
    )
    yield from session.execute(
        query, {"version_id": version_id}, execution_options={"yield_per": 10_000}
    ).scalars()


def expected_count(session: Session, version_id: int, level: Level) -> int:
    """Count what the questions of a version expect (grade >= 1), keys or documents, as runs do."""
    key = "e.key" if level is Level.CHUNK else "regexp_replace(e.key, ':[^:]*$', '')"
    query = text(f"""
        SELECT count(*) FROM recallwatch.golden_item i CROSS JOIN LATERAL (
            SELECT DISTINCT {key} FROM jsonb_each_text(i.expected) e WHERE e.value::integer >= 1
        ) AS expected WHERE i.version_id = :version_id
    """)
    return int(session.execute(query, {"version_id": version_id}).scalar_one())


def count_unchanged(session: Session, version_id: int, days: int) -> tuple[int, int]:
    """Return how many of a version's questions nobody changed for so many days, and all."""
    query = text("""
        SELECT count(*) FILTER (
                WHERE q.updated_at < clock_timestamp() - make_interval(days => :days)) AS unchanged,
            count(*) AS total
        FROM recallwatch.golden_item i JOIN recallwatch.question q ON q.id = i.question_id
        WHERE i.version_id = :version_id
    """)
    row = session.execute(query, {"version_id": version_id, "days": days}).one()
    return row.unchanged, row.total


def positions_by_key(
    session: Session, version_id: int, document_ids: Sequence[str]
) -> dict[str, list[int]]:
    """Return the keys that a version expects of these documents -> the questions' positions."""
    query = text("""
        SELECT e.key, array_agg(position ORDER BY position) AS positions
        FROM recallwatch.golden_item, jsonb_each_text(expected) e
        WHERE version_id = :version_id AND e.value::integer >= 1
          AND coalesce(substring(e.key FROM '^(.+):[^:]*$'), e.key) = ANY(:ids)
        GROUP BY e.key ORDER BY e.key
    """)
    rows = session.execute(query, {"version_id": version_id, "ids": list(document_ids)})
    return {row.key: row.positions for row in rows}


def sets(session: Session) -> list[SetSummary]:
    """Count every golden set."""
    query = text("""
        SELECT q.set_name, count(*) FILTER (WHERE status = 'active') AS active,
            count(*) FILTER (WHERE status = 'active' AND kind = 'unanswerable') AS unanswerable,
            count(*) FILTER (WHERE status <> 'active') AS other,
            coalesce(sum(j.n) FILTER (WHERE status = 'active'), 0)::bigint AS judgments,
            (SELECT count(*) FROM recallwatch.golden_version v
             WHERE v.set_name = q.set_name) AS versions,
            max(updated_at) AS updated_at
        FROM recallwatch.question q
        LEFT JOIN (SELECT question_id, count(*) AS n FROM recallwatch.judgment
                   GROUP BY question_id) j ON j.question_id = q.id
        GROUP BY q.set_name ORDER BY q.set_name
    """)
    return [SetSummary(*row) for row in session.execute(query)]


_SELECT_QUESTIONS = """
SELECT q.*, coalesce(j.expected, '{{}}') AS expected, coalesce(j.evidence, '{{}}') AS evidence
FROM recallwatch.question q
LEFT JOIN LATERAL (
    SELECT jsonb_object_agg(key, grade) AS expected,
        jsonb_object_agg(key, e.text) FILTER (WHERE e.text IS NOT NULL) AS evidence
    FROM recallwatch.judgment
    LEFT JOIN recallwatch.evidence e ON :evidence AND e.hash = evidence_hash
    WHERE question_id = q.id
) j ON true
WHERE {condition} ORDER BY q.id
"""


def questions(
    session: Session,
    set_name: str,
    *,
    status: Status | None = Status.ACTIVE,
    category: str | None = None,
    tenant: str | None = None,
    limit: int | None = None,
    evidence: bool = False,
) -> Iterator[StoredQuestion]:
    """Yield a set's questions: of every status with `status=None`, what was judged with `evidence`.

    The oldest come first, and of one import those with an external id, else in the file's order.
    """
    condition = (
        "q.set_name = :set_name AND (CAST(:status AS text) IS NULL OR q.status = :status)"
        " AND (CAST(:category AS text) IS NULL OR q.category = :category)"
        " AND (CAST(:tenant AS text) IS NULL OR q.tenant = :tenant)"
    )
    query = text(_SELECT_QUESTIONS.format(condition=condition) + " LIMIT :limit")
    values = {"set_name": set_name, "status": status, "category": category, "tenant": tenant,
              "limit": limit, "evidence": evidence}  # fmt: skip
    rows = session.execute(query, values, execution_options={"yield_per": 1000})
    yield from map(_stored, rows)


def question(session: Session, question_id: int) -> StoredQuestion:
    """Return one question with its evidence by its id; raises InputError when there is none."""
    query = text(_SELECT_QUESTIONS.format(condition="q.id = :id"))
    row = session.execute(query, {"id": question_id, "evidence": True}).one_or_none()
    if row is None:
        raise InputError(f"there is no question {question_id}; see: recallwatch golden list")
    return _stored(row)


def _stored(row: Row[Any]) -> StoredQuestion:
    return StoredQuestion(
        id=row.id,
        status=Status(row.status),
        question=Question(
            text=row.text,
            expected=row.expected,
            kind=Kind(row.kind),
            category=row.category,
            tenant=row.tenant,
            language=row.language,
            source=Source(row.source),
            must_pass=row.must_pass,
            external_id=row.external_id,
            notes=row.notes,
            evidence=row.evidence,
        ),
    )
