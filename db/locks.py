"""The lock of a golden set: whoever adds or changes its questions waits for it first."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def lock_set(session: Session, set_name: str) -> None:
    """Have a set's questions to oneself until the transaction ends; to take it twice is no harm.

    Take it before the rows of any question, and after that of a generation: two who wait for each
    other would both be late.
    """
    session.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(:set_name, 0))"),
        {"set_name": set_name},
    )
