"""Which keys of a golden set are in the corpus."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable, Role
from pipeline.types import Level, document_of, split_key

KEYS_PER_STATEMENT = 5000

_MAX_BIGINT = 2**63
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _is_text(value: str) -> bool:
    return not _UNSTORABLE.search(value)


def _is_integer(value: str) -> bool:
    """Return whether PostgreSQL would write a bigint exactly so: no leading zeros, no plus."""
    return (
        bool(re.fullmatch(r"0|-?[1-9][0-9]{0,18}", value))
        and -_MAX_BIGINT <= int(value) < _MAX_BIGINT
    )


def _is_uuid(value: str) -> bool:
    """Return whether PostgreSQL would write a uuid exactly so: lower case, with hyphens."""
    try:
        return str(UUID(value)) == value
    except ValueError:
        return False


# Column type -> the type to compare in, so that the column's index serves. Others: as text.
_COMPARED_AS: Mapping[str, str] = {
    "text": "text",
    "smallint": "bigint",
    "integer": "bigint",
    "bigint": "bigint",
    "uuid": "uuid",
}
_IS_VALUE_OF: Mapping[str, Callable[[str], bool]] = {
    "text": _is_text,
    "bigint": _is_integer,
    "uuid": _is_uuid,
}


@corpus_errors("look keys up in the corpus")
def live_keys(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str], level: Level
) -> set[str]:
    """Return those of the chunk keys that the corpus holds; at document level, document ids.

    A key lives only as the corpus writes it: 07 is not 7. A key that the columns' types cannot
    hold is not live. Raises TransientError or CorpusError where the corpus cannot be read.
    """
    if level is Level.DOCUMENT:
        documents = {document: (document,) for document in map(document_of, keys)}
        return set(_found(conn, table, ["document_id"], documents))
    chunks = {key: split_key(key) for key in keys if ":" in key}
    return set(_found(conn, table, ["document_id", "chunk_index"], chunks))


def _found(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    roles: list[Role],
    wanted: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    """Yield the keys whose values, one a role, stand together in a row of the table."""
    types = [_COMPARED_AS.get(table.types[role], "text") for role in roles]
    possible = [
        (key, values)
        for key, values in wanted.items()
        if all(_IS_VALUE_OF[kind](value) for kind, value in zip(types, values, strict=True))
    ]
    statement = _statement(table, roles, types)
    for start in range(0, len(possible), KEYS_PER_STATEMENT):
        part = possible[start : start + KEYS_PER_STATEMENT]
        columns = [list(column) for column in zip(*(values for _, values in part), strict=True)]
        for (position,) in conn.execute(statement, columns):
            yield part[position - 1][0]


def _statement(table: CorpusTable, roles: list[Role], types: list[str]) -> sql.Composed:
    """Return the query of the positions, from 1, of the arrays' values that a row holds."""
    arrays = [sql.SQL("%s::{}[]").format(sql.SQL(kind)) for kind in types]
    matches = [
        sql.SQL("{} = wanted.{}").format(_comparable(table, role), sql.Identifier(role))
        for role in roles
    ]
    return sql.SQL(
        "SELECT position FROM unnest({}) WITH ORDINALITY AS wanted ({}, position) "
        "WHERE EXISTS (SELECT FROM {} AS chunk WHERE {})"
    ).format(
        sql.SQL(", ").join(arrays),
        sql.SQL(", ").join(map(sql.Identifier, roles)),
        table.relation,
        sql.SQL(" AND ").join(matches),
    )


def _comparable(table: CorpusTable, role: Role) -> sql.Composable:
    column = table.column(role, "chunk")
    if table.types[role] in _COMPARED_AS:
        return column
    return sql.SQL("{}::text").format(column)
