"""Loading chunks into the managed table: an upsert that embeds only what changed."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from pipeline.corpus import managed
from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.languages import available_text_configs, text_config
from pipeline.corpus.reading import Chunk
from pipeline.errors import InputError
from pipeline.text import is_blank
from pipeline.types import Failure, FloatMatrix

Embed = Callable[[Sequence[str]], tuple[FloatMatrix, Mapping[int, Failure]]]
"""n texts in; vectors of shape (n, dimensions) out, and the failures by position."""

BATCH = 1000
"""Chunks that are compared, embedded and committed together."""

FROM_FILE = "file"
"""The embedding model of a vector that the file brought."""

_STAGING = """
    CREATE TEMP TABLE IF NOT EXISTS incoming (
        position integer, document_id text, chunk_index integer, content text, tenant text,
        language text, text_config text, content_hash bytea, embedding_model text,
        embedding vector);
    CREATE TEMP TABLE IF NOT EXISTS embedded (position integer, embedding vector);
    TRUNCATE pg_temp.incoming, pg_temp.embedded"""

# A chunk is embedded when neither the file nor the table has the model's vector of its content.
# LIMIT keeps each lookup in the index: a join would read the whole table for every batch.
_CHANGES = sql.SQL("""
    SELECT position, is_new, to_embed FROM (
        SELECT position, stored.document_id IS NULL AS is_new,
            new.embedding IS NULL AND new.embedding_model IS NOT NULL AND (
                stored.embedding IS NULL
                OR stored.content_hash <> new.content_hash
                OR stored.embedding_model IS DISTINCT FROM new.embedding_model) AS to_embed,
            (new.content_hash, new.tenant, new.language, new.text_config, new.embedding_model)
                IS DISTINCT FROM (stored.content_hash, stored.tenant, stored.language,
                    stored.text_config::text, stored.embedding_model)
                OR new.embedding <> stored.embedding AS differs
        FROM pg_temp.incoming AS new LEFT JOIN LATERAL (
            SELECT * FROM {chunks} AS chunk WHERE chunk.document_id = new.document_id
                AND chunk.chunk_index = new.chunk_index LIMIT 1) AS stored ON true
    ) AS compared WHERE is_new OR to_embed OR differs ORDER BY position""")

# A chunk that is neither blank nor embedded anew keeps the vector it has.
_UPSERT = sql.SQL("""
    INSERT INTO {chunks} AS stored (document_id, chunk_index, content, tenant, language,
        text_config, content_hash, embedding_model, embedding)
    SELECT document_id, chunk_index, content, tenant, language,
        text_config::regconfig, content_hash, embedding_model,
        coalesce(incoming.embedding, embedded.embedding)
    FROM pg_temp.incoming LEFT JOIN pg_temp.embedded USING (position)
    WHERE position = ANY(%s)
    ON CONFLICT (document_id, chunk_index) DO UPDATE SET
        content = excluded.content, tenant = excluded.tenant, language = excluded.language,
        text_config = excluded.text_config, content_hash = excluded.content_hash,
        embedding_model = excluded.embedding_model,
        embedding = CASE WHEN excluded.embedding_model IS NOT NULL
            THEN coalesce(excluded.embedding, stored.embedding) END,
        updated_at = now()""")


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did, in chunks of the file; `total` counts those in the table afterwards.

    `embedded`: vectors made by the model. `without_embedding`: blank chunks, which have none.
    """

    inserted: int
    updated: int
    unchanged: int
    embedded: int
    without_embedding: int
    total: int
    warnings: tuple[str, ...]


@corpus_errors("load the corpus")
def load(
    conn: psycopg.Connection[Any],
    chunks: Iterable[Chunk],
    embed: Embed,
    *,
    model: str,
    dimensions: int,
    replace: bool = False,
    on_progress: Callable[[int], None] = lambda _: None,
) -> LoadReport:
    """Insert or update chunks with unique keys, and index the table.

    `conn` is in autocommit mode: a batch is committed at a time, so that an interrupted load is
    taken up by the next. `replace` builds a new table and puts it in the place of the old one at
    the end. `on_progress` is told how many chunks each batch had.

    Raises InputError for a chunk that the model cannot embed, that is too long for PostgreSQL or
    that brings a vector of another length; CorpusError for a table of other dimensions or under
    another load. What `chunks` and `embed` raise passes through.
    """
    with managed.only_loader(conn):
        managed.ensure_extension(conn)
        register_vector(conn)
        if replace:
            managed.start_replacement(conn, dimensions)
        else:
            managed.ensure_table(conn, dimensions)
        schema = managed.REPLACEMENT_SCHEMA if replace else managed.SCHEMA
        loader = _Loader(conn, schema, embed, model)
        for batch in _batches(chunks):
            _check_vectors(batch, dimensions)
            loader.load(batch)
            on_progress(len(batch))
        managed.build_indexes(conn, schema, dimensions)
        if replace:
            managed.finish_replacement(conn)
        return _report(conn, loader.counts, model, dimensions)


class _Loader:
    """Loads batch after batch into the managed table of one schema, and counts."""

    def __init__(
        self, conn: psycopg.Connection[Any], schema: str, embed: Embed, model: str
    ) -> None:
        self._conn = conn
        self._chunks = managed.relation(schema)
        self._embed = embed
        self._model = model
        self._text_configs = available_text_configs(conn)
        self.counts: Counter[str] = Counter()

    def load(self, batch: Sequence[Chunk]) -> None:
        """Stage, compare, embed outside any transaction, then write in one."""
        self._stage(batch)
        changes = self._conn.execute(_CHANGES.format(chunks=self._chunks)).fetchall()
        to_embed = [position for position, _, is_wanted in changes if is_wanted]
        if to_embed:
            self._stage_vectors(to_embed, [batch[position] for position in to_embed])
        self._write([position for position, _, _ in changes], batch)
        new = sum(is_new for _, is_new, _ in changes)
        self.counts.update(
            inserted=new,
            updated=len(changes) - new,
            unchanged=len(batch) - len(changes),
            embedded=len(to_embed),
            without_embedding=sum(self._model_of(chunk) is None for chunk in batch),
        )

    def _stage(self, batch: Sequence[Chunk]) -> None:
        """Copy a batch into the temporary table, positions from 0."""
        self._conn.execute(_STAGING)
        types = ["int4", "text", "int4", "text", "text", "text", "text", "bytea", "text", "vector"]
        rows = (
            (
                position,
                chunk.document_id,
                chunk.chunk_index,
                chunk.content,
                chunk.tenant,
                chunk.language,
                text_config(chunk.language, self._text_configs),
                hashlib.sha256(chunk.content.encode()).digest(),
                self._model_of(chunk),
                chunk.embedding,
            )
            for position, chunk in enumerate(batch)
        )
        self._copy("incoming", types, rows)

    def _stage_vectors(self, positions: Sequence[int], chunks: Sequence[Chunk]) -> None:
        """Embed chunks and copy the vectors, by position in the batch, beside them."""
        vectors, failures = self._embed([chunk.content for chunk in chunks])
        for number, failure in sorted(failures.items()):
            raise InputError(
                f"chunk {chunks[number].key}: no vector from model {self._model}: {failure.reason}"
            )
        self._copy("embedded", ["int4", "vector"], zip(positions, vectors, strict=True))

    def _copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        statement = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(
            sql.Identifier("pg_temp", table)
        )
        with self._conn.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _write(self, positions: Sequence[int], batch: Sequence[Chunk]) -> None:
        try:
            self._conn.execute(_UPSERT.format(chunks=self._chunks), [positions])
        except psycopg.errors.ProgramLimitExceeded as error:
            longest = max((batch[position] for position in positions), key=lambda c: len(c.content))
            raise InputError(
                f"a chunk is too long to be indexed ({error.diag.message_primary}); the longest "
                f"near it is {longest.key} with {len(longest.content)} characters: split it"
            ) from error

    def _model_of(self, chunk: Chunk) -> str | None:
        """Return what the chunk's vector comes from; None: blank, it has none."""
        if chunk.embedding is not None:
            return FROM_FILE
        return None if is_blank(chunk.content) else self._model


def _batches(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    iterator = iter(chunks)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _check_vectors(batch: Iterable[Chunk], dimensions: int) -> None:
    for chunk in batch:
        if chunk.embedding is not None and len(chunk.embedding) != dimensions:
            raise InputError(
                f"chunk {chunk.key} brings a vector of {len(chunk.embedding)} dimensions, the "
                f"table holds {dimensions}: the file's vectors and the model must have as many"
            )


def _report(
    conn: psycopg.Connection[Any], counts: Counter[str], model: str, dimensions: int
) -> LoadReport:
    """Count the whole table and name what will not search well."""
    total, foreign, others = conn.execute(
        sql.SQL(
            """SELECT count(*), count(*) FILTER (WHERE foreign_model),
                   string_agg(DISTINCT embedding_model, ', ') FILTER (WHERE foreign_model)
               FROM (SELECT embedding_model, embedding_model NOT IN (%s, %s) AS foreign_model
                     FROM {}) AS chunks"""
        ).format(managed.relation()),
        [model, FROM_FILE],
    ).fetchone() or (0, 0, None)
    warnings = []
    if dimensions > managed.MAX_INDEXED_DIMENSIONS:
        warnings.append(
            f"no vector index: pgvector indexes {managed.MAX_INDEXED_DIMENSIONS} dimensions at "
            f"most, the model gives {dimensions}; every vector search scans the whole table"
        )
    if foreign:
        warnings.append(
            f"{foreign} chunks that the file does not hold keep vectors of {others}, which cannot "
            f"be compared with those of {model}; load them too, or use --replace"
        )
    return LoadReport(
        inserted=counts["inserted"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        embedded=counts["embedded"],
        without_embedding=counts["without_embedding"],
        total=total,
        warnings=tuple(warnings),
    )
