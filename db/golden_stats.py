"""What a golden set is made of, counted in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from pipeline.types import Status

GROUPED_BY = ("source", "kind", "category", "tenant", "language")

AGES = (90, 180, 365)
"""Days; judgments older than each are counted."""


@dataclass(frozen=True, slots=True)
class Judgments:
    """The judgments of a set's active questions.

    `graded`: of another grade than 0 and 1. `with_evidence`: it is known what text was judged.
    `older_than` maps days to how many are older; oldest, median and newest are None without any.
    """

    count: int
    graded: int
    with_evidence: int
    oldest: datetime | None
    median: datetime | None
    newest: datetime | None
    older_than: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class SetStats:
    """A golden set in numbers of questions; all but `by_status` are of the active ones.

    `groups` maps a column to value -> questions, the largest first; None stands for no value.
    `one_key` expect exactly one relevant chunk. `reviewed`: a person has accepted them;
    `unreviewed_synthetic`: nobody has, and a model wrote them.
    """

    set_name: str
    by_status: Mapping[str, int]
    groups: Mapping[str, Mapping[str | None, int]]
    answerable: int
    must_pass: int
    one_key: int
    reviewed: int
    unreviewed_synthetic: int
    judgments: Judgments

    @property
    def active(self) -> int:
        """Questions that the next version holds."""
        return self.by_status.get(Status.ACTIVE, 0)


_ACTIVE = "FROM recallwatch.question q WHERE q.set_name = :set_name AND q.status = 'active'"
_ONE_KEY = """
(SELECT count(*) FROM recallwatch.judgment j WHERE j.question_id = q.id AND j.grade >= 1) = 1
"""


def of_set(session: Session, set_name: str) -> SetStats | None:
    """Count a set; None: it has no question of any status."""
    by_status = _by_status(session, set_name)
    if not by_status:
        return None
    query = text(f"""
        SELECT count(*) FILTER (WHERE kind = 'answerable') AS answerable,
            count(*) FILTER (WHERE must_pass) AS must_pass,
            count(*) FILTER (WHERE {_ONE_KEY}) AS one_key,
            count(*) FILTER (WHERE reviewed_at IS NOT NULL) AS reviewed,
            count(*) FILTER (WHERE reviewed_at IS NULL AND source = 'synthetic') AS unreviewed
        {_ACTIVE}
    """)
    row = session.execute(query, {"set_name": set_name}).one()
    return SetStats(
        set_name=set_name,
        by_status=by_status,
        groups={column: _by(session, set_name, column) for column in GROUPED_BY},
        answerable=row.answerable,
        must_pass=row.must_pass,
        one_key=row.one_key,
        reviewed=row.reviewed,
        unreviewed_synthetic=row.unreviewed,
        judgments=_judgments(session, set_name),
    )


def _by_status(session: Session, set_name: str) -> dict[str, int]:
    query = text("""
        SELECT status, count(*) AS n FROM recallwatch.question WHERE set_name = :set_name
        GROUP BY status ORDER BY n DESC, status
    """)
    return {row.status: row.n for row in session.execute(query, {"set_name": set_name})}


def _by(session: Session, set_name: str, column: str) -> dict[str | None, int]:
    query = text(f"SELECT q.{column} AS name, count(*) AS n {_ACTIVE}"
                 " GROUP BY 1 ORDER BY n DESC, name")  # fmt: skip
    return {row.name: row.n for row in session.execute(query, {"set_name": set_name})}


def _judgments(session: Session, set_name: str) -> Judgments:
    older = ", ".join(
        f"count(*) FILTER (WHERE judged_at < now() - interval '{days} days') AS older_{days}"
        for days in AGES
    )
    query = text(f"""
        SELECT count(*) AS n, count(*) FILTER (WHERE grade NOT IN (0, 1)) AS graded,
            count(evidence_hash) AS with_evidence, min(judged_at) AS oldest,
            percentile_disc(0.5) WITHIN GROUP (ORDER BY judged_at) AS median,
            max(judged_at) AS newest, {older}
        FROM recallwatch.judgment WHERE question_id IN (SELECT q.id {_ACTIVE})
    """)
    row = session.execute(query, {"set_name": set_name}).one()
    return Judgments(
        count=row.n,
        graded=row.graded,
        with_evidence=row.with_evidence,
        oldest=row.oldest,
        median=row.median,
        newest=row.newest,
        older_than={days: getattr(row, f"older_{days}") for days in AGES},
    )


def only_keys(session: Session, set_name: str) -> Sequence[tuple[int, str, str | None]]:
    """Return (question, key, tenant) of the active questions with exactly one relevant chunk."""
    query = text(f"""
        SELECT q.id, (SELECT key FROM recallwatch.judgment j
                      WHERE j.question_id = q.id AND j.grade >= 1) AS key, q.tenant
        {_ACTIVE} AND {_ONE_KEY} ORDER BY q.id
    """)
    return [(row.id, row.key, row.tenant) for row in session.execute(query, {"set_name": set_name})]


def expected_of(session: Session, question_ids: Sequence[int]) -> dict[int, set[str]]:
    """Return the keys that the questions have a judgment of, relevant or not."""
    query = text("""
        SELECT question_id, array_agg(key) AS keys FROM recallwatch.judgment
        WHERE question_id = ANY(:ids) GROUP BY question_id
    """)
    rows = session.execute(query, {"ids": list(question_ids)})
    return {row.question_id: set(row.keys) for row in rows}
