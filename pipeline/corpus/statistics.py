"""What a corpus holds, counted and hashed: for `recallwatch corpus show` and for a run's record."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Self

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.indexing import IS_VECTOR_INDEX, vector_index
from pipeline.corpus.table import CorpusTable, Role

EXACT_UP_TO = 200_000
"""Chunks up to which texts and vectors are read: at 1,536 dimensions some 20 us a chunk."""

_COUNTS = sql.SQL("SELECT count(*), count({embedding}) FROM {relation}")

# Sums of a hash a row, so the rows' order does not matter. The key is part of what is hashed: two
# chunks that exchange their vectors change the sum.
_SUMS = sql.SQL("""
    SELECT sum(hashtextextended({key} || ' ' || coalesce({content}, '') COLLATE "C", 0)),
        sum(hashtextextended({key} || ' ' || encode({type}_send({embedding}), 'hex')
            COLLATE "C", 0))
    FROM {relation}""")

# What is partitioned has no pages of its own, and what is not is no tree.
_INDEXES = sql.SQL("""
    SELECT c.relname, am.amname,
        (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n)
         FROM generate_series(1, i.indnkeyatts) AS n),
        o.opcname, i.indisvalid AND i.indisready, i.indpred IS NOT NULL,
        CASE WHEN {is_vector_index} THEN
            substring(o.opcname FROM '^[a-z]+_(cosine|ip|l2|l1|hamming|jaccard)_ops$') END,
        coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(i.indexrelid)),
                 pg_relation_size(i.indexrelid))::bigint
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_am am ON am.oid = c.relam JOIN pg_opclass o ON o.oid = i.indclass[0]
    WHERE i.indrelid = to_regclass(%(relation)s) ORDER BY c.relname
""").format(is_vector_index=IS_VECTOR_INDEX)
_TABLE_SIZE = """
    SELECT coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(oid)),
                    pg_total_relation_size(oid))::bigint
    FROM pg_class WHERE oid = to_regclass(%s)"""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """One index of the corpus table. `keys`: its columns or expressions; `size` in bytes.

    `distance`: cosine, ip, l2, l1, hamming or jaccard, where vector searches over all of the chunks
    can use it; an index of an expression serves searches by that expression only.
    """

    name: str
    method: str
    keys: str
    operator_class: str
    valid: bool
    partial: bool
    distance: str | None
    size: int


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """What the table holds. Counts are of chunks unless their name says otherwise.

    `tenants` and `languages` are empty where no column is configured; None stands for NULL.
    `dimensions` maps a vector length to its chunks; `models` an embedding model, in the managed
    table only. `vector_index` names an index that serves vector searches. `size` is in bytes,
    indexes included.
    """

    table: str
    chunks: int
    documents: int
    tenants: dict[str | None, int]
    languages: dict[str | None, int]
    dimensions: dict[int, int]
    models: dict[str, int]
    missing_embeddings: int
    blank_contents: int
    indexes: tuple[IndexSummary, ...]
    vector_index: str | None
    text_search: str | None
    size: int


@dataclass(frozen=True, slots=True)
class CorpusFingerprint:
    """Counts and hashes of a corpus. `embedded`: chunks with a vector, of `dimension` numbers.

    `texts` and `vectors`: 16 hexadecimal digits, equal for equal keys with equal contents or
    vectors, in any order; None where the corpus was too large to be read. `index`: name, method,
    definition and file of the approximate index that serves the searches, see
    `pipeline.corpus.indexing.VectorIndex`; None: there is none.
    """

    chunks: int
    embedded: int
    dimension: int | None
    texts: str | None
    vectors: str | None
    index: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**value)


@corpus_errors("describe the corpus")
def show(conn: psycopg.Connection[Any], table: CorpusTable) -> CorpusSummary:
    """Count the whole table, which is read in full a few times."""
    chunks, documents, missing, blank = _counts(conn, table)
    indexes = _indexes(conn, table)
    return CorpusSummary(
        table=str(table),
        chunks=chunks,
        documents=documents,
        tenants=_sizes(conn, table, "tenant"),
        languages=_sizes(conn, table, "language"),
        dimensions=_dimensions(conn, table),
        models=embedding_models(conn, table),
        missing_embeddings=missing,
        blank_contents=blank,
        indexes=indexes,
        vector_index=next((index.name for index in indexes if index.distance), None),
        text_search=table.columns.get("text_search"),
        size=_table_size(conn, table),
    )


@corpus_errors("count the corpus's tenants")
def tenant_sizes(conn: psycopg.Connection[Any], table: CorpusTable) -> dict[str | None, int]:
    """Return tenant -> chunks, largest first; empty where no tenant column is configured."""
    return _sizes(conn, table, "tenant")


def searched_sizes(
    conn: psycopg.Connection[Any], table: CorpusTable, where: str | None = None
) -> dict[str | None, int]:
    """Return tenant -> chunks with a vector that meet a strategy's condition `where`.

    All of them stand under None where no tenant column is configured.
    """
    tenant = table.column("tenant", "c") if table.has("tenant") else sql.NULL
    condition = sql.SQL("true") if where is None else sql.SQL("({}\n)").format(sql.SQL(where))
    counted = sql.SQL(
        "SELECT {}::text, count(*) FROM {} AS c WHERE {} IS NOT NULL AND {} GROUP BY 1"
    ).format(tenant, table.relation, table.column("embedding", "c"), condition)
    filtered = f" where {' '.join(where.split())}" if where else ""
    with corpus_errors(f"count the chunks of {table}{filtered}"), conn.transaction():
        conn.execute("SET TRANSACTION READ ONLY")
        return dict(conn.execute(counted).fetchall())


@corpus_errors("take the corpus's fingerprint")
def fingerprint(
    conn: psycopg.Connection[Any], table: CorpusTable, *, exact_up_to: int = EXACT_UP_TO
) -> CorpusFingerprint:
    """Count the corpus, and hash it where it has no more than `exact_up_to` chunks."""
    pieces = {
        "relation": table.relation,
        "key": table.key_expression(),
        "content": table.column("content"),
        "embedding": table.column("embedding"),
        "type": sql.SQL(table.types["embedding"]),
    }
    chunks, embedded = conn.execute(_COUNTS.format(**pieces)).fetchone() or (0, 0)
    texts = vectors = None
    if chunks <= exact_up_to:
        sums = conn.execute(_SUMS.format(**pieces)).fetchone() or (None, None)
        texts, vectors = (_hexadecimal(total) for total in sums)
    index = vector_index(conn, table)
    return CorpusFingerprint(
        chunks, embedded, table.dimensions, texts, vectors, index.to_json() if index else None
    )


def _counts(conn: psycopg.Connection[Any], table: CorpusTable) -> tuple[int, int, int, int]:
    """Return the numbers of chunks, documents, missing embeddings and blank contents."""
    row = conn.execute(
        sql.SQL(
            """SELECT count(*), count(DISTINCT {}), count(*) - count({}),
                      count(*) FILTER (WHERE {} ~ '\\S' IS NOT TRUE) FROM {}"""
        ).format(
            table.column("document_id"),
            table.column("embedding"),
            table.column("content"),
            table.relation,
        )
    ).fetchone()
    return row or (0, 0, 0, 0)


def _sizes(conn: psycopg.Connection[Any], table: CorpusTable, role: Role) -> dict[str | None, int]:
    if not table.has(role):
        return {}
    return _grouped(conn, table, sql.SQL("{}::text").format(table.column(role)))


def _dimensions(conn: psycopg.Connection[Any], table: CorpusTable) -> dict[int, int]:
    groups = _grouped(conn, table, table.vector_length())
    return {length: chunks for length, chunks in groups.items() if length is not None}


def embedding_models(conn: psycopg.Connection[Any], table: CorpusTable) -> dict[str, int]:
    """Return the models that made the vectors, and of how many chunks; managed table only."""
    if not table.managed:
        return {}
    groups = _grouped(conn, table, sql.Identifier("embedding_model"))
    return {model: chunks for model, chunks in groups.items() if model is not None}


def _grouped(
    conn: psycopg.Connection[Any], table: CorpusTable, value: sql.Composable
) -> dict[Any, int]:
    """Return value -> chunks, largest first."""
    return dict(
        conn.execute(
            sql.SQL("SELECT {}, count(*) FROM {} GROUP BY 1 ORDER BY 2 DESC, 1").format(
                value, table.relation
            )
        ).fetchall()
    )


def _indexes(conn: psycopg.Connection[Any], table: CorpusTable) -> tuple[IndexSummary, ...]:
    relation = table.relation.as_string(conn)
    names = {"relation": relation, "embedding": table.columns["embedding"]}
    return tuple(IndexSummary(*row) for row in conn.execute(_INDEXES, names))


def _table_size(conn: psycopg.Connection[Any], table: CorpusTable) -> int:
    row = conn.execute(_TABLE_SIZE, [table.relation.as_string(conn)]).fetchone()
    return row[0] if row else 0


def _hexadecimal(total: Decimal | None) -> str:
    """Return a sum, None being that of no rows, modulo 2^64."""
    return f"{int(total or 0) % 2**64:016x}"
