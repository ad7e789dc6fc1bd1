"""PostgreSQL's full text search, many questions a statement."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.lexemes import FrequentLexemes, tsquery, without_frequent
from pipeline.retrieval.session import CorpusSession, rankings
from pipeline.retrieval.strategies import FulltextStrategy
from pipeline.retrieval.text_configs import TextConfigs
from pipeline.types import Failure, QueryBatch, Ranking

_LEXEMES = sql.SQL("""
SELECT tsvector_to_array(to_tsvector(question.config::regconfig, question.text))
FROM unnest(%(configs)s::text[], %(texts)s::text[])
    WITH ORDINALITY AS question(config, text, number)
ORDER BY question.number
""").format()

_SEARCH = sql.SQL("""
SELECT question.number, found.key, found.score
FROM unnest(%(numbers)s::int[], %(queries)s::text[]::tsquery[]) AS question(number, query)
CROSS JOIN LATERAL (
    SELECT {key} AS key, {rank}({document}, question.query, {normalization}) AS score
    FROM {relation} AS c
    WHERE {document} @@ question.query {within_tenant}
    ORDER BY score DESC, {key} COLLATE "C"
    LIMIT {limit}
) AS found
ORDER BY question.number, found.score DESC, found.key COLLATE "C"
""")


class _Group(NamedTuple):
    """What the questions of one statement share.

    `config` parses the chunks; None: a column holds them parsed.
    """

    tenant: str | None
    config: str | None


class FulltextRetriever:
    """Searches the chunks' lexemes. Scores are those of `ts_rank` or `ts_rank_cd`.

    With match "any", lexemes that too many chunks hold are left out of a question: they tell
    little and cost most. A question without lexemes (stop words only) finds nothing, as it would
    in PostgreSQL: an empty ranking, not a failure. Ties are ordered by key.
    """

    needs_vectors: ClassVar[bool] = False

    def __init__(
        self,
        session: CorpusSession,
        strategy: FulltextStrategy,
        frequent: FrequentLexemes | None = None,
    ) -> None:
        self._session = session
        self._strategy = strategy
        self._configs = TextConfigs(session)
        self._frequent = frequent or FrequentLexemes()

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A text that PostgreSQL cannot take is a Failure.

        Raises CorpusError where a tenant is asked of a corpus without tenants.
        """
        with corpus_errors(f"search {self._session.place}"):
            configs = [self._configs.of(language) for language in batch.languages]
            documents = [None if self._has_column else config for config in configs]
            frequent = {config: self._frequent_lexemes(config) for config in set(documents)}

            def ask(group: _Group, positions: Sequence[int]) -> list[Ranking]:
                lexemes = self._lexemes(
                    [batch.texts[position] for position in positions],
                    [configs[position] for position in positions],
                )
                return self._search(lexemes, frequent[group.config], group, limit)

            answers = ask_in_groups(
                range(len(batch)),
                lambda position: _Group(batch.tenants[position], documents[position]),
                self._strategy.questions_per_statement,
                ask,
            )
        return [answers[position] for position in range(len(batch))]

    def statement(
        self, limit: int, *, tenant: str | None = None, config: str | None = None
    ) -> sql.Composed:
        """Return the search for the parameters `numbers`, `queries` and `tenant`.

        `config` parses the chunks, where no column holds them parsed.
        """
        table = self._session.table
        return _SEARCH.format(
            key=table.key_expression("c"),
            rank=sql.SQL(self._strategy.rank),
            document=self._document(config),
            normalization=sql.Literal(self._strategy.normalization),
            relation=table.relation,
            within_tenant=self._session.within(tenant),
            limit=sql.Literal(limit),
        )

    @property
    def _has_column(self) -> bool:
        return self._session.table.has("text_search")

    def _document(self, config: str | None) -> sql.Composable:
        """Return the SQL expression of a chunk's tsvector; a constant config can use an index."""
        if config is None:
            return self._session.table.column("text_search", "c")
        return sql.SQL("to_tsvector({}::regconfig, {})").format(
            sql.Literal(config), self._session.table.column("content", "c")
        )

    def _frequent_lexemes(self, config: str | None) -> Mapping[str, int]:
        """Return the lexemes to leave out, with their chunk counts; none with match "all"."""
        strategy = self._strategy
        if strategy.match == "all":
            return {}
        return self._frequent.of(
            self._session,
            self._document(config),
            share=strategy.max_document_frequency,
            least=strategy.min_frequent,
        )

    def _lexemes(self, texts: Sequence[str], configs: Sequence[str]) -> list[list[str]]:
        rows = self._session.fetch(_LEXEMES, {"configs": configs, "texts": texts})
        return [lexemes for (lexemes,) in rows]

    def _search(
        self,
        lexemes: Sequence[Sequence[str]],
        frequent: Mapping[str, int],
        group: _Group,
        limit: int,
    ) -> list[Ranking]:
        """Search with each question's lexemes; a question without any is not asked."""
        queries = {
            number: tsquery(without_frequent(own, frequent), self._strategy.match)
            for number, own in enumerate(lexemes, start=1)
            if own
        }
        if not queries:
            return rankings([], len(lexemes))
        rows = self._session.fetch(
            self.statement(limit, tenant=group.tenant, config=group.config),
            {"numbers": [*queries], "queries": [*queries.values()], "tenant": group.tenant},
            share=len(lexemes) / self._strategy.questions_per_statement,
        )
        return rankings(rows, len(lexemes))
