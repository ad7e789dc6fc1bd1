"""Databases with our tables in them: migrated once, copied for each test."""

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


@contextmanager
def copy_of(servers: Servers, template: str) -> Iterator[str]:
    """Give the name of a database copied from a template, to which nobody may be connected."""
    assert servers.database_url is not None
    name = sql.Identifier(f"t_{uuid.uuid4().hex}")
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template))
        )
    yield name.as_string().strip('"')
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture(scope="session")
def migrated_template(servers: Servers) -> Iterator[str]:
    """Give the name of a database with our tables, empty, to copy from."""
    assert servers.database_url is not None
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        # These data need not survive a loss of power: dropping a database waits for the disk.
        admin.execute("ALTER SYSTEM SET fsync = off")
        admin.execute("SELECT pg_reload_conf()")
    with copy_of(servers, "template1") as name:
        migrate.upgrade(Database(at_database(servers.database_url, name), pooled=False))
        yield name


@pytest.fixture
def url(servers: Servers, migrated_template: str) -> Iterator[str]:
    """Give the URL of a test's own database, with our tables in it."""
    assert servers.database_url is not None
    with copy_of(servers, migrated_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """Give the same database, opened."""
    database = Database(url)
    yield database
    database.close()
