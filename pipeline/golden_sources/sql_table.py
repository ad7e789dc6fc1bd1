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
    DEFAULT_TABLE,
    Notice,
    Read,
    ReadOptions,
    Record,
    is_url,
    refuse_options,
    refused,
)
from pipeline.golden.readers.csv_table import field_of
from pipeline.golden.readers.expected_cells import expected_from_json, refuse_nothing
from pipeline.golden.readers.ids import Ids
from pipeline.golden.readers.values import flag_from
from pipeline.golden.record import FIELDS, question_from
from pipeline.server_urls import check_postgres, check_readable
from pipeline.text import quoted

_ROWS_AT_ONCE = 1_000
_CONNECT_SECONDS = 10


def read(source: str, *, options: ReadOptions) -> Iterator[Record]:
    """Yield the questions of `options.table`, by default `rag_eval_queries`, in one snapshot.

    `source` is the URL of the database; the table may be qualified as `schema.table`. Rows whose
    `active` is false or NULL are left out. Raises InputError when the table cannot be read.
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
            if record := _record(_place(name, number, values), values, ids, options):
                yield record
            else:
                inactive += 1
    if inactive:
        yield Notice(f"{inactive:,} rows are not active and were left out")
    yield from map(Notice, ids.notices())


@contextmanager
def _connected(url: str, table: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """Give a connection that only reads; the errors of the database are InputErrors."""
    if not is_url(url):
        raise InputError("a database is named by its URL, as postgresql://me@host/name")
    url = f"postgresql://{url.partition('://')[2]}"
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
    except (psycopg.Error, ValueError) as error:  # Python reads no number of 4,300 digits
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
            raise InputError(f"table {table} has no column {needed}: it has {_listed(names)}")
    return columns


def _field(name: str, names: Sequence[str]) -> str:
    field = field_of(name).removesuffix(":")
    if name != field and field in names:
        return ""
    return field if field in (*FIELDS, "active") else ""


def _unread(columns: Mapping[str, str]) -> Iterator[Notice]:
    if others := [name for name, field in columns.items() if not field]:
        yield Notice(f"columns that were not read: {_listed(others)}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name if name.isidentifier() else quoted(name) for name in names)


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


def _record(place: str, values: Mapping[str, Any], ids: Ids, options: ReadOptions) -> Record | None:
    """Return the question of a row, or what is wrong with it; None for one that is not active."""
    fields = {field: _plain(field, value) for field, value in values.items() if value is not None}
    active = fields.pop("active", None if "active" in values else True)
    try:
        if active is None or not flag_from("active", str(active)):
            return None
        fields |= options.stated(fields)
        if "must_pass" in fields:
            fields["must_pass"] = flag_from("must_pass", str(fields["must_pass"]))
        fields["expected"] = expected_from_json(fields.get("expected", []), ids)
        refuse_nothing(fields["expected"], fields.get("kind"))
        return Read(place, question_from(fields), _line_of(fields, ids))
    except InputError as error:
        return refused(place, error, _line_of(fields, ids), fields)


def _line_of(fields: Mapping[str, object], ids: Ids) -> str:
    """Return the line of JSONL that says the same, its ids as the keys that they stand for."""
    expected = fields.get("expected")
    if isinstance(expected, list):
        expected = [ids.uncounted(name) if isinstance(name, str) else name for name in expected]
    return json.dumps({**fields, "expected": expected}, ensure_ascii=False) + "\n"


def _plain(field: str, value: object) -> object:
    """Return a value as JSON has it: ids may be UUIDs, labels may be dates."""
    if field in {"kind", "source"}:
        return str(value).strip().lower()
    return value if isinstance(value, str | int | float | list | dict) else str(value)
