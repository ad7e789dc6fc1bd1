import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from db import exact, migrate, revision
from db.models import SCHEMA, Base
from db.session import Database
from pipeline.errors import PermanentError, TransientError
from tests.integration.db.building import (
    execute,
    fetch,
    import_set,
    questions,
    start_run,
    together,
)

# PostgreSQL 18 also keeps each NOT NULL as a constraint, with a name of its own making.
CONSTRAINTS = """
SELECT conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'recallwatch'::regnamespace AND contype <> 'n'
AND conrelid::regclass::text <> 'recallwatch.alembic_version' ORDER BY 1
"""
INDEXES = """
SELECT indexdef FROM pg_indexes WHERE schemaname = 'recallwatch'
AND tablename <> 'alembic_version' ORDER BY 1
"""
COLUMNS = """
SELECT c.relname || '.' || attname, format_type(atttypid, atttypmod), attnotnull,
    attidentity, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = attrelid AND d.adnum = attnum
WHERE relnamespace = 'recallwatch'::regnamespace AND relkind = 'r' AND attnum > 0
AND relname <> 'alembic_version' ORDER BY 1
"""


@pytest.fixture
def empty(database: str) -> Database:
    return Database(database, pooled=False)


def only_ours(name: str | None, kind: str, _: object) -> bool:
    return name == SCHEMA if kind == "schema" else True


def test_the_newest_file_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(revision.VERSIONS.parent))
    assert ScriptDirectory.from_config(config).get_heads() == [revision.head()]


def test_from_an_empty_database_to_the_head(empty: Database) -> None:
    assert revision.current(empty) is None

    migrate.upgrade(empty)

    assert revision.current(empty) == revision.head() is not None


def test_a_second_upgrade_changes_nothing(empty: Database) -> None:
    migrate.upgrade(empty)
    before = fetch(empty, "SELECT oid FROM pg_class ORDER BY 1")

    migrate.upgrade(empty)

    assert fetch(empty, "SELECT oid FROM pg_class ORDER BY 1") == before


def test_upgrades_that_start_together_run_once(empty: Database) -> None:
    together(*[lambda: migrate.upgrade(empty)] * 4)

    assert fetch(empty, "SELECT version_num FROM recallwatch.alembic_version") == [revision.head()]


def test_down_to_nothing_and_up_again(own_db: Database) -> None:
    def downgrade(connection: Connection) -> None:
        command.downgrade(migrate._config(connection), "base")

    with own_db.connect() as connection:
        downgrade(connection)
    left = fetch(
        own_db, "SELECT relname FROM pg_class WHERE relnamespace = 'recallwatch'::regnamespace"
    )
    migrate.upgrade(own_db)

    assert [name for name in left if not name.startswith("alembic_version")] == []
    assert revision.current(own_db) == revision.head()


def test_an_exact_search_that_was_refused_before_is_known_as_refused(own_db: Database) -> None:
    import_set(own_db, questions(2))
    refused, given_up, searched = (start_run(own_db) for _ in range(3))
    reason = "for 100 questions it would take about 900 seconds, and a task has 300 ([queue] lease)"
    with own_db.begin() as session:
        exact.refuse(session, refused, reason)
        for run_id in (given_up, searched):
            exact.plan(session, run_id, 1, 1)
        exact.give_up(session, given_up, "it was not done by the run's deadline")
    with own_db.connect() as connection:
        command.downgrade(migrate._config(connection), "0003")

    migrate.upgrade(own_db)

    assert fetch(own_db, "SELECT run_id FROM recallwatch.shard WHERE refused") == [refused]


def test_a_judgment_of_before_is_as_old_as_its_question(own_db: Database) -> None:
    import_set(own_db, questions(2))
    execute(own_db, "UPDATE recallwatch.question SET updated_at = '2025-03-02T06:00:00Z'"
                    " WHERE text LIKE '%1%'")  # fmt: skip
    with own_db.connect() as connection:
        command.downgrade(migrate._config(connection), "0004")

    migrate.upgrade(own_db)

    ages = fetch(own_db, "SELECT judged_at = updated_at FROM recallwatch.judgment"
                         " JOIN recallwatch.question ON id = question_id")  # fmt: skip
    assert ages
    assert all(ages)


def test_alembic_finds_no_difference_between_models_and_migrations(db: Database) -> None:
    options = {
        "include_schemas": True,
        "include_name": only_ours,
        "version_table_schema": SCHEMA,
        "compare_type": True,
        "compare_server_default": True,
    }
    with db.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


@pytest.mark.parametrize("catalog", [CONSTRAINTS, INDEXES, COLUMNS])
def test_the_catalog_is_the_same_from_models_and_from_migrations(
    db: Database, empty: Database, catalog: str
) -> None:
    execute(empty, f"CREATE SCHEMA {SCHEMA}")
    Base.metadata.create_all(empty.engine)
    empty.close()

    migrated, modelled = fetch(db, catalog), fetch(empty, catalog)

    assert len(migrated) > 10
    assert migrated == modelled


@pytest.mark.parametrize("blocker", ["the advisory lock", "a table"])
def test_an_upgrade_gives_up_waiting_for_a_lock(
    empty: Database, blocker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(empty, "CREATE SCHEMA recallwatch")
    execute(empty, "CREATE TABLE recallwatch.alembic_version (version_num varchar(32) NOT NULL)")
    statements = {
        "the advisory lock": f"SELECT pg_advisory_xact_lock({migrate.LOCK})",
        "a table": "LOCK TABLE recallwatch.alembic_version",
    }
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "100ms")
    with psycopg.connect(empty.url.set(drivername="postgresql").render_as_string()) as other:
        other.execute(statements[blocker])
        with pytest.raises(TransientError, match="lock timeout"):
            migrate.upgrade(empty)

    migrate.upgrade(empty)
    assert revision.current(empty) == revision.head()


def test_tables_of_a_newer_version_are_left_alone(own_db: Database) -> None:
    execute(own_db, "UPDATE recallwatch.alembic_version SET version_num = '9999'")

    with pytest.raises(PermanentError, match=r"newer recallwatch.*9999"):
        migrate.upgrade(own_db)

    assert revision.current(own_db) == "9999"


def test_the_checkout_may_lie_in_a_folder_with_a_percent_sign(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(migrate.__file__).parent
    folder = tmp_path / "100% of %(here)s"
    shutil.copytree(package, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "__file__", str(folder / "migrate.py"))

    migrate.upgrade(empty)

    assert revision.current(empty) == revision.head() is not None


@pytest.fixture
def role(empty: Database) -> Iterator[str]:
    """Give the name of a role that may connect, and nothing else."""
    name = f"role_of_{empty.url.database}"
    execute(empty, f"CREATE ROLE {name} LOGIN")
    yield name
    execute(empty, f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_role_that_may_not_create_a_schema_is_told_so(empty: Database, role: str) -> None:
    database = Database(empty.url.set(username=role).render_as_string(), pooled=False)

    with pytest.raises(PermanentError, match="permission denied for database"):
        migrate.upgrade(database)


def test_a_role_that_owns_only_the_schema_can_migrate(empty: Database, role: str) -> None:
    execute(empty, f"CREATE SCHEMA {SCHEMA} AUTHORIZATION {role}")
    database = Database(empty.url.set(username=role).render_as_string(), pooled=False)

    migrate.upgrade(database)

    assert revision.current(database) == revision.head()
