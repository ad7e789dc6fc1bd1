"""What became of a golden set: its versions, and what differs between two states of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from db.models import GoldenVersion
from pipeline.errors import InputError

FIELDS = ("text", "kind", "category", "tenant", "language", "source", "must_pass", "external_id")
"""What a version holds of a question, beside its expected keys."""


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """A version, how many runs were evaluated on it, and whether it is the set as it is now."""

    id: int
    size: int
    created_at: datetime
    runs: int
    last_run: int | None


@dataclass(frozen=True, slots=True)
class QuestionDiff:
    """A question that differs. `fields`: name -> (was, is); `keys`: key -> (grade was, grade is).

    None stands for what is not there; of a question that is new or gone, only its text is told.
    """

    question_id: int
    change: str
    text: str
    fields: Mapping[str, tuple[Any, Any]]
    keys: Mapping[str, tuple[int | None, int | None]]


def versions(session: Session, set_name: str, *, limit: int) -> list[VersionSummary]:
    """Return a set's versions, the newest first."""
    query = text("""
        SELECT v.id, v.size, v.created_at, count(r.id) AS runs, max(r.id) AS last_run
        FROM recallwatch.golden_version v
        LEFT JOIN recallwatch.batch b ON b.version_id = v.id
        LEFT JOIN recallwatch.run r ON r.batch_id = b.id
        WHERE v.set_name = :set_name GROUP BY v.id ORDER BY v.id DESC LIMIT :limit
    """)
    rows = session.execute(query, {"set_name": set_name, "limit": limit})
    return [VersionSummary(*row) for row in rows]


_VERSION = "SELECT * FROM recallwatch.golden_item WHERE version_id = :{name}"
_NOW = """
SELECT q.id AS question_id, q.*, coalesce((
        SELECT jsonb_object_agg(key, grade) FROM recallwatch.judgment WHERE question_id = q.id
    ), '{}') AS expected
FROM recallwatch.question q WHERE q.set_name = :set_name AND q.status = 'active'
"""


def diff(session: Session, first: int, second: int | None) -> Iterator[QuestionDiff]:
    """Yield the questions that differ between two versions; None: the active questions now.

    Questions are the same by their id. Raises InputError for a version that is not there, and for
    two of different sets.
    """
    set_name = _set_of(session, first)
    if second is not None and (other := _set_of(session, second)) != set_name:
        raise InputError(
            f"version {first} is of golden set {set_name!r}, version {second} of {other!r}:"
            " see recallwatch golden versions"
        )
    columns = ", ".join(
        f"a.{name} AS was_{name}, b.{name} AS is_{name}" for name in (*FIELDS, "expected")
    )
    differs = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in (*FIELDS, "expected"))
    query = text(f"""
        SELECT coalesce(a.question_id, b.question_id) AS id, {columns}
        FROM ({_VERSION.format(name="first")}) a
        FULL JOIN ({_NOW if second is None else _VERSION.format(name="second")}) b
            USING (question_id)
        WHERE {differs} ORDER BY id
    """)
    values = {"first": first} | ({"set_name": set_name} if second is None else {"second": second})
    for row in session.execute(query, values, execution_options={"yield_per": 1000}):
        yield _diff(row)


def _set_of(session: Session, version_id: int) -> str:
    found = session.get(GoldenVersion, version_id)
    if found is None:
        raise InputError(
            f"there is no golden version {version_id}; see: recallwatch golden versions"
        )
    return found.set_name


def _diff(row: Row[Any]) -> QuestionDiff:
    if row.was_text is None:
        return QuestionDiff(row.id, "added", row.is_text, {}, {})
    if row.is_text is None:
        return QuestionDiff(row.id, "removed", row.was_text, {}, {})
    pairs = {name: (getattr(row, f"was_{name}"), getattr(row, f"is_{name}")) for name in FIELDS}
    was, now = row.was_expected, row.is_expected
    keys = {key: (was.get(key), now.get(key)) for key in sorted({*was, *now})}
    return QuestionDiff(
        row.id,
        "changed",
        row.is_text,
        {name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        {key: pair for key, pair in keys.items() if pair[0] != pair[1]},
    )
