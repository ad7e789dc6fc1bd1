"""Questions of a file into a golden set, in one transaction and in flat memory.

They are copied into a temporary table first; what they do to the set is then said in a few
statements, and counted by the server.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString, cast

from sqlalchemy import CursorResult, text
from sqlalchemy.orm import Session

from db import evidence
from db.locks import lock_set
from db.session import driver_connection
from pipeline.golden.fingerprint import content_hash, item_hash, text_hash
from pipeline.types import Question, Status


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did to a set, in questions.

    `rejected`: left out, as a reviewer rejected them or another question of their text.
    `reactivated`: were rejected and are active now; `accepted`: were proposed, which nobody had
    reviewed, and are active now; both are `changed` too. `beside`: stored questions that have an
    external id which the import does not hold, and the text of one that it does: they were left as
    they are.
    """

    added: int
    changed: int
    unchanged: int
    retired: int
    rejected: int = 0
    reactivated: int = 0
    accepted: int = 0
    beside: int = 0


_TABLES = """
CREATE TEMPORARY TABLE incoming (
    external_id text, text text, content_hash text, item_hash text, text_hash text, expected jsonb,
    kind text, category text, tenant text, language text, source text, must_pass boolean,
    notes text, evidence jsonb
) ON COMMIT DROP;
CREATE TEMPORARY TABLE absent (id bigint, text_hash text, named boolean) ON COMMIT DROP;
CREATE TEMPORARY TABLE turned_down (text_hash text) ON COMMIT DROP;
CREATE TEMPORARY TABLE touched (id bigint, added boolean) ON COMMIT DROP
"""

_COPY_INCOMING = """
COPY incoming (external_id, text, content_hash, item_hash, text_hash, expected, kind, category,
               tenant, language, source, must_pass, notes, evidence) FROM STDIN
"""

_INDEXES = """
CREATE INDEX ON incoming (external_id);
CREATE INDEX ON incoming (content_hash);
CREATE INDEX ON incoming (text_hash);
ANALYZE incoming
"""

# The two ways to know a question again, by external id or by content. Two joins, as each can use a
# hash: one with both ways in its condition compares every pair.
_KNOWN_AGAIN = (
    "i.external_id = q.external_id",
    "i.content_hash = q.content_hash AND i.external_id IS NULL AND q.external_id IS NULL",
)

_KNOWN_AS = """
SELECT count(*) FROM recallwatch.question q JOIN incoming i ON {known_again}
WHERE q.set_name = :set_name AND q.status = :status
"""

_SELECT_REJECTED = """
SELECT q.text, q.tenant FROM recallwatch.question q
WHERE q.set_name = :set_name AND q.status = 'rejected'
"""

# What a reviewer said of a question holds for every spelling of it, and whatever id it has; but
# not for one that is active beside it.
_LEAVE_REJECTED = (
    """
    DELETE FROM incoming i USING recallwatch.question q
    WHERE q.set_name = :set_name AND q.status = 'rejected' AND i.external_id = q.external_id
    """,
    """
    DELETE FROM incoming i USING (SELECT DISTINCT text_hash FROM turned_down) t
    WHERE i.text_hash = t.text_hash
      AND NOT EXISTS (SELECT FROM recallwatch.question q WHERE q.set_name = :set_name
                      AND q.status = 'active' AND q.external_id = i.external_id)
      AND NOT EXISTS (SELECT FROM recallwatch.question q WHERE q.set_name = :set_name
                      AND q.status = 'active' AND q.external_id IS NULL AND i.external_id IS NULL
                      AND q.content_hash = i.content_hash)
    """,
)

_SELECT_ABSENT = """
SELECT q.id, q.text, q.tenant, q.external_id IS NOT NULL AS named FROM recallwatch.question q
WHERE q.set_name = :set_name AND q.status = 'active'
  AND NOT EXISTS (SELECT FROM incoming i WHERE i.external_id = q.external_id)
  AND NOT EXISTS (SELECT FROM incoming i WHERE q.external_id IS NULL AND i.external_id IS NULL
                  AND i.content_hash = q.content_hash)
"""

_RETIRE_ABSENT = """
UPDATE recallwatch.question q SET status = 'retired', updated_at = now()
FROM absent a WHERE a.id = q.id
"""

# A file speaks for the texts it holds: an older question of the same text and tenant whose
# expected keys the file no longer states, or which has an external id there, is retired, not kept
# beside its correction.
_RETIRE_CORRECTED = f"""
{_RETIRE_ABSENT} AND NOT a.named
  AND EXISTS (SELECT FROM incoming i WHERE i.text_hash = a.text_hash)
"""

_COUNT_BESIDE = """
SELECT count(*) FROM absent a
WHERE a.named AND EXISTS (SELECT FROM incoming i WHERE i.text_hash = a.text_hash)
"""

# They differ only in the unique index that the upsert leans on. Rows lie in the order in which they
# were copied.
_UPSERT = """
WITH written AS (
    INSERT INTO recallwatch.question AS q (set_name, external_id, text, content_hash, item_hash,
        kind, category, tenant, language, source, status, must_pass, notes)
    SELECT :set_name, external_id, text, content_hash, item_hash, kind,
        category, tenant, language, source, 'active', must_pass, notes
    FROM incoming WHERE external_id IS {presence} ORDER BY incoming.ctid
    ON CONFLICT {conflict} DO UPDATE SET
        text = excluded.text, content_hash = excluded.content_hash, item_hash = excluded.item_hash,
        kind = excluded.kind, category = excluded.category, tenant = excluded.tenant,
        language = excluded.language, source = excluded.source, status = 'active',
        must_pass = excluded.must_pass, notes = excluded.notes, rejection = NULL,
        updated_at = now()
    WHERE (q.item_hash, q.status, q.notes)
        IS DISTINCT FROM (excluded.item_hash, 'active', excluded.notes)
      AND (q.status <> 'rejected' OR :reactivate)
    RETURNING q.id, (q.xmax = 0) AS added
) INSERT INTO touched SELECT id, added FROM written
"""

_UPSERTS = (
    _UPSERT.format(
        presence="NOT NULL",
        conflict="(set_name, external_id) WHERE external_id IS NOT NULL",
    ),
    _UPSERT.format(presence="NULL", conflict="(set_name, content_hash) WHERE external_id IS NULL"),
)

_ADD_EVIDENCE = """
INSERT INTO recallwatch.evidence (hash, text)
SELECT DISTINCT ON (hash) hash, text FROM (
    SELECT encode(sha256(convert_to(e.value, 'UTF8')), 'hex') AS hash, e.value AS text
    FROM incoming i, jsonb_each_text(i.evidence) e
) AS brought ORDER BY hash
ON CONFLICT DO NOTHING
"""

# What is judged may be told later: a question that has not changed, in a file that has evidence.
_TOUCH_FOR_EVIDENCE = """
INSERT INTO touched (id)
SELECT q.id FROM recallwatch.question q JOIN incoming i ON {known_again}
WHERE q.set_name = :set_name AND q.status = 'active' AND i.evidence <> '{{}}'
  AND NOT EXISTS (SELECT FROM touched t WHERE t.id = q.id)
"""

# A key keeps the evidence that it has unless the import brings one, or another grade: nobody knows
# what that was given to.
_REPLACE_JUDGMENTS = """
WITH changed AS (
    SELECT q.id, i.expected, i.evidence FROM touched JOIN recallwatch.question q USING (id)
    JOIN incoming i ON {known_again}
), gone AS (
    DELETE FROM recallwatch.judgment j USING changed c
    WHERE j.question_id = c.id AND NOT c.expected ? j.key
)
INSERT INTO recallwatch.judgment AS j (question_id, key, grade, evidence_hash, judged_by)
SELECT c.id, e.key, e.value::integer,
    encode(sha256(convert_to(c.evidence->>e.key, 'UTF8')), 'hex'), :by
FROM changed c, jsonb_each_text(c.expected) e
ON CONFLICT (question_id, key) DO UPDATE SET grade = excluded.grade,
    evidence_hash = coalesce(
        excluded.evidence_hash, CASE WHEN j.grade = excluded.grade THEN j.evidence_hash END),
    judged_by = excluded.judged_by, judged_at = excluded.judged_at
WHERE (j.grade, j.evidence_hash)
    IS DISTINCT FROM (excluded.grade, coalesce(excluded.evidence_hash, j.evidence_hash))
"""


def import_questions(
    session: Session,
    set_name: str,
    questions: Iterable[Question],
    *,
    replace: bool = False,
    reactivate: bool = False,
    by: str | None = None,
) -> ImportReport:
    """Add questions to a set, or bring those it knows up to date; all or nothing.

    A question is known again by its external id, else by its content. With `replace` the set
    ends up as the file: active questions that it does not hold are retired, never deleted. What a
    reviewer rejected stays so, in any spelling, unless `reactivate`. `by` is who judged what is
    new.
    """
    named = {"set_name": set_name}
    lock_set(session, set_name)
    session.execute(text(_TABLES))
    total = _copy(session, questions)
    session.execute(text(_INDEXES))
    rejected = 0 if reactivate else _leave_rejected(session, set_name)
    reactivated, accepted = (
        sum(way.scalar_one() for way in _each_way(session, _KNOWN_AS, named | {"status": status}))
        for status in (Status.REJECTED, Status.PROPOSED)
    )
    retired, beside = _retire(session, set_name, replace=replace)
    for upsert in _UPSERTS:
        session.execute(text(upsert), named | {"reactivate": reactivate})
    added, touched = _counts(session)
    _judge(session, set_name, by)
    return ImportReport(
        added=added,
        changed=touched - added,
        unchanged=total - touched - rejected,
        retired=retired,
        rejected=rejected,
        reactivated=reactivated,
        accepted=accepted,
        beside=beside,
    )


def _copy(session: Session, questions: Iterable[Question]) -> int:
    """COPY the questions into the temporary table and return how many there were."""
    total = 0
    with driver_connection(session).cursor() as cursor, cursor.copy(_COPY_INCOMING) as copy:
        for total, q in enumerate(questions, start=1):  # noqa: B007 - the count is used below
            copy.write_row((q.external_id, q.text, content_hash(q), item_hash(q),
                            text_hash(q.text, q.tenant), json.dumps(dict(q.expected)), q.kind,
                            q.category, q.tenant, q.language, q.source, q.must_pass, q.notes,
                            json.dumps(dict(q.evidence))))  # fmt: skip
    return total


def _leave_rejected(session: Session, set_name: str) -> int:
    """Take out of the import what a reviewer rejected, and return how many questions it was."""
    named = {"set_name": set_name}
    rows = session.execute(text(_SELECT_REJECTED), named, execution_options={"yield_per": 5_000})
    for some in rows.partitions():
        hashes = ((text_hash(row.text, row.tenant),) for row in some)
        _copy_rows(session, "COPY turned_down (text_hash) FROM STDIN", hashes)
    session.execute(text("ANALYZE turned_down"))
    return sum(
        cast("CursorResult[Any]", session.execute(text(leave), named)).rowcount
        for leave in _LEAVE_REJECTED
    )


def _retire(session: Session, set_name: str, *, replace: bool) -> tuple[int, int]:
    """Retire what the import replaces; return how many, and how many stay beside their likes."""
    rows = session.execute(
        text(_SELECT_ABSENT), {"set_name": set_name}, execution_options={"yield_per": 5_000}
    )
    for some in rows.partitions():
        found = ((row.id, text_hash(row.text, row.tenant), row.named) for row in some)
        _copy_rows(session, "COPY absent (id, text_hash, named) FROM STDIN", found)
    session.execute(text("ANALYZE absent"))
    retire = text(_RETIRE_ABSENT if replace else _RETIRE_CORRECTED)
    retired = cast("CursorResult[Any]", session.execute(retire)).rowcount
    beside = 0 if replace else session.execute(text(_COUNT_BESIDE)).scalar_one()
    return retired, beside


def _copy_rows(
    session: Session, statement: LiteralString, rows: Iterable[tuple[object, ...]]
) -> None:
    with driver_connection(session).cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _counts(session: Session) -> tuple[int, int]:
    """Return how many questions were added, and how many were added or changed."""
    query = text("SELECT count(*) FILTER (WHERE added), count(added) FROM touched")
    added, touched = session.execute(query).one()
    return added, touched


def _judge(session: Session, set_name: str, by: str | None) -> None:
    """Give the questions that were touched, or that evidence is brought for, their judgments."""
    evidence.lock(session)
    session.execute(text(_ADD_EVIDENCE))
    _each_way(session, _TOUCH_FOR_EVIDENCE, {"set_name": set_name})
    session.execute(text("ANALYZE touched"))
    _each_way(session, _REPLACE_JUDGMENTS, {"by": by})


def _each_way(
    session: Session, statement: str, values: Mapping[str, Any]
) -> list[CursorResult[Any]]:
    return [
        cast("CursorResult[Any]", session.execute(text(statement.format(known_again=way)), values))
        for way in _KNOWN_AGAIN
    ]
