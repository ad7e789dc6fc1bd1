"""Texts of chunks by their keys, and the chunks that say almost the same."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.vectors import cosine_distance
from pipeline.types import Level, split_key

KEYS_PER_STATEMENT = 1_000

NEAREST = 5
"""Near-duplicates that are looked for around a chunk."""

_CONTENTS = sql.SQL("""
SELECT {key}, coalesce({content}::text, '')
FROM unnest({wanted}) AS wanted (document, chunk)
JOIN {relation} AS c ON {document} = wanted.document AND {index} = wanted.chunk
WHERE {tenant} IS NOT DISTINCT FROM coalesce(%s::text, {tenant})
""")

# The chunk itself comes back as well, hence one more.
_NEAR = sql.SQL("""
SELECT {key}, near.key, near.content, 1 - near.distance
FROM unnest({wanted}) AS wanted (document, chunk)
JOIN {relation} AS c ON {document} = wanted.document AND {index} = wanted.chunk
CROSS JOIN LATERAL (
    SELECT {other_key} AS key, coalesce({other_content}::text, '') AS content,
        {distance} AS distance
    FROM {relation} AS o
    WHERE {embedding} IS NOT NULL AND {other_embedding} IS NOT NULL {same_tenant}
    ORDER BY {distance} LIMIT {limit}
) AS near
WHERE {tenant} IS NOT DISTINCT FROM coalesce(%s::text, {tenant})
  AND near.key <> {key} AND near.distance <= {farthest}
ORDER BY 1, near.distance, near.key COLLATE "C"
""")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk that says almost what another one says; `similarity` is their vectors' cosine."""

    of: str
    key: str
    content: str
    similarity: float


@corpus_errors("read chunks of the corpus")
def contents(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    keys: Iterable[str],
    *,
    tenant: str | None = None,
) -> dict[str, str]:
    """Return the texts of those of the keys that the corpus holds.

    `tenant`: whose chunks they are, as tenants may share document ids; None: anybody's. Raises
    TransientError or CorpusError where the corpus cannot be read.
    """
    pieces = {"content": table.column("content", "c")}
    found: dict[str, str] = {}
    for wanted in _live(conn, table, keys, tenant):
        found.update(conn.execute(_filled(_CONTENTS, table, pieces), wanted).fetchall())
    return found


def by_tenant(keys: Iterable[tuple[str | None, Iterable[str]]]) -> dict[str | None, set[str]]:
    """Return all the keys of each tenant."""
    found: defaultdict[str | None, set[str]] = defaultdict(set)
    for tenant, wanted in keys:
        found[tenant].update(wanted)
    return found


def contents_by_tenant(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    keys: Iterable[tuple[str | None, Iterable[str]]],
) -> dict[str | None, dict[str, str]]:
    """Return, for each tenant, what `contents` does of all its keys."""
    return {
        tenant: contents(conn, table, wanted, tenant=tenant)
        for tenant, wanted in by_tenant(keys).items()
    }


def returned_contents(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    keys: Sequence[tuple[str | None, Sequence[str]]],
) -> dict[str | None, dict[str, str]]:
    """Return, for each tenant, the texts of keys that a search returned for its questions.

    A key stands for the tenant's own chunk where it has one, else for anybody's: a search may
    return what is shared, or what it should not.
    """
    own = contents_by_tenant(conn, table, keys)
    missing = {tenant: wanted - own[tenant].keys() for tenant, wanted in by_tenant(keys).items()}
    others = {key for tenant, some in missing.items() if tenant is not None for key in some}
    anybodys = contents(conn, table, others) if others else {}
    return {
        tenant: own[tenant] | {key: anybodys[key] for key in some if key in anybodys}
        for tenant, some in missing.items()
    }


@corpus_errors("look for near-duplicates in the corpus")
def near_duplicates(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    keys: Iterable[str],
    *,
    least: float,
    tenant: str | None = None,
) -> list[Neighbour]:
    """Return the chunks of a cosine of `least` and more to those of the keys, the nearest first.

    `tenant`: whose chunks the keys are; None: anybody's. At most NEAREST a key, of its own tenant;
    an approximate index may miss some. Chunks without a vector have none. Raises TransientError or
    CorpusError where the corpus cannot be read.
    """
    embedding, other = table.column("embedding", "c"), table.column("embedding", "o")
    pieces = {
        "other_key": table.key_expression("o"),
        "other_content": table.column("content", "o"),
        "embedding": embedding,
        "other_embedding": other,
        "distance": cosine_distance(table, other, embedding),
        "same_tenant": _same_tenant(table),
        "limit": sql.Literal(NEAREST + 1),
        "farthest": sql.Literal(1 - least),
    }
    statement = _filled(_NEAR, table, pieces)
    return [
        Neighbour(*row)
        for wanted in _live(conn, table, keys, tenant)
        for row in conn.execute(statement, wanted)
    ]


def _live(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str], tenant: str | None
) -> Iterator[Sequence[list[str] | str | None]]:
    """Yield document ids and chunk indexes of the keys that are there, some at a time; and whose.

    What is there can be cast to the columns' types.
    """
    live = sorted(live_keys(conn, table, keys, Level.CHUNK))
    for start in range(0, len(live), KEYS_PER_STATEMENT):
        pairs = map(split_key, live[start : start + KEYS_PER_STATEMENT])
        columns = [list(column) for column in zip(*pairs, strict=True)]
        yield [*columns, tenant if table.has("tenant") else None]


def _filled(
    statement: sql.SQL, table: CorpusTable, pieces: Mapping[str, sql.Composable]
) -> sql.Composed:
    types = (table.types["document_id"], table.types["chunk_index"])
    return statement.format(
        wanted=sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(each)) for each in types),
        relation=table.relation,
        key=table.key_expression("c"),
        document=table.column("document_id", "c"),
        index=table.column("chunk_index", "c"),
        tenant=_tenant(table),
        **pieces,
    )


def _tenant(table: CorpusTable) -> sql.Composable:
    if not table.has("tenant"):
        return sql.SQL("NULL::text")
    return sql.SQL("{}::text").format(table.column("tenant", "c"))


def _same_tenant(table: CorpusTable) -> sql.Composable:
    if not table.has("tenant"):
        return sql.SQL("")
    columns = (table.column("tenant", "o"), table.column("tenant", "c"))
    return sql.SQL("AND {} IS NOT DISTINCT FROM {}").format(*columns)
