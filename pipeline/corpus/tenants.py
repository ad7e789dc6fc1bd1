"""Whose chunks some keys are, and how the corpus spells its tenants."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.liveness import values_of_keys
from pipeline.corpus.table import CorpusTable


@corpus_errors("look up whose chunks came back")
def tenants_of(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str]
) -> dict[str, set[str | None]]:
    """Return the tenants that have a chunk of each key, for the keys that the corpus holds.

    Tenants may share document ids, hence several; None stands for a chunk of no tenant. Empty for a
    corpus without tenants. Raises TransientError or CorpusError where it cannot be read.
    """
    if not table.has("tenant"):
        return {}
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    tenant = sql.SQL("{}::text").format(table.column("tenant", "chunk"))
    for key, owner in values_of_keys(conn, table, keys, tenant):
        found[key].add(owner)
    return dict(found)


@corpus_errors("read how the corpus spells its tenants")
def as_stored(
    conn: psycopg.Connection[Any], table: CorpusTable, tenants: Iterable[str]
) -> dict[str, str]:
    """Return each tenant as the corpus's column would hold it: a uuid in lower case, 07 as 7.

    So spelled, a search compares it. One that the column's type cannot hold stays as it is. Raises
    TransientError or CorpusError where the server cannot be asked.
    """
    wanted = sorted(set(tenants))
    if not wanted or not table.has("tenant"):
        return {tenant: tenant for tenant in wanted}
    statement = sql.SQL("SELECT given, given::{}::text FROM unnest(%s::text[]) AS given").format(
        sql.SQL(table.types["tenant"])
    )
    try:
        return dict(conn.execute(statement, [wanted]).fetchall())
    except (psycopg.DataError, UnicodeEncodeError):
        if len(wanted) == 1:
            return {wanted[0]: wanted[0]}
        middle = len(wanted) // 2
        return as_stored(conn, table, wanted[:middle]) | as_stored(conn, table, wanted[middle:])
