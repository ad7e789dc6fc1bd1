"""The index that serves vector searches: which it is, and how it is built anew."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.managed import build_index, build_memory
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.vectors import Comparison, usual

IS_VECTOR_INDEX = sql.SQL("""
    am.amname IN ('hnsw', 'ivfflat') AND i.indisvalid AND i.indisready AND i.indpred IS NULL
    AND EXISTS (SELECT FROM pg_attribute a
        JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
            AND d.refobjsubid = a.attnum
        WHERE a.attrelid = i.indrelid AND a.attname = %(embedding)s)""")
"""Whether an index (`i` in pg_index, `am` its method) serves vector searches over all of the
embeddings, whose column is the parameter `embedding`, or over an expression of it."""

# The index of a partitioned table has no file: those of its partitions have.
_LEAVES = sql.SQL("""(
    SELECT relid::oid AS oid FROM pg_partition_tree({index}) WHERE isleaf
    UNION SELECT oid FROM pg_class WHERE oid = {index} AND relkind = 'i')""")

# A view is searched by the indexes of the tables that it reads.
_VECTOR_INDEX = sql.SQL("""
    WITH RECURSIVE source AS (
        SELECT to_regclass(%(relation)s)::oid AS oid
        UNION SELECT d.refobjid FROM source
        JOIN pg_class view ON view.oid = source.oid AND view.relkind = 'v'
        JOIN pg_rewrite r ON r.ev_class = view.oid
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_class'::regclass)
    SELECT c.oid, c.relname, am.amname, pg_get_indexdef(c.oid),
        (SELECT string_agg(pg_relation_filenode(leaf.oid)::text, ' ' ORDER BY leaf.oid)
         FROM {leaves} AS leaf)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_am am ON am.oid = c.relam JOIN pg_opclass o ON o.oid = i.indclass[0]
    WHERE i.indrelid IN (SELECT oid FROM source) AND {is_vector_index}
        AND o.opcname = %(operator_class)s AND pg_get_indexdef(i.indexrelid, 1, false) = %(key)s
    ORDER BY c.relname LIMIT 1
""").format(leaves=_LEAVES.format(index=sql.SQL("c.oid")), is_vector_index=IS_VECTOR_INDEX)

_LEAF_NAMES = sql.SQL("""
    SELECT n.nspname, c.relname FROM {leaves} AS leaf
    JOIN pg_class c ON c.oid = leaf.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    ORDER BY leaf.oid
""").format(leaves=_LEAVES.format(index=sql.SQL("%(index)s")))


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An approximate index that serves vector searches.

    `definition` is the statement that would create it. `file` names what is on the server's disk:
    the same name, the same graph or lists, with what was inserted since; each rebuild gives
    another. Several files, of a partitioned table, are separated by spaces.
    """

    oid: int
    name: str
    method: str
    definition: str
    file: str

    def to_json(self) -> dict[str, Any]:
        """Return what a run's record keeps of the index."""
        return {
            "name": self.name,
            "method": self.method,
            "definition": self.definition,
            "file": self.file,
        }


@corpus_errors("look for the corpus's vector index")
def vector_index(
    conn: psycopg.Connection[Any], table: CorpusTable, comparison: Comparison | None = None
) -> VectorIndex | None:
    """Return the index that serves a comparison, or the usual one; of several, the first by name.

    That of a table behind a view counts, where the view leaves the embedding's name as it is. An
    index of some of the rows, or of single partitions, does not.
    """
    wanted = comparison or usual(table)
    row = conn.execute(
        _VECTOR_INDEX,
        {
            "relation": table.relation.as_string(conn),
            "embedding": table.columns["embedding"],
            "operator_class": wanted.operator_class,
            "key": _as_defined(conn, wanted),
        },
    ).fetchone()
    return None if row is None else VectorIndex(*row)


def _as_defined(conn: psycopg.Connection[Any], wanted: Comparison) -> str:
    """Return the key of an index as PostgreSQL writes it, which quotes no name without need."""
    quoted = wanted.table.column("embedding").as_string(conn)
    row = conn.execute("SELECT quote_ident(%s)", [wanted.table.columns["embedding"]]).fetchone()
    return wanted.index_key().as_string(conn).replace(quoted, row[0] if row else quoted)


@corpus_errors("rebuild the vector index")
def rebuild(conn: psycopg.Connection[Any], table: CorpusTable, index: VectorIndex) -> None:
    """Build the index anew from the table's vectors, as it was first built.

    Not CONCURRENTLY: that keeps two indexes on disk, waits for every open transaction and leaves
    an invalid index behind where it fails; on a copy made to experiment nobody minds waiting.
    Searches that need the index, and writers of the table, wait until it is done. Raises
    CorpusError where the role does not own the index.
    """
    memory = build_memory(conn, table.relation, table.column("embedding"), table.dimensions or 0)
    for leaf in _leaves(conn, index):
        build_index(conn, sql.SQL("REINDEX INDEX {}").format(leaf), memory)


def _leaves(conn: psycopg.Connection[Any], index: VectorIndex) -> Iterator[sql.Identifier]:
    """Yield the indexes that have files, qualified: of those REINDEX runs in a transaction."""
    for schema, name in conn.execute(_LEAF_NAMES, {"index": index.oid}).fetchall():
        yield sql.Identifier(schema, name)
