"""At which revision the tables are, and which one this code knows: asked by every command.

Without Alembic, which takes a tenth of a second to load: `db.migrate` has it, for those that have
something to do.
"""

from pathlib import Path

from sqlalchemy import Connection, text

from db.models import SCHEMA
from db.session import Database

VERSIONS = Path(__file__).parent / "migrations" / "versions"


def head() -> str:
    """Return the newest revision that this code knows; a revision's file begins with its number."""
    return max(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py"))


def current(database: Database) -> str | None:
    """Return the revision that the database stands at, or None where there is none."""
    with database.connect() as connection:
        return read(connection)


def read(connection: Connection) -> str | None:
    """Do the same with a connection that is open."""
    table = f"{SCHEMA}.alembic_version"
    if connection.execute(text("SELECT to_regclass(:table)"), {"table": table}).scalar() is None:
        return None
    revision: str | None = connection.execute(text(f"SELECT version_num FROM {table}")).scalar()
    return revision
