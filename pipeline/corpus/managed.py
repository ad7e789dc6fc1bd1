"""The chunks table that `recallwatch corpus load` owns: its shape, indexes and replacement.

It is built in one of two schemas: `SCHEMA`, where it is searched, or `REPLACEMENT_SCHEMA`, where
`--replace` builds a new one while the old one is still searched.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.settings import MANAGED_TABLE
from pipeline.errors import CorpusError

MAX_INDEXED_DIMENSIONS = 2000
"""pgvector indexes a `vector` of this many dimensions at most."""

SCHEMA, NAME = MANAGED_TABLE.split(".")
REPLACEMENT_SCHEMA = f"{SCHEMA}_replacement"

_GRAPH_BYTES = 1000
"""What HNSW holds of a chunk while it builds, at pgvector's m = 16, beside the vector itself."""

_MAX_BUILD_BYTES = 2**30

# embedding_model is 'file' for a vector that the file brought, NULL for a blank chunk.
_TABLE = sql.SQL("""
    CREATE TABLE {chunks} (
        document_id text NOT NULL,
        chunk_index integer NOT NULL CHECK (chunk_index >= 0),
        content text NOT NULL,
        tenant text,
        language text,
        text_config regconfig NOT NULL,
        text_search tsvector GENERATED ALWAYS AS (to_tsvector(text_config, content)) STORED,
        embedding vector({dimensions}),
        embedding_model text,
        content_hash bytea NOT NULL,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (document_id, chunk_index)
    )""")

_VECTOR_INDEX = sql.SQL(
    "CREATE INDEX IF NOT EXISTS chunks_embedding ON {} USING hnsw (embedding vector_cosine_ops)"
)
_OTHER_INDEXES = (
    sql.SQL("CREATE INDEX IF NOT EXISTS chunks_text_search ON {} USING gin (text_search)"),
    sql.SQL("CREATE INDEX IF NOT EXISTS chunks_tenant ON {} (tenant)"),
)

# HNSW builds far faster while the whole graph fits into memory.
_BUILD_MEMORY = sql.SQL("""
    SELECT greatest(pg_size_bytes(current_setting('maintenance_work_mem')),
        least(%(most)s, %(each)s * (SELECT count({}) FROM {}))) / 1024 || 'kB'""")
_SET_LOCAL = """
    SELECT set_config('maintenance_work_mem', %s, true), set_config('statement_timeout', '0', true)
"""


def relation(schema: str = SCHEMA) -> sql.Identifier:
    """Return the managed table, qualified and quoted."""
    return sql.Identifier(schema, NAME)


@contextmanager
def only_loader(conn: psycopg.Connection[Any]) -> Iterator[None]:
    """Hold the advisory lock of loads. Raises CorpusError where another load holds it."""
    lock = [MANAGED_TABLE]
    row = conn.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", lock).fetchone()
    if row != (True,):
        raise CorpusError(
            f"another `recallwatch corpus load` is writing {MANAGED_TABLE}; wait until it ends"
        )
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", lock)


def ensure_extension(conn: psycopg.Connection[Any]) -> None:
    """Install pgvector into the database where it is not yet.

    Raises CorpusError where the server does not have it or the role may not install it.
    """
    try:
        conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.FeatureNotSupported as error:
        raise CorpusError(
            "this PostgreSQL server does not have pgvector; install its package on the server"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CorpusError(
            f"this role may not install pgvector; run `CREATE EXTENSION vector` in database "
            f"{conn.info.dbname} as a superuser"
        ) from error


def ensure_table(conn: psycopg.Connection[Any], dimensions: int) -> None:
    """Create the managed table where there is none.

    Raises CorpusError where there is one for vectors of another length.
    """
    row = conn.execute(
        "SELECT atttypmod FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attname = 'embedding'",
        [MANAGED_TABLE],
    ).fetchone()
    if row is None:
        _create(conn, SCHEMA, dimensions)
    elif row[0] != dimensions:
        raise CorpusError(
            f"{MANAGED_TABLE} holds vectors of {row[0]} dimensions, these have {dimensions}; "
            f"run `recallwatch corpus load --replace FILE` to embed the corpus anew"
        )


def start_replacement(conn: psycopg.Connection[Any], dimensions: int) -> None:
    """Create an empty table beside the one in use; what an interrupted load left there goes."""
    with conn.transaction():
        conn.execute(
            sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(REPLACEMENT_SCHEMA))
        )
        _create(conn, REPLACEMENT_SCHEMA, dimensions)


def finish_replacement(conn: psycopg.Connection[Any]) -> None:
    """Put the replacement, with its indexes, in the place of the table in use."""
    schema, replacement = sql.Identifier(SCHEMA), sql.Identifier(REPLACEMENT_SCHEMA)
    with conn.transaction():
        conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        conn.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(relation()))
        conn.execute(
            sql.SQL("ALTER TABLE {} SET SCHEMA {}").format(relation(REPLACEMENT_SCHEMA), schema)
        )
        conn.execute(sql.SQL("DROP SCHEMA {}").format(replacement))


def _create(conn: psycopg.Connection[Any], schema: str, dimensions: int) -> None:
    with conn.transaction():
        conn.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        conn.execute(_TABLE.format(chunks=relation(schema), dimensions=dimensions))


def build_indexes(conn: psycopg.Connection[Any], schema: str, dimensions: int) -> None:
    """Create the indexes that are missing and refresh the planner's statistics.

    There is no vector index above `MAX_INDEXED_DIMENSIONS`.
    """
    chunks = relation(schema)
    memory = build_memory(conn, chunks, sql.Identifier("embedding"), dimensions)
    indexed = dimensions <= MAX_INDEXED_DIMENSIONS
    for index in (_VECTOR_INDEX, *_OTHER_INDEXES) if indexed else _OTHER_INDEXES:
        build_index(conn, index.format(chunks), memory)
    conn.execute(sql.SQL("ANALYZE {}").format(chunks))


def build_memory(
    conn: psycopg.Connection[Any],
    chunks: sql.Identifier,
    embedding: sql.Identifier,
    dimensions: int,
) -> str:
    """Return the maintenance_work_mem that holds the whole graph while it is built, within 1 GB."""
    sizes = {"most": _MAX_BUILD_BYTES, "each": 4 * dimensions + _GRAPH_BYTES}
    (memory,) = conn.execute(_BUILD_MEMORY.format(embedding, chunks), sizes).fetchone() or ("64MB",)
    return str(memory)


def build_index(conn: psycopg.Connection[Any], statement: sql.Composed, memory: str) -> None:
    """Run what builds an index, with this maintenance_work_mem and as long as it takes."""
    try:
        _build(conn, statement, memory)
    except psycopg.errors.DiskFull:
        # A parallel build takes its memory from /dev/shm, of which a container has 64 MB.
        with conn.transaction():
            conn.execute("SET LOCAL max_parallel_maintenance_workers = 0")
            _build(conn, statement, memory)


def _build(conn: psycopg.Connection[Any], statement: sql.Composed, memory: str) -> None:
    with conn.transaction():
        conn.execute(_SET_LOCAL, [memory])
        conn.execute(statement)
