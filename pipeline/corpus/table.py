"""The corpus table: which relation and columns hold the chunks, checked against the catalog."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.settings import CorpusSettings
from pipeline.errors import CorpusError

Role = Literal[
    "document_id", "chunk_index", "content", "embedding", "tenant", "language", "text_search"
]
"""What a column is to us; `[corpus]` of recallwatch.toml names the column for each role."""

ROLES: tuple[Role, ...] = get_args(Role)

_LENGTHS = {
    "vector": "vector_dims({})",
    "halfvec": "vector_dims({})",
    "sparsevec": "split_part({}::text, '/', 2)::int",
    "bit": "length({})",
}
"""Type of a column that pgvector searches -> the expression of a value's dimensions."""


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """A chunks table whose configured columns were found, with the SQL pieces to search it.

    `columns` maps each configured role to a column name, `types` to that column's type without
    its modifier ("integer", "text", "vector"). `dimensions` is the declared n of vector(n),
    halfvec(n), sparsevec(n) or bit(n), else that of a stored vector, else None: no vector is stored
    yet. `managed`: `corpus load` owns it.
    """

    schema: str
    name: str
    columns: Mapping[Role, str]
    types: Mapping[Role, str]
    dimensions: int | None
    managed: bool

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def relation(self) -> sql.Identifier:
        """The table, qualified and quoted."""
        return sql.Identifier(self.schema, self.name)

    def has(self, role: Role) -> bool:
        """Return whether a column is configured for an optional role."""
        return role in self.columns

    def column(self, role: Role, alias: str | None = None) -> sql.Identifier:
        """Return a column, quoted, behind the table's alias where given.

        Raises KeyError for an optional role without a column: ask `has` first.
        """
        name = self.columns[role]
        return sql.Identifier(alias, name) if alias else sql.Identifier(name)

    def vector_length(self) -> sql.Composed:
        """Return the SQL expression of the dimensions of a row's vector."""
        return sql.SQL(_LENGTHS[self.types["embedding"]]).format(self.column("embedding"))

    def key_expression(self, alias: str | None = None) -> sql.Composed:
        """Return the SQL expression of the chunk key: document_id || ':' || chunk_index."""
        return sql.SQL("({}::text || ':' || {}::text)").format(
            self.column("document_id", alias), self.column("chunk_index", alias)
        )


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as the catalog has it; `modifier` is n of vector(n), or -1."""

    name: str
    type: str
    modifier: int
    full_type: str


def _castable(name: str) -> str:
    """Return a type's name as a cast has it: `character` alone would be one character."""
    return "bpchar" if name == "character" else name


@corpus_errors("read the corpus table's description")
def describe(conn: psycopg.Connection[Any], settings: CorpusSettings) -> CorpusTable:
    """Find the configured table and check its columns.

    Raises CorpusError, in one line, where the table, a column or pgvector is missing, or a column
    has a type that cannot be searched.
    """
    schema, name = _resolve(conn, settings)
    found = {column.name: column for column in _columns(conn, schema, name)}
    configured: dict[Role, str] = {
        role: column for role in ROLES if (column := getattr(settings, role)) is not None
    }
    where = f"{schema}.{name}"
    for role, column in configured.items():
        if column not in found:
            raise CorpusError(
                f"table {where} has no column {column!r}, which [corpus] {role} names; "
                f"its columns: {', '.join(found)}"
            )
    _refuse_placeholders(where, configured.values())
    by_role = {role: found[column] for role, column in configured.items()}
    _check_types(conn, by_role, where)
    table = CorpusTable(
        schema=schema,
        name=name,
        columns=configured,
        types={role: _castable(column.type) for role, column in by_role.items()},
        dimensions=declared if (declared := by_role["embedding"].modifier) > 0 else None,
        managed=settings.is_managed,
    )
    return table if table.dimensions else _measured(conn, table)


def _resolve(conn: psycopg.Connection[Any], settings: CorpusSettings) -> tuple[str, str]:
    """Return schema and name of the table, the schema by search_path where it is not given."""
    parts = settings.table.split(".", maxsplit=1)
    row = conn.execute(
        """SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
           WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')""",
        [sql.Identifier(*parts).as_string(conn)],
    ).fetchone()
    if row is None:
        raise CorpusError(_no_table(conn, settings))
    schema, name = row
    return schema, name


def _no_table(conn: psycopg.Connection[Any], settings: CorpusSettings) -> str:
    """Say that the table is missing, and name those that could be meant."""
    candidates = [
        f"{schema}.{name}"
        for schema, name in conn.execute(
            """SELECT DISTINCT n.nspname, c.relname
               FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
               JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_type t ON t.oid = atttypid
               WHERE t.typname IN ('vector', 'halfvec', 'sparsevec')
               AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
               AND NOT a.attisdropped ORDER BY 1, 2 LIMIT 5"""
        )
    ]
    message = f"no table {settings.table} in database {conn.info.dbname}"
    if candidates:
        message += f" (tables with vectors: {', '.join(candidates)})"
    return f"{message}; run `recallwatch corpus load FILE`, or name yours in [corpus] table"


def _columns(conn: psycopg.Connection[Any], schema: str, name: str) -> Iterable[_Column]:
    rows = conn.execute(
        """SELECT a.attname, format_type(a.atttypid, NULL), a.atttypmod,
                  format_type(a.atttypid, a.atttypmod)
           FROM pg_attribute a WHERE a.attrelid = to_regclass(%s)
           AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum""",
        [sql.Identifier(schema, name).as_string(conn)],
    )
    return [_Column(*row) for row in rows]


def _refuse_placeholders(where: str, columns: Iterable[str]) -> None:
    """Refuse names in which psycopg would look for a parameter's place, quoted or not."""
    for name in (where, *columns):
        if "%" in name:
            raise CorpusError(
                f"the name {name!r} holds a %, which cannot be searched: name a view in [corpus]"
                " table that calls it otherwise"
            )


def _check_types(
    conn: psycopg.Connection[Any], by_role: Mapping[Role, _Column], where: str
) -> None:
    """Refuse an embedding that is not a vector and a text search column that is not a tsvector."""
    embedding = by_role["embedding"]
    if embedding.type not in _LENGTHS:
        _check_extension(conn)
        raise CorpusError(
            f"column {where}.{embedding.name} is {embedding.full_type}, not pgvector's vector(n), "
            f"halfvec(n), sparsevec(n) or bit(n); "
            f"name the column that holds the vectors in [corpus] embedding"
        )
    text_search = by_role.get("text_search")
    if text_search and text_search.type != "tsvector":
        raise CorpusError(
            f"column {where}.{text_search.name} is {text_search.full_type}, not tsvector; "
            f"leave [corpus] text_search out to parse the text at each search"
        )


def _check_extension(conn: psycopg.Connection[Any]) -> None:
    """Raise CorpusError where `vector` is not a type that statements can name."""
    row = conn.execute(
        """SELECT to_regtype('vector') IS NOT NULL, n.nspname,
               has_schema_privilege(n.oid, 'USAGE'), current_user FROM (SELECT) AS one
           LEFT JOIN pg_extension e ON e.extname = 'vector'
           LEFT JOIN pg_namespace n ON n.oid = e.extnamespace"""
    ).fetchone()
    known, schema, usable, role = row or (False, None, False, "")
    if known:
        return
    database = conn.info.dbname
    if schema is None:
        raise CorpusError(
            f"pgvector is not installed in database {database}; "
            f"run `CREATE EXTENSION vector` there as an owner of the database"
        )
    if not usable:
        grant = sql.SQL("GRANT USAGE ON SCHEMA {} TO {}")
        names = (sql.Identifier(schema), sql.Identifier(role))
        raise CorpusError(
            f"pgvector is in schema {schema} of database {database}, which role {role} may not "
            f"use; run `{grant.format(*names).as_string(conn)}` as the schema's owner"
        )
    raise CorpusError(
        f"pgvector is in schema {schema} of database {database}, which is not on the search path; "
        f"run `ALTER DATABASE {database} SET search_path = public, {schema}`"
    )


def _measured(conn: psycopg.Connection[Any], table: CorpusTable) -> CorpusTable:
    """Take the dimensions of an undeclared vector column from one stored vector."""
    row = conn.execute(
        sql.SQL("SELECT {} FROM {} WHERE {} IS NOT NULL LIMIT 1").format(
            table.vector_length(), table.relation, table.column("embedding")
        )
    ).fetchone()
    return replace(table, dimensions=row[0]) if row else table
