"""A corpus database and a model that says what it was asked to embed."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.corpus.loading import LoadReport, load
from pipeline.corpus.reading import Chunk
from pipeline.types import Failure, FloatMatrix

Conn = psycopg.Connection[Any]

CHUNKS = [
    Chunk("a", 0, "Blue whales sing.", tenant="acme", language="en"),
    Chunk("a", 1, "As baleias cantam.", tenant="acme", language="pt-BR"),
    Chunk("https://b.example:80/c", 0, "Whales.", language="xx"),
    Chunk("d", 0, " \n"),
]


class FakeModel:
    """Gives each text a vector of its own, always the same, and remembers the texts.

    Texts in `failing` get a Failure, as a model gives for a text it does not know a word of.
    """

    def __init__(self, dimensions: int = 8) -> None:
        self.dimensions = dimensions
        self.embedded: list[str] = []
        self.failing: set[str] = set()

    def __call__(self, texts: Sequence[str]) -> tuple[FloatMatrix, dict[int, Failure]]:
        self.embedded.extend(texts)
        failures = {n: Failure("unknown") for n, text in enumerate(texts) if text in self.failing}
        return np.stack([self.vector(text) for text in texts]), failures

    def vector(self, text: str) -> FloatMatrix:
        """Return the vector of a text: shape (dimensions,)."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        return np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def conn(database: str) -> Iterator[Conn]:
    """Connect to an empty database, without pgvector, in autocommit mode."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def vector_conn(conn: Conn) -> Conn:
    """Connect to a database with pgvector, for a user's own chunks table."""
    conn.execute("CREATE EXTENSION vector")
    return conn


def load_all(
    conn: Conn,
    chunks: Sequence[Chunk],
    model: FakeModel,
    *,
    name: str = "fake",
    replace: bool = False,
) -> LoadReport:
    model.embedded.clear()
    return load(conn, chunks, model, model=name, dimensions=model.dimensions, replace=replace)


def rows(conn: Conn, columns: bytes) -> list[tuple[Any, ...]]:
    statement = b"SELECT %s FROM recallwatch_corpus.chunks ORDER BY document_id, chunk_index"
    return conn.execute(statement % columns).fetchall()
