"""A connection to a fresh database with pgvector."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest


@pytest.fixture
def conn(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        yield connection
