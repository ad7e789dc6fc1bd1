"""Open what a command needs: the embedded servers where none are configured, and a context."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from cli.context import Context
from cli.embedded.stack import Stack, open_stack
from pipeline.errors import UsageError
from pipeline.settings import Settings

if TYPE_CHECKING:
    from db.session import Database
    from workers.context import Context as WorkContext


@dataclass(frozen=True, slots=True)
class Opened:
    """A running stack and the connections to it."""

    stack: Stack
    work: "WorkContext"


@contextmanager
def open_stack_for(context: Context) -> Iterator[tuple[Stack, Settings]]:
    """Start the embedded servers that the settings leave open, and say where they are.

    The URLs also go into the environment: Celery's app and the worker processes read them there,
    as they would read those of servers that the user runs.
    """
    settings = context.settings
    embedded = {"postgres": settings.database_url is None, "valkey": settings.redis_url is None}
    with open_stack(settings.state_dir, **embedded) as stack:
        urls = {"database_url": stack.servers.database_url, "redis_url": stack.servers.redis_url}
        found = {name: SecretStr(url) for name, url in urls.items() if url is not None}
        for name, url in found.items():
            os.environ[name.upper()] = url.get_secret_value()
        if context.loaded.file is not None:
            os.environ["RECALLWATCH_CONFIG"] = str(context.loaded.file.resolve())
        yield stack, settings.model_copy(update=found)


@contextmanager
def open_servers(context: Context) -> Iterator[Opened]:
    """Do the same, with the database brought up to date (embedded) or checked (the user's own)."""
    with open_stack_for(context) as (stack, settings):
        from workers.context import Context as WorkContext

        work = WorkContext(settings)
        try:
            bring_up_to_date(work.database, ours=stack.servers.database_url is not None)
            yield Opened(stack, work)
        finally:
            work.close()


def bring_up_to_date(database: "Database", *, ours: bool) -> None:
    """Run the migrations that our own database lacks; raises UsageError where a user's lacks some.

    `ours`: the embedded server's, which is nobody else's to look after.
    """
    from db import revision

    if revision.current(database) == revision.head():
        return
    if not ours:
        raise UsageError(
            f"database {database.name} is not at this version's tables; run: recallwatch migrate"
        )
    from db import migrate

    migrate.upgrade(database)
