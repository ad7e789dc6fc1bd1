"""Golden sets from a table of somebody's PostgreSQL database.

    CREATE TABLE rag_eval_queries (question text, expected_keys jsonb, source text, active boolean)

`expected_keys` is a JSON list of keys, a JSON object of key -> grade, an array of texts, or a text
as in a cell of a CSV file. Other columns are read where they are named as the fields of
`pipeline.golden.record`; `id` stands for `external_id`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from pipeline.errors import InputError
from pipeline.golden.formats import (
    Notice,
    Read,
    ReadOptions,
    Record,
    Refused,
    refuse_options,
)
from pipeline.golden.readers.csv_table import field_of
from pipeline.golden.readers.expected_cells import expected_from_json, refuse_nothing
from pipeline.golden.readers.ids import Ids
from pipeline.golden.record import FIELDS, question_from
from pipeline.server_urls import check_postgres, check_readable
from pipeline.text import quoted

DEFAULT_TABLE = "rag_eval_queries"
_YES = (True, 1, "true", "t", "yes", "y", "1")
_NO = (False, 0, "false", "f", "no", "n", "0")
_ROWS_AT_ONCE = 1_000
_CONNECT_SECONDS = 10


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield the questions of `options.table`, by default `rag_eval_queries`, in one snapshot.

    `source` is the URL of the database; the table may be qualified as `schema.table`. Rows whose
    `active` is not true are left out. Raises InputError when the table cannot be read.
    """
    refuse_options(source, options, "table", "document_ids")
    name = options.table or DEFAULT_TABLE
    ids = Ids(all_documents=options.document_ids)
    inactive = 0
    with _connected(source, name) as connection:
        relation = sql.Identifier(*name.split("."))
        columns = _columns(connection, relation, name)
        yield from _unread(columns)
        for number, row in enumerate(_rows(connection, relation, columns), start=1):
            values = {f: v for f, v in zip(columns.values(), row, strict=True) if f}
            if _is_active(values.pop("active", True), name):
                yield _record(_place(name, number, values), values, ids)
            else:
                inactive += 1
    if inactive:
        yield Notice(f"{inactive:,} rows are not active and were left out")
    yield from map(Notice, ids.notices())


def _is_active(value: object, table: str) -> bool:
    """Read a column `active`, whatever its type; NULL is not true."""
    if value in _YES:
        return True
    if value is None or value in _NO or (isinstance(value, str) and value.strip().lower() in _NO):
        return False
    if isinstance(value, str) and value.strip().lower() in _YES:
        return True
    raise InputError(
        f"table {table} has {quoted(str(value))} in its column active: true or false is needed"
    )


@contextmanager
def _connected(url: str, table: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a connection that only reads; the errors of the database are InputErrors."""
    try:
        check_readable(url)
        check_postgres(url)
    except ValueError as error:
        raise InputError(f"the database URL {error}") from None
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS) as connection:
            connection.read_only = True
            yield connection
    except psycopg.errors.UndefinedTable:
        raise InputError(
            f"the database holds no table {table}: name another with --table"
        ) from None
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"table {table} cannot be read: {reason}") from None


def _columns(
    connection: psycopg.Connection[TupleRow], relation: sql.Identifier, table: str
) -> dict[str, str]:
    """Return each column and the field it is read as, "" where it is none."""
    cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(relation))
    names = [column.name for column in cursor.description or ()]
    columns = {name: _field(name, names) for name in names}
    for needed in ("question", "expected"):
        if needed not in columns.values():
            raise InputError(f"table {table} has no column {needed}: it has {', '.join(names)}")
    return columns


def _field(name: str, names: Sequence[str]) -> str:
    field = field_of(name).removesuffix(":")
    if name != field and field in names:
        return ""
    return field if field in (*FIELDS, "active") else ""


def _unread(columns: Mapping[str, str]) -> Iterator[Notice]:
    if others := [name for name, field in columns.items() if not field]:
        yield Notice(f"columns that were not read: {', '.join(others)}")


def _rows(
    connection: psycopg.Connection[TupleRow], relation: sql.Identifier, columns: Mapping[str, str]
) -> Iterator[TupleRow]:
    """Yield the rows by external id where there is one, so that the order is the same again."""
    order = [sql.Identifier(name) for name, field in columns.items() if field == "external_id"]
    query = sql.SQL("SELECT * FROM {} {}").format(
        relation, sql.SQL("ORDER BY {}").format(order[0]) if order else sql.SQL("")
    )
    with connection.cursor(name="golden") as cursor:  # a name keeps the rows on the server
        cursor.itersize = _ROWS_AT_ONCE
        yield from cursor.execute(query)


def _place(table: str, number: int, values: Mapping[str, Any]) -> str:
    name = values.get("external_id")
    return f"{table}: row {number}" if name is None else f"{table}: id {quoted(str(name))}"


def _record(place: str, values: Mapping[str, Any], ids: Ids) -> Record:
    fields = {field: _plain(field, value) for field, value in values.items() if value is not None}
    raw = json.dumps(fields, ensure_ascii=False) + "\n"
    try:
        expected = expected_from_json(fields.get("expected", []), ids)
        raw = json.dumps({**fields, "expected": expected}, ensure_ascii=False) + "\n"
        refuse_nothing(expected, fields.get("kind"))
        return Read(place, question_from({**fields, "expected": expected}), raw)
    except InputError as error:
        return Refused(place, str(error), raw)


def _plain(field: str, value: object) -> object:
    """Return a value as JSON has it: ids may be UUIDs, labels may be dates."""
    if field in {"kind", "source"}:
        return str(value).strip().lower()
    return value if isinstance(value, str | int | float | list | dict) else str(value)
