"""What a batch's questions cost to embed, in US dollars, and what they may cost."""

from sqlalchemy import text
from sqlalchemy.orm import Session

_ROUNDING = 1e-9
"""Dollars that sums in another order may differ by."""


def reserve(session: Session, batch_id: int, cost: float) -> bool:
    """Add to what a batch has spent; False, and nothing added, where that is above its cap.

    One statement, so that of requests at once none is let past the cap. Commit before the request
    goes out: what a worker that dies had reserved stays spent, as it may have been billed.
    """
    query = text("""
        UPDATE recallwatch.batch SET spent = spent + :cost
        WHERE id = :id AND coalesce(spent + :cost <= max_cost + :rounding, true)
        RETURNING 1
    """)
    values = {"id": batch_id, "cost": cost, "rounding": _ROUNDING}
    return session.execute(query, values).one_or_none() is not None


def settle(session: Session, batch_id: int, change: float) -> None:
    """Put right what was reserved: `change` is what the request cost more than that."""
    # Not below 0: a sum of roundings may be.
    query = text("""
        UPDATE recallwatch.batch SET spent = greatest(spent + :change, 0) WHERE id = :id
    """)
    session.execute(query, {"id": batch_id, "change": change})


def of_batch(session: Session, batch_id: int) -> tuple[float, float | None]:
    """Return what a batch has spent, and its cap; None: any."""
    query = text("SELECT spent, max_cost FROM recallwatch.batch WHERE id = :id")
    row = session.execute(query, {"id": batch_id}).one()
    return row.spent, row.max_cost


def raise_cap(session: Session, batch_id: int, max_cost: float) -> None:
    """Raise a batch's cap to `max_cost`; a higher one stays, and so does none."""
    query = text("""
        UPDATE recallwatch.batch SET max_cost = :max_cost WHERE id = :id AND max_cost < :max_cost
    """)
    session.execute(query, {"id": batch_id, "max_cost": max_cost})
