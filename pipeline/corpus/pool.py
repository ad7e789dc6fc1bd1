"""Chunks to try things on: those that questions are judged by, and some of the others by a seed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError

CHUNKS_PER_FETCH = 1000

_COLUMNS = sql.SQL("{key}, {tenant}, coalesce({content}::text, ''), {vector}")

# A hash of seed and key orders the others: it draws the same ones on every server.
_POOL = sql.SQL("""
SELECT {columns} FROM {relation} AS c WHERE {key} = ANY(%(judged)s)
UNION ALL
(SELECT {columns} FROM {relation} AS c WHERE NOT {key} = ANY(%(judged)s)
 ORDER BY md5(CAST(%(seed)s AS text) || ' ' || {key}) COLLATE "C", {key} COLLATE "C"
 LIMIT CAST(%(others)s AS bigint))
""")


@dataclass(frozen=True, slots=True)
class PoolChunk:
    """A chunk and whose it is. `vector`: shape (dimensions,), the corpus's own, where asked for."""

    key: str
    tenant: str | None
    text: str
    vector: NDArray[np.float32] | None


@corpus_errors("draw chunks from the corpus")
def draw_pool(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    judged: Iterable[str],
    *,
    others: int | None,
    seed: int,
    with_vectors: bool,
) -> Sequence[PoolChunk]:
    """Return the chunks of the `judged` keys, and so many others (None: all), in memory.

    One seed draws the same ones, whoever asks. Memory: the texts and, `with_vectors`, 4 bytes a
    dimension. Raises CorpusError where the vectors are of a type that has no numbers, and where
    the corpus cannot be read.
    """
    statement = _statement(table, with_vectors=with_vectors)
    values = {"judged": sorted(set(judged)), "others": others, "seed": str(seed)}
    with conn.transaction(), conn.cursor(name="recallwatch_pool", binary=True) as cursor:
        cursor.itersize = CHUNKS_PER_FETCH
        rows = cursor.execute(statement, values)
        return [PoolChunk(key, whose, text, _numbers(sent)) for key, whose, text, sent in rows]


def _statement(table: CorpusTable, *, with_vectors: bool) -> sql.Composed:
    columns = _COLUMNS.format(
        key=table.key_expression("c"),
        tenant=_tenant(table),
        content=table.column("content", "c"),
        vector=_sent(table) if with_vectors else sql.SQL("NULL::bytea"),
    )
    return _POOL.format(columns=columns, relation=table.relation, key=table.key_expression("c"))


def _tenant(table: CorpusTable) -> sql.Composable:
    if not table.has("tenant"):
        return sql.SQL("NULL::text")
    return sql.SQL("{}::text").format(table.column("tenant", "c"))


def _sent(table: CorpusTable) -> sql.Composed:
    """Return a vector as pgvector sends it: halves and sparse ones become whole and dense."""
    if table.types["embedding"] == "bit":
        raise CorpusError(
            f"the embeddings of {table} are bits, which cannot be compared with other models'"
            " vectors: name the model that they were made with as a --model, and not corpus"
        )
    return sql.SQL("vector_send(CAST({} AS vector))").format(table.column("embedding", "c"))


def _numbers(sent: bytes | None) -> NDArray[np.float32] | None:
    """Read what pgvector sends: two numbers of two bytes, then its own in big-endian float32."""
    return None if sent is None else np.frombuffer(sent, ">f4", offset=4).astype(np.float32)


@corpus_errors("count the corpus")
def count_chunks(conn: psycopg.Connection[Any], table: CorpusTable) -> int:
    """Return how many chunks the corpus has."""
    row = conn.execute(sql.SQL("SELECT count(*) FROM {}").format(table.relation)).fetchone()
    return int(row[0]) if row else 0
