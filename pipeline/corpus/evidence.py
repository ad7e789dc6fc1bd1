"""What the corpus's keys stand for: their texts, and hashes that tell texts apart."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.liveness import of_documents, values_of_keys
from pipeline.corpus.table import CorpusTable

CHUNKS_PER_FETCH = 1000

_READING = "read the corpus's texts"


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def chunk_texts(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str]
) -> dict[str, list[str]]:
    """Return those of the chunk keys that the corpus holds -> their texts.

    More than one where the table has several rows of a key. Raises TransientError or CorpusError
    where the corpus cannot be read.
    """
    return _by_key(conn, table, keys, _content(table))


def chunk_hashes(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str]
) -> dict[str, list[str]]:
    """Do the same with the `text_hash` of each text; the texts do not leave the database."""
    digest = sql.SQL("encode(sha256(convert_to({}, 'UTF8')), 'hex')").format(_content(table))
    return _by_key(conn, table, keys, digest)


@corpus_errors(_READING)
def _by_key(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str], value: sql.Composable
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, one in values_of_keys(conn, table, keys, value):
        found.setdefault(key, []).append(one)
    return found


def each_chunk(
    conn: psycopg.Connection[Any], table: CorpusTable, document_ids: Iterable[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of every chunk, or of every chunk of some documents, in flat memory.

    In no particular order. Raises TransientError or CorpusError where the corpus cannot be read.
    """
    for key, content, _ in each_row(conn, table, document_ids):
        yield key, content


def each_row(
    conn: psycopg.Connection[Any], table: CorpusTable, document_ids: Iterable[str] | None = None
) -> Iterator[tuple[str, str, str | None]]:
    """Do the same with the chunk's tenant: None where it has none, or the table no such column."""
    query = sql.SQL("SELECT {}, {}, {} FROM {} AS chunk").format(
        table.key_expression("chunk"), _content(table), _tenant(table), table.relation
    )
    parameters: list[list[str]] | None = None
    if document_ids is not None:
        condition, wanted = of_documents(table, document_ids)
        query, parameters = sql.SQL("{} WHERE {}").format(query, condition), [wanted]
    with (
        corpus_errors(_READING),
        conn.transaction(),
        conn.cursor(name="recallwatch_texts") as cursor,
    ):
        cursor.itersize = CHUNKS_PER_FETCH
        yield from cursor.execute(query, parameters)


def _tenant(table: CorpusTable) -> sql.Composable:
    if not table.has("tenant"):
        return sql.SQL("NULL::text")
    return sql.SQL("{}::text").format(table.column("tenant", "chunk"))


def _content(table: CorpusTable) -> sql.Composed:
    return sql.SQL("coalesce({}::text, '')").format(table.column("content", "chunk"))
