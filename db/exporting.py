"""What an export has to know of all questions of a golden set before it writes the first."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from db.session import driver_connection
from pipeline.golden.fingerprint import text_hash

# One who names questions appends underscores to a number that is taken; all such names count.
_TAKEN = """
SELECT named.external_id FROM {questions} named JOIN {questions} unnamed
    ON unnamed.external_id IS NULL AND rtrim(named.external_id, '_') = unnamed.{number}::text
"""

_ACTIVE = "(SELECT * FROM recallwatch.question WHERE set_name = :name AND status = 'active')"
_OF_VERSION = "(SELECT * FROM recallwatch.golden_item WHERE version_id = :id)"


def taken_names(session: Session, set_name: str) -> set[str]:
    """Return the external ids of a set's active questions that name another's number.

    They are what `pipeline.golden.writers.naming.name_of` needs, and few in any set.
    """
    query = text(_TAKEN.format(questions=_ACTIVE, number="id"))
    return set(session.scalars(query, {"name": set_name}))


def taken_names_of_version(session: Session, version_id: int) -> set[str]:
    """Return the same of the questions of a version, which a run was evaluated on."""
    query = text(_TAKEN.format(questions=_OF_VERSION, number="question_id"))
    return set(session.scalars(query, {"id": version_id}))


_SHARED = """
SELECT coalesce(sum(n), 0)::bigint FROM (
    SELECT count(*) AS n FROM exported GROUP BY text_hash
    HAVING count(*) > 1 AND NOT bool_and(named)
) AS alike
"""


def count_shared_texts(session: Session, set_name: str) -> int:
    """Count the active questions whose text and tenant another one has, as import compares them.

    Those that all have an external id do not count: they are different questions to an import.
    The server holds the hashes, in a table until the end of the transaction.
    """
    session.execute(
        text("CREATE TEMPORARY TABLE exported (text_hash text, named boolean) ON COMMIT DROP")
    )
    query = text(f"SELECT text, tenant, external_id IS NOT NULL AS named FROM {_ACTIVE} q")
    rows = session.execute(query, {"name": set_name}, execution_options={"yield_per": 5_000})
    for some in rows.partitions():
        with (
            driver_connection(session).cursor() as cursor,
            cursor.copy("COPY exported (text_hash, named) FROM STDIN") as copy,
        ):
            for row in some:
                copy.write_row((text_hash(row.text, row.tenant), row.named))
    return int(session.execute(text(_SHARED)).scalar_one())
