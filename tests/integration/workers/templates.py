"""Databases to copy from: our tables, a corpus and a golden set over it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from cli.embedded.stack import Servers
from db.session import Database
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.types import FloatMatrix, Question
from tests.conftest import at_database
from tests.integration.conftest import copy_of
from tests.integration.db.building import import_set
from tests.integration.workers.working import DIMENSIONS


def _embed_nothing(texts: object) -> tuple[FloatMatrix, dict[int, Any]]:
    raise AssertionError(f"every chunk brings its vector: {texts}")


@contextmanager
def filled(
    servers: Servers, migrated_template: str, chunks: Iterable[Chunk], golden: Iterable[Question]
) -> Iterator[str]:
    """Give the name of a database that holds the chunks, each with its vector, and the set."""
    assert servers.database_url is not None
    with copy_of(servers, migrated_template) as name:
        url = at_database(servers.database_url, name)
        with psycopg.connect(url, autocommit=True) as conn:
            load(conn, chunks, _embed_nothing, model="none", dimensions=DIMENSIONS)
        database = Database(url)
        import_set(database, golden)
        database.close()
        yield name
