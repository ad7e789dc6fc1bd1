"""Chunks drawn from the corpus to write questions from: each tenant and each document its share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, LiteralString

import numpy as np
import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable, Role
from pipeline.corpus.vectors import as_numbers, cosine_distance, of_numbers
from pipeline.generation.base import SourceChunk
from pipeline.generation.sampling import DrawnChunk

FIRST_PAGE = 200
"""Chunks read at first; each page after it is four times as long, for all keys are ordered anew."""

SIMILAR = 20
"""Nearest neighbours among which chunks of other documents are looked for."""

_AT_KEYS = sql.SQL("SELECT {columns} FROM {relation} AS c WHERE {key} = ANY(%(keys)s)")

# Two tenants may each have a document of the same id: a key alone does not say whose chunk it is.
#
# Each tenant gives a chunk before any gives its second, and within a tenant each document does.
# What decides among them is a hash of seed and key: it is the same on every server.
_DRAWN = sql.SQL("""
WITH eligible AS (
    SELECT {document} AS document, {index} AS chunk, {tenant} AS tenant,
        md5(CAST(%(seed)s AS text) || ' ' || {key}) COLLATE "C" AS draw
    FROM {relation} AS c
    WHERE char_length({content}) >= %(min_characters)s
      AND (CAST(%(tenant)s AS text) IS NULL OR {tenant} = CAST(%(tenant)s AS text))
), in_documents AS (
    SELECT *, row_number() OVER (PARTITION BY tenant, document ORDER BY draw) AS nth
    FROM eligible
), in_tenants AS (
    SELECT *, row_number() OVER (PARTITION BY tenant ORDER BY nth, draw) AS turn
    FROM in_documents
), page AS MATERIALIZED (
    SELECT document, chunk, tenant, turn, draw FROM in_tenants
    ORDER BY turn, draw LIMIT %(limit)s OFFSET %(offset)s
)
SELECT {columns} FROM page
JOIN {relation} AS c ON {document} = page.document AND {index} = page.chunk
    AND {tenant} IS NOT DISTINCT FROM page.tenant
    AND char_length({content}) >= %(min_characters)s
ORDER BY page.turn, page.draw
""")

_BESIDE = sql.SQL("""
SELECT {columns} FROM {relation} AS c
WHERE {document} = %(document)s AND {index} {comparison} %(chunk)s
  AND {tenant} IS NOT DISTINCT FROM CAST(%(tenant)s AS text)
  AND char_length({content}) >= %(min_characters)s
ORDER BY {index} {direction} LIMIT 1
""")

_SIMILAR = sql.SQL("""
SELECT document, chunk, key, content, tenant, language, vector FROM (
    SELECT {columns}, 1 - {distance} AS cosine
    FROM {relation} AS c
    WHERE {embedding} IS NOT NULL AND {tenant} IS NOT DISTINCT FROM CAST(%(tenant)s AS text)
    ORDER BY {distance} LIMIT %(limit)s
) AS nearest
WHERE document <> %(document)s AND cosine < %(below)s
  AND char_length(content) >= %(min_characters)s
ORDER BY cosine DESC, key COLLATE "C"
""")


class Sampler:
    """Draws chunks of `min_characters` and more, of one tenant or of all, by a seed."""

    def __init__(
        self, conn: psycopg.Connection[Any], table: CorpusTable, *, min_characters: int
    ) -> None:
        self._conn = conn
        self._table = table
        self._min_characters = min_characters

    def draw(self, *, seed: int, tenant: str | None = None) -> Iterator[DrawnChunk]:
        """Yield the eligible chunks of the corpus, all in the end, in the order of the draw.

        Raises TransientError or CorpusError where the corpus cannot be read.
        """
        offset, limit = 0, FIRST_PAGE
        while page := self._rows(
            _DRAWN, {"seed": str(seed), "tenant": tenant, "limit": limit, "offset": offset}
        ):
            yield from page
            offset, limit = offset + limit, 4 * limit

    def at(self, chunks: Iterable[SourceChunk]) -> Sequence[DrawnChunk]:
        """Return what the corpus holds now under the keys of these chunks, of the same tenants."""
        wanted = {(chunk.key, chunk.tenant) for chunk in chunks}
        if not wanted:
            return []
        found = self._rows(_AT_KEYS, {"keys": [key for key, _ in wanted]})
        return [each for each in found if (each.chunk.key, each.chunk.tenant) in wanted]

    def neighbours(self, drawn: DrawnChunk) -> Sequence[DrawnChunk]:
        """Return the chunk behind this one in its document, and the one before it."""
        return [*self._beside(drawn, ">", "ASC"), *self._beside(drawn, "<", "DESC")]

    def similar(self, drawn: DrawnChunk, *, below: float) -> Sequence[DrawnChunk]:
        """Return near chunks of other documents, of a cosine below `below`, the nearest first.

        Of the same tenant: no question reads two tenants' chunks.
        """
        if drawn.vector is None or not np.any(drawn.vector):
            return []
        values = self._place(drawn) | {
            "vector": drawn.vector.tolist(),
            "below": below,
            "limit": SIMILAR,
        }
        return self._rows(_SIMILAR, values)

    def _beside(
        self, drawn: DrawnChunk, comparison: LiteralString, direction: LiteralString
    ) -> Sequence[DrawnChunk]:
        pieces = {"comparison": sql.SQL(comparison), "direction": sql.SQL(direction)}
        return self._rows(_BESIDE, self._place(drawn), pieces)

    def _place(self, drawn: DrawnChunk) -> dict[str, Any]:
        document, chunk = drawn.place
        return {"document": document, "chunk": chunk, "tenant": drawn.chunk.tenant}

    def _rows(
        self,
        statement: sql.SQL,
        values: Mapping[str, Any],
        pieces: Mapping[str, sql.Composable] | None = None,
    ) -> Sequence[DrawnChunk]:
        filled = statement.format(**self._pieces(), **(pieces or {}))
        with corpus_errors("draw chunks from the corpus"):
            rows = self._conn.execute(
                filled, {**values, "min_characters": self._min_characters}
            ).fetchall()
        return [_drawn(*row) for row in rows]

    def _pieces(self) -> dict[str, sql.Composable]:
        table = self._table
        embedding = table.column("embedding", "c")
        given = of_numbers(table, sql.SQL("CAST(%(vector)s AS real[])"))
        columns = {
            "document": table.column("document_id", "c"),
            "chunk": table.column("chunk_index", "c"),
            "key": table.key_expression("c"),
            "content": table.column("content", "c"),
            "tenant": self._text_of("tenant"),
            "language": self._text_of("language"),
            "vector": as_numbers(table, embedding),
        }
        named = [
            sql.SQL("{} AS {}").format(expression, sql.Identifier(name))
            for name, expression in columns.items()
        ]
        return {
            "columns": sql.SQL(", ").join(named),
            "relation": table.relation,
            "document": columns["document"],
            "index": columns["chunk"],
            "key": columns["key"],
            "content": columns["content"],
            "tenant": columns["tenant"],
            "embedding": embedding,
            "distance": cosine_distance(table, embedding, given),
        }

    def _text_of(self, role: Role) -> sql.Composable:
        if not self._table.has(role):
            return sql.SQL("NULL::text")
        return sql.SQL("{}::text").format(self._table.column(role, "c"))


def _drawn(
    document: object, chunk: object, key: str, content: str, tenant: str | None,
    language: str | None, vector: list[float] | None,
) -> DrawnChunk:  # fmt: skip
    return DrawnChunk(
        SourceChunk(key, content, tenant, language),
        (document, chunk),
        None if vector is None else np.asarray(vector, dtype=np.float32),
    )
