"""Which text search configuration parses a question: the one its chunks were parsed with."""

from functools import cached_property

from psycopg import sql

from pipeline.corpus import languages
from pipeline.retrieval.session import CorpusSession

_MOST_COMMON = sql.SQL("""
SELECT text_config::text FROM {relation}
GROUP BY text_config ORDER BY count(*) DESC, text_config::text LIMIT 1
""")

_OF_COLUMN = sql.SQL("""
SELECT substring(pg_get_expr(adbin, adrelid) FROM 'to_tsvector\\(''([^'']+)''::regconfig')
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE adrelid = to_regclass({relation}) AND attname = {column}
""")


class TextConfigs:
    """Chooses configurations for one corpus; what it reads of the corpus, it reads once."""

    def __init__(self, session: CorpusSession) -> None:
        self._session = session

    def of(self, language: str | None) -> str:
        """Return the configuration for a question in this language.

        A column generated with one configuration is searched with that one, whatever the
        question's language. Else it is the language's, `simple` where PostgreSQL has none. Without
        a language: the setting, the column's, the one most chunks have, or `simple`.
        """
        if language:
            return self._column_config or languages.text_config(language, self._available)
        return self._session.text_config or self._column_config or self._most_common

    @cached_property
    def _available(self) -> frozenset[str]:
        return languages.available_text_configs(self._session.conn)

    @cached_property
    def _column_config(self) -> str | None:
        """The configuration that a generated text search column names as a constant."""
        table = self._session.table
        if table.managed or not table.has("text_search"):
            return None
        relation = table.relation.as_string(self._session.conn)
        rows = self._session.fetch(
            _OF_COLUMN.format(
                relation=sql.Literal(relation), column=sql.Literal(table.columns["text_search"])
            )
        )
        config: str | None = rows[0][0] if rows else None
        return config

    @cached_property
    def _most_common(self) -> str:
        """The configuration that most chunks of the managed table have."""
        if not self._session.table.managed:
            return languages.SIMPLE
        rows = self._session.fetch(_MOST_COMMON.format(relation=self._session.table.relation))
        return rows[0][0] if rows else languages.SIMPLE
