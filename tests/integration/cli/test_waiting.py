"""A command that waits for runs ends, whatever the servers do."""

import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from cli import waiting
from cli.waiting import Waiter
from db.session import Database
from pipeline.errors import UnmeasuredError
from pipeline.settings import Settings
from tests.integration.db.building import import_set, questions, start_run
from tests.loopback.proxy import FreezableProxy
from workers.context import Context


@pytest.fixture
def proxy(url: str) -> Iterator[FreezableProxy]:
    folder = parse_qs(urlsplit(url).query)["host"][0]
    with FreezableProxy(f"{folder}/.s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def ctx(url: str, valkey: str, proxy: FreezableProxy) -> Iterator[Context]:
    parts = urlsplit(url)
    through = f"postgresql://{parts.username}@127.0.0.1:{proxy.port}{parts.path}"
    context = Context(Settings(database_url=SecretStr(through), redis_url=SecretStr(valkey)))
    yield context
    context.close()


def test_a_database_that_freezes_does_not_hold_a_command_for_ever(
    ctx: Context, db: Database, proxy: FreezableProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_set(db, questions(4))
    run_id = start_run(db)
    monkeypatch.setattr(waiting, "FROZEN_AFTER", 1)
    waiter = Waiter(ctx, [run_id], revive=None, timeout=1)
    ctx.database.engine.connect().close()
    proxy.freeze()
    began = time.monotonic()

    with pytest.raises(UnmeasuredError, match=f"; run {run_id} goes on when workers run"):
        waiter.wait("evaluating")

    assert time.monotonic() - began < 30
    proxy.thaw()
