"""Whose chunks some keys are."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.table import CorpusTable
from pipeline.types import Level, split_key

KEYS_PER_STATEMENT = 5_000

_TENANTS = sql.SQL("""
SELECT {key}, {tenant}::text
FROM unnest(%s::{document_type}[], %s::{index_type}[]) AS wanted (document, chunk)
JOIN {relation} AS c ON {document} = wanted.document AND {index} = wanted.chunk
""")


@corpus_errors("look up whose chunks came back")
def tenants_of(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str]
) -> dict[str, set[str | None]]:
    """Return the tenants that have a chunk of each key, for the keys that the corpus holds.

    Tenants may share document ids, hence several; None stands for a chunk of no tenant. Empty for a
    corpus without tenants. Raises TransientError or CorpusError where it cannot be read.
    """
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    if not table.has("tenant"):
        return {}
    # What is there can be cast to the columns' types.
    live = sorted(live_keys(conn, table, keys, Level.CHUNK))
    statement = _TENANTS.format(
        key=table.key_expression("c"),
        tenant=table.column("tenant", "c"),
        document_type=sql.SQL(table.types["document_id"]),
        index_type=sql.SQL(table.types["chunk_index"]),
        relation=table.relation,
        document=table.column("document_id", "c"),
        index=table.column("chunk_index", "c"),
    )
    for start in range(0, len(live), KEYS_PER_STATEMENT):
        pairs = map(split_key, live[start : start + KEYS_PER_STATEMENT])
        columns = [list(column) for column in zip(*pairs, strict=True)]
        for key, tenant in conn.execute(statement, columns):
            found[key].add(tenant)
    return dict(found)
