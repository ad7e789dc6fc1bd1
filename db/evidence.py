"""What judgments were made on: the texts of their chunks, kept once each under their hash."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

ROWS_PER_FETCH = 10_000


@dataclass(frozen=True, slots=True)
class JudgedKey:
    """A key of one or more questions, and the hash of what was judged; None: nobody kept it."""

    key: str
    evidence_hash: str | None


@dataclass(frozen=True, slots=True)
class ExpectedKey:
    """A key of one question of a version, with its grade."""

    position: int
    judged: JudgedKey
    grade: int


@dataclass(frozen=True, slots=True)
class StoredJudgment:
    """A judgment of a question that is active or proposed."""

    question_id: int
    judged: JudgedKey
    grade: int


_OF_VERSION = """
    FROM recallwatch.golden_item i CROSS JOIN LATERAL jsonb_each_text(i.expected) e
    LEFT JOIN recallwatch.judgment j ON j.question_id = i.question_id AND j.key = e.key
    WHERE i.version_id = :version_id
"""


def judged_keys(session: Session, version_id: int) -> Iterator[JudgedKey]:
    """Yield each pair of a key that a version expects (grade >= 1) and its evidence, by key."""
    query = text(f"""
        SELECT DISTINCT e.key, j.evidence_hash {_OF_VERSION}
        AND e.value::integer >= 1 ORDER BY e.key
    """)
    options = {"yield_per": ROWS_PER_FETCH}
    for row in session.execute(query, {"version_id": version_id}, execution_options=options):
        yield JudgedKey(row.key, row.evidence_hash)


def expected(session: Session, version_id: int) -> Iterator[ExpectedKey]:
    """Yield every key of a version's answerable questions, by position."""
    query = text(f"""
        SELECT i.position, e.key, j.evidence_hash, e.value::integer AS grade {_OF_VERSION}
        AND i.kind = 'answerable' ORDER BY i.position
    """)
    options = {"yield_per": ROWS_PER_FETCH}
    for row in session.execute(query, {"version_id": version_id}, execution_options=options):
        yield ExpectedKey(row.position, JudgedKey(row.key, row.evidence_hash), row.grade)


def of_questions(session: Session, question_ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """Return question -> its keys of which it is known what was judged -> the evidence's hash.

    With keys that an edit took away: a version that was made before it expects them still.
    """
    query = text("""
        SELECT question_id, key, evidence_hash FROM recallwatch.judgment
        WHERE question_id = ANY(:ids) AND evidence_hash IS NOT NULL
        UNION ALL
        SELECT * FROM (
            SELECT DISTINCT ON (i.question_id, e.key) i.question_id, e.key,
                e.value->>'evidence_hash' AS evidence_hash
            FROM recallwatch.edit_item i,
                jsonb_each((i.before->'judgments') || (i.after->'judgments')) e
            WHERE i.question_id = ANY(:ids) AND NOT EXISTS (
                SELECT FROM recallwatch.judgment j
                WHERE j.question_id = i.question_id AND j.key = e.key)
            ORDER BY i.question_id, e.key, i.edit_id DESC
        ) AS taken WHERE evidence_hash IS NOT NULL
    """)
    found: dict[int, dict[str, str]] = {}
    for row in session.execute(query, {"ids": list(question_ids)}):
        found.setdefault(row.question_id, {})[row.key] = row.evidence_hash
    return found


def judgments(session: Session, set_name: str) -> Iterator[StoredJudgment]:
    """Yield the judgments of a set's active and proposed questions, by question and key."""
    query = text("""
        SELECT j.question_id, j.key, j.evidence_hash, j.grade
        FROM recallwatch.judgment j JOIN recallwatch.question q ON q.id = j.question_id
        WHERE q.set_name = :set_name AND q.status IN ('active', 'proposed')
        ORDER BY j.question_id, j.key
    """)
    options = {"yield_per": ROWS_PER_FETCH}
    for row in session.execute(query, {"set_name": set_name}, execution_options=options):
        yield StoredJudgment(row.question_id, JudgedKey(row.key, row.evidence_hash), row.grade)


def texts(session: Session, hashes: Collection[str]) -> dict[str, str]:
    """Return hash -> text of the evidence."""
    query = text("SELECT hash, text FROM recallwatch.evidence WHERE hash = ANY(:hashes)")
    return {row.hash: row.text for row in session.execute(query, {"hashes": list(hashes)})}


def add(session: Session, found: Mapping[str, str]) -> None:
    """Keep texts under their hashes; those that are known already stay as they are.

    Whoever writes judgments besides takes the lock of their set first: see `db.locks.lock_set`.
    """
    lock(session)
    query = text("""
        INSERT INTO recallwatch.evidence (hash, text)
        SELECT * FROM unnest(CAST(:hashes AS text[]), CAST(:texts AS text[])) AS new (hash, text)
        ORDER BY hash ON CONFLICT DO NOTHING
    """)
    session.execute(query, {"hashes": list(found), "texts": list(found.values())})


def lock(session: Session) -> None:
    """Have nobody else add evidence until the transaction ends; after the lock of the set.

    Two who add the same texts, each in several statements, would wait for each other.
    """
    session.execute(text("SELECT pg_advisory_xact_lock(hashtext('recallwatch.evidence'))"))


def lacking(session: Session, set_name: str) -> Iterator[tuple[int, str]]:
    """Yield the (question, key) of a set's active questions without evidence, by key."""
    query = text("""
        SELECT j.question_id, j.key FROM recallwatch.judgment j
        JOIN recallwatch.question q ON q.id = j.question_id
        WHERE q.set_name = :set_name AND q.status = 'active' AND j.evidence_hash IS NULL
        ORDER BY j.key, j.question_id
    """)
    options = {"yield_per": ROWS_PER_FETCH}
    for row in session.execute(query, {"set_name": set_name}, execution_options=options):
        yield row.question_id, row.key


def attach(session: Session, hashes: Mapping[tuple[int, str], str]) -> None:
    """Give judgments, by (question, key), that lack it their evidence."""
    query = text("""
        UPDATE recallwatch.judgment j SET evidence_hash = new.hash
        FROM unnest(CAST(:ids AS bigint[]), CAST(:keys AS text[]), CAST(:hashes AS text[]))
            AS new (id, key, hash)
        WHERE j.question_id = new.id AND j.key = new.key AND j.evidence_hash IS NULL
    """)
    values = {"ids": [question_id for question_id, _ in hashes], "keys": [key for _, key in hashes],
              "hashes": list(hashes.values())}  # fmt: skip
    session.execute(query, values)


def renew(session: Session, set_name: str, hashes: Mapping[JudgedKey, str]) -> None:
    """Give a set's judgments of these keys and this evidence another spelling of it."""
    query = text("""
        UPDATE recallwatch.judgment j SET evidence_hash = new.hash
        FROM recallwatch.question q,
            unnest(CAST(:keys AS text[]), CAST(:olds AS text[]), CAST(:hashes AS text[]))
            AS new (key, old, hash)
        WHERE j.evidence_hash = new.old AND j.key = new.key
          AND q.id = j.question_id AND q.set_name = :set_name
    """)
    values = {"set_name": set_name, "keys": [each.key for each in hashes],
              "olds": [each.evidence_hash for each in hashes],
              "hashes": list(hashes.values())}  # fmt: skip
    session.execute(query, values)


def with_content(
    session: Session, set_name: str, content_hashes: Iterable[str]
) -> dict[str, list[int]]:
    """Return content hash -> the set's questions of that content that have no external id."""
    query = text("""
        SELECT content_hash, array_agg(id) AS ids FROM recallwatch.question
        WHERE set_name = :set_name AND external_id IS NULL AND content_hash = ANY(:hashes)
        GROUP BY content_hash
    """)
    rows = session.execute(query, {"set_name": set_name, "hashes": list(content_hashes)})
    return {row.content_hash: row.ids for row in rows}
