"""A fault of our own database is one clear line of our own, whoever meets it first."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from db import golden, golden_import
from db import session as session_module
from db.session import (
    Database,
    apart,
    driver_connection,
    end_frozen,
    server_version,
    try_lock,
)
from pipeline.errors import PermanentError, TransientError
from pipeline.types import Question
from tests.integration.db.building import SET, execute, fetch, questions
from tests.interrupting import interrupted_after

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def kill_others(db: Database) -> None:
    """End every other connection to the database, as a restart of the server does."""
    execute(db, f"{KILL} AND datname = current_database()")


def test_a_server_that_is_not_there_is_transient(db: Database) -> None:
    nowhere = db.url.update_query_dict({"host": "/nowhere"})

    with (
        pytest.raises(TransientError, match=r"^database /nowhere/t_\w+ does not answer") as caught,
        Database(nowhere.render_as_string()).begin() as session,
    ):
        session.execute(text("SELECT 1"))

    assert "\n" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    database = Database("postgresql://user:canary@127.0.0.1:1/app")

    with pytest.raises(TransientError) as caught, database.connect():
        pass

    assert "canary" not in f"{caught.value} {database.name}"
    assert database.name == "127.0.0.1/app"


def test_a_connection_lost_in_a_statement_is_transient(db: Database) -> None:
    def lose() -> None:
        with db.begin() as session:
            session.execute(text("SELECT 1"))
            kill_others(db)
            session.execute(text("SELECT 1"))

    with pytest.raises(TransientError):
        lose()


def test_a_connection_lost_in_a_copy_is_transient(db: Database) -> None:
    def file() -> Iterator[Question]:
        yield from questions(1)
        kill_others(db)
        # More than the client buffers, so that it meets the closed connection.
        for number in range(100):
            yield Question(text=f"{number} " + "x" * 100_000, expected={"d:0": 1})

    with (
        pytest.raises(TransientError, match=rf"^database .*{db.url.database}\b") as caught,
        db.begin() as session,
    ):
        golden_import.import_questions(session, SET, file())

    assert "\n" not in str(caught.value)
    assert fetch(db, "SELECT * FROM recallwatch.question") == []


def test_a_copy_that_the_server_cancels_is_transient(db: Database) -> None:
    def slow_file() -> Iterator[Question]:
        yield from questions(1)
        time.sleep(0.3)

    def import_slowly() -> None:
        with db.begin() as session:
            session.execute(text("SET LOCAL statement_timeout = '100ms'"))
            golden_import.import_questions(session, SET, slow_file())

    with pytest.raises(TransientError, match="canceling statement due to statement timeout"):
        import_slowly()


def test_missing_tables_say_which_command_makes_them(database: str) -> None:
    empty = Database(database, pooled=False)

    with pytest.raises(PermanentError, match="run: recallwatch migrate"), empty.begin() as session:
        golden.sets(session)


def test_a_role_without_the_right_is_told_so(own_db: Database) -> None:
    role = f"reader_of_{own_db.url.database}"
    execute(own_db, f"CREATE ROLE {role} LOGIN")
    reader = Database(own_db.url.set(username=role).render_as_string(), pooled=False)

    with (
        pytest.raises(PermanentError, match="permission denied for schema recallwatch; grant"),
        reader.begin() as session,
    ):
        golden.sets(session)

    execute(own_db, f"DROP ROLE {role}")


def test_what_our_own_code_does_wrong_is_not_dressed_up(db: Database) -> None:
    with pytest.raises(IntegrityError):
        execute(db, "INSERT INTO recallwatch.judgment VALUES (1, 'd:0', 1)")


def test_an_error_undoes_the_transaction(db: Database) -> None:
    def half() -> None:
        with db.begin() as session:
            golden_import.import_questions(session, SET, questions(1))
            raise KeyError("half-way")

    with pytest.raises(KeyError):
        half()

    assert fetch(db, "SELECT * FROM recallwatch.question") == []


def test_a_pooled_connection_that_the_server_closed_is_replaced(url: str) -> None:
    pooled = Database(url)
    execute(pooled, "SELECT 1")
    kill_others(Database(url, pooled=False))

    assert fetch(pooled, "SELECT 1") == [1]
    pooled.close()


def test_a_lock_is_had_by_one_until_its_transaction_ends(db: Database) -> None:
    with db.begin() as first:
        assert try_lock(first, 7)
        with db.begin() as second:
            assert not try_lock(second, 7)
    with db.begin() as third:
        assert try_lock(third, 7)


def test_the_servers_version_is_known(db: Database) -> None:
    assert server_version(db) >= 15
    with db.connect() as connection:
        assert driver_connection(connection).info.dbname == db.url.database


def test_a_frozen_worker_does_not_keep_its_locks(db: Database) -> None:
    worker = Database(db.url.render_as_string(hide_password=False), pooled=False, idle_limit=1)

    def freeze() -> None:
        with worker.begin() as session:
            session.execute(text("SELECT pg_advisory_xact_lock(7)"))
            wait_until_free(db, 7)
            session.execute(text("SELECT 1"))

    with pytest.raises(TransientError, match="idle-in-transaction timeout"):
        freeze()


def test_a_sweep_that_is_frozen_does_not_keep_others_from_sweeping(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "IDLE_LIMIT", 1)

    def freeze() -> None:
        with db.begin() as session:
            assert try_lock(session, 7)
            wait_until_free(db, 7)
            session.execute(text("SELECT 1"))

    with pytest.raises(TransientError, match="idle-in-transaction timeout"):
        freeze()


def wait_until_free(db: Database, key: int) -> None:
    """Wait in another transaction for the lock of one that does nothing."""
    with db.begin() as session:
        session.execute(text("SET LOCAL lock_timeout = '20s'"))
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


COPY = "COPY recallwatch.result (run_id, position) FROM STDIN"


def test_a_worker_frozen_in_the_middle_of_a_copy_loses_its_connection(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "IDLE_LIMIT", 1)
    frozen = db.engine.raw_connection()
    driver = frozen.driver_connection
    assert driver is not None
    driver.pgconn.exec_(COPY.encode())
    with db.begin() as session:
        assert end_frozen(session) == [], "it may only be slow"
    time.sleep(1.1)

    with db.begin() as session:
        assert end_frozen(session) == [driver.info.backend_pid]
    frozen.invalidate()


def test_a_worker_that_takes_no_result_any_more_loses_its_connection(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "IDLE_LIMIT", 1)
    frozen = db.engine.raw_connection()
    driver = frozen.driver_connection
    assert driver is not None
    driver.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 100)")
    time.sleep(1.5)

    with db.begin() as session:
        assert end_frozen(session) == [driver.info.backend_pid]
    frozen.invalidate()


BACKEND = "SELECT pg_backend_pid()"


class TimeIsUpError(Exception):
    """As Celery's soft time limit: raised by a signal, in the middle of whatever runs."""


def test_a_time_limit_within_a_statement_is_what_is_raised_and_frees_its_locks(
    db: Database,
) -> None:
    url = db.url.render_as_string(hide_password=False)
    worker = Database(url, pooled=False, idle_limit=60)

    def take_too_long() -> None:
        with worker.begin() as session:
            session.execute(text("SELECT pg_advisory_xact_lock(7)"))
            session.execute(text("SELECT pg_sleep(60)"))

    with pytest.raises(TimeIsUpError), interrupted_after(0.5, TimeIsUpError):
        take_too_long()

    wait_until_free(db, 7)
    with db.begin() as session:
        assert try_lock(session, 7)


def test_a_server_that_takes_no_writes_is_transient_and_left(db: Database) -> None:
    pooled = Database(db.url.render_as_string(hide_password=False))
    [before] = fetch(pooled, BACKEND)

    def write() -> None:
        with pooled.begin() as session:
            session.execute(text("SET TRANSACTION READ ONLY"))
            session.execute(text("CREATE TABLE t ()"))

    with pytest.raises(TransientError, match=r"takes no writes .* has to lead to the primary"):
        write()
    [after] = fetch(pooled, BACKEND)
    assert after != before
    pooled.close()


def test_what_fails_apart_leaves_the_rest_as_it_is(db: Database) -> None:
    execute(db, "CREATE TABLE kept (n int)")
    with db.begin() as session:
        session.execute(text("INSERT INTO kept VALUES (1)"))
        with suppress(ZeroDivisionError), apart(session):
            session.execute(text("INSERT INTO kept VALUES (2)"))
            raise ZeroDivisionError
        session.execute(text("INSERT INTO kept VALUES (3)"))

    assert fetch(db, "SELECT n FROM kept ORDER BY n") == [1, 3]


def test_connections_say_whose_they_are(db: Database) -> None:
    (name,) = fetch(db, "SELECT current_setting('application_name')")

    assert name.startswith(f"recallwatch {os.getpid()}@")
