"""Which keys of a golden set are in the corpus, and what stands in their rows."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable, Role
from pipeline.text import is_storable
from pipeline.types import Level, document_of, split_key

KEYS_PER_STATEMENT = 5000

_MAX_BIGINT = 2**63


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
    "text": is_storable,
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


def values_of_keys(
    conn: psycopg.Connection[Any], table: CorpusTable, keys: Iterable[str], value: sql.Composable
) -> Iterator[tuple[str, str]]:
    """Yield (key, value of an expression over its row, `chunk`) of the keys that are there.

    A key comes as often as the table has rows of it. psycopg's errors are not mapped.
    """
    roles: list[Role] = ["document_id", "chunk_index"]
    for part, columns in _parts(table, roles, {key: split_key(key) for key in keys if ":" in key}):
        for position, found in conn.execute(_values_statement(table, roles, value), columns):
            yield part[position - 1], found


def _found(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    roles: list[Role],
    wanted: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    """Yield the keys whose values, one a role, stand together in a row of the table."""
    statement = _statement(table, roles)
    for part, columns in _parts(table, roles, wanted):
        for (position,) in conn.execute(statement, columns):
            yield part[position - 1]


def _parts(
    table: CorpusTable, roles: list[Role], wanted: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Yield the keys that the columns' types can hold, a statement's at a time, with their values.

    The values come as a list a role.
    """
    types = _types(table, roles)
    possible = [
        (key, values)
        for key, values in wanted.items()
        if all(_IS_VALUE_OF[kind](value) for kind, value in zip(types, values, strict=True))
    ]
    for start in range(0, len(possible), KEYS_PER_STATEMENT):
        part = possible[start : start + KEYS_PER_STATEMENT]
        columns = [list(column) for column in zip(*(values for _, values in part), strict=True)]
        yield [key for key, _ in part], columns


def of_documents(table: CorpusTable, document_ids: Iterable[str]) -> tuple[sql.Composed, list[str]]:
    """Return the condition that a row is of some documents, and its one parameter."""
    kind = _COMPARED_AS.get(table.types["document_id"], "text")
    condition = sql.SQL("{} = ANY(%s::{}[])").format(
        _comparable(table, "document_id"), sql.SQL(kind)
    )
    return condition, [each for each in document_ids if _IS_VALUE_OF[kind](each)]


def _types(table: CorpusTable, roles: list[Role]) -> list[str]:
    return [_COMPARED_AS.get(table.types[role], "text") for role in roles]


def _statement(table: CorpusTable, roles: list[Role]) -> sql.Composed:
    """Return the query of the positions, from 1, of the arrays' values that a row holds."""
    return sql.SQL(
        "SELECT position FROM {} WHERE EXISTS (SELECT FROM {} AS chunk WHERE {})"
    ).format(_wanted(table, roles), table.relation, _matches(table, roles))


def _values_statement(table: CorpusTable, roles: list[Role], value: sql.Composable) -> sql.Composed:
    """Return the query of (position, value) of each row that holds the arrays' values."""
    return sql.SQL("SELECT position, {} FROM {} JOIN {} AS chunk ON {}").format(
        value, _wanted(table, roles), table.relation, _matches(table, roles)
    )


def _wanted(table: CorpusTable, roles: list[Role]) -> sql.Composed:
    arrays = [sql.SQL("%s::{}[]").format(sql.SQL(kind)) for kind in _types(table, roles)]
    return sql.SQL("unnest({}) WITH ORDINALITY AS wanted ({}, position)").format(
        sql.SQL(", ").join(arrays), sql.SQL(", ").join(map(sql.Identifier, roles))
    )


def _matches(table: CorpusTable, roles: list[Role]) -> sql.Composed:
    return sql.SQL(" AND ").join(
        sql.SQL("{} = wanted.{}").format(_comparable(table, role), sql.Identifier(role))
        for role in roles
    )


def _comparable(table: CorpusTable, role: Role) -> sql.Composable:
    column = table.column(role, "chunk")
    if table.types[role] in _COMPARED_AS:
        return column
    return sql.SQL("{}::text").format(column)
