"""Databases with our tables in them, migrated once.

Most tests share one that is emptied before each: a copy takes a tenth of a second of the processor,
which tests of a few milliseconds would spend two hundred times. A test that changes more than rows
takes a copy of its own.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from cli.embedded.stack import Servers
from db import migrate
from db.session import Database
from tests.conftest import at_database

EMPTY = """
SET lock_timeout = '5s';
DELETE FROM recallwatch.result; DELETE FROM recallwatch.shard; DELETE FROM recallwatch.run;
DELETE FROM recallwatch.schedule_slot; DELETE FROM recallwatch.seen_schedule;
DELETE FROM recallwatch.batch; DELETE FROM recallwatch.calibration;
DELETE FROM recallwatch.golden_version;
DELETE FROM recallwatch.edit; DELETE FROM recallwatch.generation;
DELETE FROM recallwatch.question; DELETE FROM recallwatch.evidence;
DELETE FROM recallwatch.side_vector
"""


@contextmanager
def copy_of(servers: Servers, template: str) -> Iterator[str]:
    """Give the name of a database copied from a template, to which nobody may be connected."""
    assert servers.database_url is not None
    name = f"t_{uuid.uuid4().hex}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
        sql.Identifier(name), sql.Identifier(template)
    )
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(create)
    try:
        yield name
    finally:
        with psycopg.connect(servers.database_url, autocommit=True) as admin:
            admin.execute(drop)


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """Give a database; close its connections in the end."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture(scope="session")
def migrated_template(servers: Servers) -> Iterator[str]:
    """Give the name of a database with our tables, empty, to copy from."""
    assert servers.database_url is not None
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        # These data need not survive a loss of power: dropping a database waits for the disk.
        admin.execute("ALTER SYSTEM SET fsync = off")
        admin.execute("SELECT pg_reload_conf()")
    with copy_of(servers, "template1") as name:
        with opened(at_database(servers.database_url, name)) as database:
            migrate.upgrade(database)
        yield name


@pytest.fixture(scope="session")
def shared_url(servers: Servers, migrated_template: str) -> Iterator[str]:
    """Give the URL of the database that tests of this process share."""
    assert servers.database_url is not None
    with copy_of(servers, migrated_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def emptied_url(shared_url: str) -> str:
    """Give the same URL, with no row in any of our tables."""
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute(EMPTY)
    return shared_url


@pytest.fixture
def url(emptied_url: str) -> str:
    """Give the URL of a database with our tables, empty; a folder of tests may give another."""
    return emptied_url


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """Give the same database, opened."""
    with opened(url) as database:
        yield database


@pytest.fixture
def own_db(servers: Servers, migrated_template: str) -> Iterator[Database]:
    """Give a copy that is the test's own, to change its tables, its settings or its roles."""
    assert servers.database_url is not None
    with (
        copy_of(servers, migrated_template) as name,
        opened(at_database(servers.database_url, name)) as database,
    ):
        yield database
