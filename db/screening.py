"""What generated questions are held against: the questions that a set has."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

_PAGE = 2_000
"""Questions read at a time."""


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question of a set, whatever became of it; `keys` are those graded relevant."""

    id: int
    text: str
    tenant: str | None
    language: str | None
    keys: Sequence[str] = ()


def known(
    session: Session, set_name: str, tenants: Collection[str | None], *, after: int, limit: int
) -> list[KnownQuestion]:
    """Return the questions of these tenants, None being those of no tenant, with ids above `after`.

    Rejected and retired ones too: what a person refused is not to be proposed again.
    """
    query = text("""
        SELECT id, text, tenant, language FROM recallwatch.question
        WHERE set_name = :set_name AND id > :after
          AND (tenant = ANY(:tenants) OR tenant IS NULL AND :without)
        ORDER BY id LIMIT :limit
    """)
    values = {
        "set_name": set_name, "after": after, "limit": limit, "without": None in tenants,
        "tenants": [tenant for tenant in tenants if tenant is not None],
    }  # fmt: skip
    return [KnownQuestion(*row) for row in session.execute(query, values)]


def newest(session: Session, set_name: str) -> int:
    """Return the id of the question that a set got last; 0 where it has none."""
    query = text("SELECT coalesce(max(id), 0) FROM recallwatch.question WHERE set_name = :set_name")
    newest_id: int = session.execute(query, {"set_name": set_name}).scalar_one()
    return newest_id


def added(
    session: Session, set_name: str, tenants: Collection[str | None], *, after: int
) -> Iterator[KnownQuestion]:
    """Yield what `known` returns, in flat memory.

    Under the set's lock that is all it got since its `newest` was asked: who adds questions holds
    the lock until they are there, so that none turns up with a lower id.
    """
    while page := known(session, set_name, tenants, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def answered(session: Session, set_name: str, limit: int) -> list[KnownQuestion]:
    """Return active answerable questions with their relevant keys, those of a set changed last."""
    query = text("""
        SELECT q.id, q.text, q.tenant, q.language, array_agg(j.key)
        FROM recallwatch.question q JOIN recallwatch.judgment j ON j.question_id = q.id
        WHERE q.set_name = :set_name AND q.status = 'active' AND q.kind = 'answerable'
          AND j.grade >= 1
        GROUP BY q.id ORDER BY q.id DESC LIMIT :limit
    """)
    rows = session.execute(query, {"set_name": set_name, "limit": limit})
    return [KnownQuestion(*row) for row in rows]
