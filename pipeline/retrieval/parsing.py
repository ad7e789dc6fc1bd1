"""How full text search reads texts: chunks as tsvectors, questions as tsqueries."""

from collections.abc import Mapping, Sequence

from psycopg import sql

from pipeline.retrieval.accents import Accents
from pipeline.retrieval.lexemes import FrequentLexemes, tsquery, without_frequent
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies.fulltext import FulltextStrategy, Match
from pipeline.retrieval.text_configs import ALL_CHUNKS

_PARSE = sql.SQL("""
SELECT {parsed}
FROM unnest(%(configs)s::text[], %(texts)s::text[])
    WITH ORDINALITY AS question(config, text, number)
ORDER BY question.number
""")

_LEXEMES = sql.SQL("tsvector_to_array(to_tsvector(question.config::regconfig, {text}))")

_PARSED: Mapping[Match, sql.SQL] = {
    "any": _LEXEMES,
    "all": _LEXEMES,
    "phrase": sql.SQL("phraseto_tsquery(question.config::regconfig, {text})::text"),
    "websearch": sql.SQL("websearch_to_tsquery(question.config::regconfig, {text})::text"),
}
"""What is asked of PostgreSQL for a question: its lexemes, or a query made by rules of its own."""


class Parser:
    """Reads texts as a strategy says.

    With match "any", lexemes that too many chunks hold are left out of a question: they tell
    little and cost most.
    """

    def __init__(
        self, session: CorpusSession, strategy: FulltextStrategy, frequent: FrequentLexemes
    ) -> None:
        self._session = session
        self._strategy = strategy
        self._accents = Accents(session, setting=strategy.unaccent)
        self._frequent = frequent

    @property
    def has_column(self) -> bool:
        """Whether a column holds the chunks parsed."""
        return self._session.table.has("text_search")

    def document(self, config: str | None) -> sql.Composable:
        """Return the SQL expression of a chunk's tsvector; a constant config can use an index.

        None: the column that holds it.
        """
        if config is None:
            return self._session.table.column("text_search", "c")
        text = self._accents.off(self._session.table.column("content", "c"))
        return sql.SQL("to_tsvector({}::regconfig, {})").format(sql.Literal(config), text)

    def frequent(
        self, config: str | None, chunks: sql.Composable = ALL_CHUNKS
    ) -> Mapping[str, int]:
        """Return the lexemes to leave out, with the chunks that hold each; see `FrequentLexemes`.

        None unless one shared term is enough.
        """
        strategy = self._strategy
        if strategy.match != "any":
            return {}
        return self._frequent.of(
            self._session,
            self.document(config),
            chunks,
            share=strategy.max_document_frequency,
            least=strategy.min_frequent,
        )

    def queries(
        self, texts: Sequence[str], configs: Sequence[str], frequent: Mapping[str, int]
    ) -> list[str]:
        """Return each question's tsquery, blank where no lexeme is left of it."""
        match, text = self._strategy.match, self._accents.off(sql.SQL("question.text"))
        parsed = _PARSED[match].format(text=text)
        rows = self._session.fetch(
            _PARSE.format(parsed=parsed), {"configs": configs, "texts": texts}
        )
        match match:
            case "any" | "all":
                return [tsquery(without_frequent(lexemes, frequent), match) for (lexemes,) in rows]
            case "phrase" | "websearch":
                return [query for (query,) in rows]
