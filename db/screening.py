"""What generated questions are held against: those that a set has, and what checking costs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

_ROUNDING = 1e-9
"""Dollars that sums in another order may differ by."""


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


def reserve(session: Session, generation_id: int, cost: float) -> bool:
    """Add to what a generation has spent; False, and nothing added, where that is above its cap.

    One statement, as for its requests: of all that is spent at once, nothing passes the cap.
    """
    query = text("""
        UPDATE recallwatch.generation SET spent = spent + :cost
        WHERE id = :id AND coalesce(spent + :cost <= max_cost + :rounding, true) RETURNING 1
    """)
    values = {"id": generation_id, "cost": cost, "rounding": _ROUNDING}
    return session.execute(query, values).one_or_none() is not None


def settle(session: Session, generation_id: int, change: float) -> None:
    """Put right what was reserved: `change` is what the request cost more than that."""
    # Not below 0: a sum of roundings may be.
    query = text("""
        UPDATE recallwatch.generation SET spent = greatest(spent + :change, 0) WHERE id = :id
    """)
    session.execute(query, {"id": generation_id, "change": change})
