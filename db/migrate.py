"""Bring the schema up to date.

Migrations run under an advisory lock, so two that start together run once, and with a lock
timeout, so one that waits behind a long query gives up instead of blocking every query after it.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text

from db import revision
from db.session import Database
from pipeline.errors import PermanentError

LOCK = 0x7265_6361_6C6C
"""Key of the advisory lock: "recall" in ASCII."""

LOCK_TIMEOUT = "10s"


def upgrade(database: Database) -> None:
    """Run the migrations that are missing, all in one transaction.

    Raises TransientError when the server does not answer or a lock is not had in 10 seconds,
    PermanentError when a newer recallwatch made the tables or the role may not make them.
    """
    with database.connect() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        if revision.read(connection) != revision.head():
            try:
                command.upgrade(_config(connection), "head")
            except CommandError as error:
                raise PermanentError(
                    f"the tables in database {database.name} are of a newer recallwatch ({error});"
                    " update this one"
                ) from error


def _config(connection: Connection) -> Config:
    folder = Path(__file__).parent / "migrations"
    config = Config()
    # Alembic reads a % as the start of a variable's name.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
