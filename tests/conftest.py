"""Fixtures that every kind of test shares: real servers, one database a test, no network."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import pytest_socket
from hypothesis import settings
from psycopg.conninfo import conninfo_to_dict

from cli.embedded.stack import Servers, open_stack
from cli.embedded.status import inspect

REPOSITORY = Path(__file__).parent.parent

# A test is never timed: how long an example takes hangs on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_runtest_setup() -> None:
    """Let tests reach nothing but this machine."""
    pytest_socket.socket_allow_hosts(["127.0.0.1", "localhost", "::1"], allow_unix_socket=True)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own servers, keys and settings out of the tests."""
    for name in list(os.environ):
        if name.startswith("RECALLWATCH_") or name.removesuffix("_FILE") in {
            "DATABASE_URL", "CORPUS_URL", "REDIS_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
            "VOYAGE_API_KEY", "COHERE_API_KEY", "TEI_API_KEY", "SLACK_WEBHOOK_URL",
        }:  # fmt: skip
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def servers(testrun_uid: str) -> Iterator[Servers]:
    """One PostgreSQL and one Valkey for the whole session, shared by pytest's processes.

    Not below pytest's own folder: a second session as root would close it to the servers.
    """
    state_dir = Path(tempfile.gettempdir()) / f"recallwatch-tests-{testrun_uid}"
    with open_stack(state_dir, postgres=True, valkey=True) as stack:
        yield stack.servers
    if inspect(state_dir).postgres is None:  # the last process that used them stopped them
        shutil.rmtree(state_dir)


def at_database(url: str, name: str) -> str:
    """Return the same server's URL with another database."""
    host = conninfo_to_dict(url)["host"]
    return f"postgresql://postgres@/{name}?host={host}"


@pytest.fixture
def database(servers: Servers) -> Iterator[str]:
    """Give the URL of a fresh, empty database."""
    assert servers.database_url is not None
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    yield at_database(servers.database_url, name)
    with psycopg.connect(servers.database_url, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def valkey(servers: Servers, worker_id: str) -> Iterator[str]:
    """Give the URL of an empty Redis database of this pytest process's own."""
    import redis  # noqa: PLC0415 - unit tests need none

    assert servers.redis_url is not None
    number = int(worker_id.removeprefix("gw")) + 1 if worker_id.startswith("gw") else 0
    url = servers.redis_url.replace("db=0", f"db={number}")
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()
