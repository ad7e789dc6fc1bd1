"""Which text search configuration parses a question: the one its chunks were parsed with."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from psycopg import sql

from pipeline.corpus import languages
from pipeline.errors import CorpusError
from pipeline.retrieval.session import CorpusSession

ALL_CHUNKS = sql.SQL("")

_MOST_COMMON = sql.SQL("""
SELECT text_config::text FROM {relation}
GROUP BY text_config ORDER BY count(*) DESC, text_config::text LIMIT 1
""")

_OF_ROWS = sql.SQL("SELECT DISTINCT text_config::text FROM {relation} ORDER BY 1")

_LANGUAGES = sql.SQL("SELECT DISTINCT {language}::text FROM {relation} ORDER BY 1")

_OF_COLUMN = sql.SQL("""
SELECT substring(pg_get_expr(adbin, adrelid) FROM 'to_tsvector\\(''([^'']+)''::regconfig')
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE adrelid = to_regclass({relation}) AND attname = {column}
""")


@dataclass(frozen=True, slots=True)
class Reading:
    """How questions are parsed to be compared with some of the chunks.

    `configs`: one a question. `chunks`: the condition, behind an AND, that these chunks meet, with
    the table's alias `c`.
    """

    configs: Sequence[str]
    chunks: sql.Composable


class TextConfigs:
    """Chooses configurations for one corpus; what it reads of the corpus, it reads once.

    `config`: see `FulltextStrategy.config`.
    """

    def __init__(self, session: CorpusSession, config: str = "question") -> None:
        self._session = session
        self._config = config

    def readings(self, asked: Sequence[str | None]) -> list[Reading]:
        """Return how questions in these languages are parsed: for all chunks, or for each part.

        Raises CorpusError where each chunk is to have its own configuration, and nothing says
        which.
        """
        if self._config == "row":
            return [Reading([config] * len(asked), chunks) for config, chunks in self._of_rows]
        if self._config == "question":
            return [Reading([self.of(language) for language in asked], ALL_CHUNKS)]
        return [Reading([self._config] * len(asked), ALL_CHUNKS)]

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
    def _of_rows(self) -> list[tuple[str, sql.Composable]]:
        """The configurations that chunks were parsed with, and the condition of those chunks."""
        table = self._session.table
        if self._column_config:
            return [(self._column_config, ALL_CHUNKS)]
        if table.managed:
            condition = sql.SQL("AND c.text_config = {}::regconfig")
            rows = self._session.fetch(_OF_ROWS.format(relation=table.relation))
            return [(config, condition.format(sql.Literal(config))) for (config,) in rows]
        if not table.has("language"):
            raise CorpusError(
                f'config = "row", but {table} has no language column; name it in [corpus] language'
            )
        return list(self._of_languages())

    def _of_languages(self) -> Iterator[tuple[str, sql.Composable]]:
        """Yield each configuration and the condition of the chunks in its languages."""
        table = self._session.table
        rows = self._session.fetch(
            _LANGUAGES.format(language=table.column("language"), relation=table.relation)
        )
        spellings: defaultdict[str, list[str | None]] = defaultdict(list)
        for (language,) in rows:
            spellings[self.of(language)].append(language)
        of_chunk = sql.SQL("{}::text").format(table.column("language", "c"))
        for config, those in spellings.items():
            named = [language for language in those if language is not None]
            among = sql.SQL("{} = ANY({}::text[])").format(of_chunk, sql.Literal(named))
            unknown = sql.SQL(" OR {} IS NULL").format(of_chunk) if None in those else ALL_CHUNKS
            yield config, sql.SQL("AND ({}{})").format(among, unknown)

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
