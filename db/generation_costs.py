"""What a generation spends: reserved before a request goes out, and put right after it."""

from sqlalchemy import text
from sqlalchemy.orm import Session

_ROUNDING = 1e-9
"""Dollars that sums in another order may differ by."""


def reserve(session: Session, generation_id: int, cost: float) -> bool:
    """Add to what a generation has spent; False, and nothing added, where that is above its cap.

    One statement: of all that is spent at once, nothing passes the cap.
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
