"""Projects to run commands in: on the embedded stack, or on a database of the session's server."""

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cli.embedded.stack import Servers, open_stack
from db import migrate
from db.session import Database
from tests.acceptance.command import Project
from tests.conftest import at_database


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a fresh folder; what still runs for it in the end is killed."""
    with _fresh_folder() as folder:
        yield folder


@pytest.fixture
def fresh(folder: Path) -> Project:
    """Give a project in which nothing was done yet: the embedded stack serves it."""
    return Project(folder)


@pytest.fixture(scope="module")
def project(servers: Servers) -> Iterator[Project]:
    """Give a module's tests one standing project."""
    with standing_project(servers) as project:
        yield project


@contextmanager
def standing_project(
    servers: Servers, environment: Mapping[str, str] | None = None
) -> Iterator[Project]:
    """Give a project with a database of its own on the session's server.

    Its queue, and its workers once a command has started them, stay until the end.
    """
    with _fresh_folder() as folder, fresh_database(servers) as url:
        project = Project(folder, {"DATABASE_URL": url} | dict(environment or {}))
        migrate.upgrade(Database(url, pooled=False))
        with open_stack(project.state, postgres=False, valkey=True):
            yield project


@contextmanager
def fresh_database(servers: Servers) -> Iterator[str]:
    """Give the URL of an empty database of the session's server."""
    assert servers.database_url is not None
    name = f"a_{uuid.uuid4().hex}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    yield at_database(servers.database_url, name)
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def _fresh_folder() -> Iterator[Path]:
    # Not pytest's own: another session of it takes away the right to look into them, which the
    # account that PostgreSQL runs under for root needs.
    folder = Path(tempfile.mkdtemp(prefix="acceptance-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        Project(folder).kill_processes()
        shutil.rmtree(folder, ignore_errors=True)
