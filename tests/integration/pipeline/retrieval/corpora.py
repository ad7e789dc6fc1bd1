"""Corpora of a user's own making: a table and columns with names that need quoting."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg import sql

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.retrieval.session import CorpusSession
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking, make_key

NAMES = CorpusSettings(
    table="Passages",
    document_id="doc",
    chunk_index="Part",
    content="body",
    embedding="vec",
    tenant="customer",
    text_search="order",
)

_TABLE = sql.SQL("""
CREATE TABLE "Passages" (
    doc text, "Part" int, body text, customer text, vec vector{modifier},
    "order" tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)""")

_HNSW = 'CREATE INDEX "Passages_vec" ON "Passages" USING hnsw (vec vector_cosine_ops)'


@dataclass(frozen=True)
class Passage:
    """One chunk; what a test does not care about has a default."""

    document_id: str
    chunk_index: int = 0
    body: str = ""
    customer: str | None = None
    vector: Sequence[float] | NDArray[np.float32] | None = None

    @property
    def key(self) -> str:
        return make_key(self.document_id, self.chunk_index)


def fill(
    conn: psycopg.Connection[Any],
    passages: Iterable[Passage],
    settings: CorpusSettings = NAMES,
    *,
    hnsw: int | None = None,
) -> CorpusTable:
    """Create the table with these passages; `hnsw`: the vectors' length, to index them."""
    register_vector(conn)
    modifier = sql.SQL("") if hnsw is None else sql.SQL("({})").format(hnsw)
    conn.execute(_TABLE.format(modifier=modifier))
    copying = 'COPY "Passages" (doc, "Part", body, customer, vec) FROM STDIN (FORMAT BINARY)'
    with conn.cursor() as cursor, cursor.copy(copying) as copy:
        copy.set_types(["text", "int4", "text", "text", "vector"])
        for one in passages:
            vector = None if one.vector is None else Vector(np.asarray(one.vector, np.float32))
            copy.write_row((one.document_id, one.chunk_index, one.body, one.customer, vector))
    if hnsw is not None:
        conn.execute(_HNSW)
    conn.execute('VACUUM ANALYZE "Passages"')
    return describe(conn, settings)


def clustered(count: int, dimensions: int, seed: int = 1) -> FloatMatrix:
    """Draw vectors around a few centres, as embeddings of texts on a few topics are."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((20, dimensions))
    noise = rng.standard_normal((count, dimensions))
    return (centres[rng.integers(0, 20, size=count)] + noise).astype(np.float32)


def with_vectors(vectors: FloatMatrix, customers: Sequence[str | None] = (None,)) -> list[Passage]:
    """Make passages of vectors, five to a document; customers take turns."""
    return [
        Passage(f"doc-{n // 5}", n % 5, customer=customers[n % len(customers)], vector=vector)
        for n, vector in enumerate(vectors)
    ]


def questions(
    *,
    vectors: FloatMatrix | None = None,
    texts: Sequence[str] = (),
    tenants: Sequence[str | None] = (),
    languages: Sequence[str | None] = (),
) -> QueryBatch:
    """Make a batch; the columns not given are blank."""
    count = len(texts) if vectors is None else len(vectors)
    nothing = [None] * count
    return QueryBatch(
        texts=texts or [""] * count,
        tenants=tenants or nothing,
        languages=languages or nothing,
        vectors=vectors,
    )


def ranked(answers: Iterable[Ranking | Failure]) -> list[Ranking]:
    """Return the answers, all of them rankings."""
    rankings = []
    for answer in answers:
        assert isinstance(answer, Ranking), answer
        rankings.append(answer)
    return rankings


def plan(
    session: CorpusSession,
    statement: sql.Composed,
    parameters: Mapping[str, object],
    settings: Mapping[str, str] | None = None,
) -> str:
    """Return the plan that the server makes for a search under its settings."""
    rows = session.fetch(sql.SQL("EXPLAIN ") + statement, parameters, settings=settings)
    return "\n".join(line for (line,) in rows)
