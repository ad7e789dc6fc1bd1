"""Whole documents of the corpus, as their chunks in order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.liveness import of_documents
from pipeline.corpus.table import CorpusTable

CHUNKS_PER_FETCH = 1000

_NUMBERS = {"smallint", "integer", "bigint", "numeric"}

# A hash of seed and id orders the documents: it draws the same ones on every server.
_DRAWN = sql.SQL("""
SELECT document FROM (SELECT DISTINCT {document}::text AS document FROM {relation} AS chunk) AS each
ORDER BY md5(CAST(%(seed)s AS text) || ' ' || document) COLLATE "C", document COLLATE "C"
LIMIT CAST(%(limit)s AS bigint)
""")

_CHUNKS = sql.SQL("""
SELECT {document}::text, {tenant}, {index}::text, coalesce({content}::text, '')
FROM {relation} AS chunk WHERE {condition}
ORDER BY {tenant} COLLATE "C", {document}::text COLLATE "C", {order}
""")


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """A document of a tenant (None: of nobody) as the texts of its chunks, in order."""

    document_id: str
    tenant: str | None
    chunks: Sequence[str]


@corpus_errors("draw documents from the corpus")
def draw_documents(
    conn: psycopg.Connection[Any], table: CorpusTable, *, limit: int | None, seed: int
) -> list[str]:
    """Return the ids of so many documents (None: all), in an order that the seed decides."""
    pieces = {"document": table.column("document_id", "chunk"), "relation": table.relation}
    rows = conn.execute(_DRAWN.format(**pieces), {"limit": limit, "seed": str(seed)})
    return [document_id for (document_id,) in rows]


def read_documents(
    conn: psycopg.Connection[Any], table: CorpusTable, document_ids: Iterable[str]
) -> Iterator[ChunkedDocument]:
    """Yield these documents; tenants that share an id have a document each.

    Raises TransientError or CorpusError where the corpus cannot be read.
    """
    condition, wanted = of_documents(table, document_ids)
    tenant = (
        sql.SQL("{}::text").format(table.column("tenant", "chunk"))
        if table.has("tenant")
        else sql.SQL("NULL::text")
    )
    statement = _CHUNKS.format(
        document=table.column("document_id", "chunk"),
        tenant=tenant,
        index=table.column("chunk_index", "chunk"),
        content=table.column("content", "chunk"),
        relation=table.relation,
        condition=condition,
        order=_order(table),
    )
    with (
        corpus_errors("read the corpus's documents"),
        conn.transaction(),
        conn.cursor(name="recallwatch_documents") as cursor,
    ):
        cursor.itersize = CHUNKS_PER_FETCH
        rows = cursor.execute(statement, [wanted])
        for (document_id, whose), chunks in groupby(rows, key=lambda row: (row[0], row[1])):
            yield ChunkedDocument(document_id, whose, [content for *_, content in chunks])


def _order(table: CorpusTable) -> sql.Composed:
    """Return what orders a document's chunks: 10 comes behind 9, also where both are text."""
    index = table.column("chunk_index", "chunk")
    if table.types["chunk_index"] in _NUMBERS:
        return sql.SQL("{}").format(index)
    return sql.SQL('length({0}::text), {0}::text COLLATE "C"').format(index)
