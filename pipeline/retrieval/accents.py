"""Taking accents off texts, as a user's own search does: by unaccent, where it is there."""

from functools import cached_property
from typing import Literal

from psycopg import sql

from pipeline.errors import CorpusError
from pipeline.retrieval.session import CorpusSession

# Called whatever it is, as f_unaccent: unaccent itself cannot stand in a generated column, so
# everyone wraps it.
_OF_COLUMN = sql.SQL("""
SELECT nspname, proname FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
JOIN pg_proc p ON p.oid = to_regprocedure(
    substring(pg_get_expr(adbin, adrelid) FROM '([a-z0-9_.]*unaccent[a-z0-9_]*)\\(') || '(text)')
JOIN pg_namespace n ON n.oid = pronamespace
WHERE adrelid = to_regclass({relation}) AND attname = {column}
""")

_OF_SERVER = sql.SQL("""
SELECT nspname, proname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
WHERE proname = 'unaccent' AND pronargs = 1 AND proargtypes[0] = 'text'::regtype
AND has_schema_privilege(n.oid, 'USAGE') ORDER BY pg_function_is_visible(p.oid) DESC, nspname
LIMIT 1
""").format()


class Accents:
    """Takes accents off where `setting` says so; see `FulltextStrategy.unaccent`."""

    def __init__(self, session: CorpusSession, *, setting: Literal["auto"] | bool) -> None:
        self._session = session
        self._setting = setting

    def off(self, text: sql.Composable) -> sql.Composable:
        """Return the SQL of a text, a question's or a chunk's, as it is to be parsed.

        Raises CorpusError where the setting is true and the database has no unaccent.
        """
        return text if self._function is None else sql.SQL("{}({})").format(self._function, text)

    @cached_property
    def _function(self) -> sql.Identifier | None:
        """What takes accents off; None: they stay on."""
        if self._setting is False:
            return None
        found = self._of_column() or (self._of_server() if self._setting is True else None)
        return found and sql.Identifier(*found)

    def _of_column(self) -> tuple[str, str] | None:
        """Return the function that a generated column of parsed texts was made with."""
        table = self._session.table
        if not table.has("text_search"):
            return None
        relation = table.relation.as_string(self._session.conn)
        rows = self._session.fetch(
            _OF_COLUMN.format(
                relation=sql.Literal(relation), column=sql.Literal(table.columns["text_search"])
            )
        )
        return rows[0] if rows else None

    def _of_server(self) -> tuple[str, str]:
        rows = self._session.fetch(_OF_SERVER)
        if not rows:
            raise CorpusError(
                f"unaccent = true, but database {self._session.conn.info.dbname} has no function"
                " unaccent; run `CREATE EXTENSION unaccent` there as an owner of the database"
            )
        return rows[0]
