"""PostgreSQL's full text search, many questions a statement."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.lexemes import FrequentLexemes
from pipeline.retrieval.parsing import Parser
from pipeline.retrieval.session import CorpusSession, at_least, rankings
from pipeline.retrieval.strategies.fulltext import FulltextStrategy
from pipeline.retrieval.text_configs import ALL_CHUNKS, Reading, TextConfigs
from pipeline.types import Failure, QueryBatch, Ranking

_SEARCH = sql.SQL("""
SELECT question.number, found.key, found.score
FROM unnest(%(numbers)s::int[], %(queries)s::text[]::tsquery[]) AS question(number, query)
CROSS JOIN LATERAL (
    SELECT {key} AS key, {rank}({weights}{document}, question.query, {normalization}) AS score
    FROM {relation} AS c
    WHERE {document} @@ question.query {chunks} {within}
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

    A question without lexemes (stop words only) finds nothing, as it would in PostgreSQL: an empty
    ranking, not a failure. Ties are ordered by key. Where chunks were parsed by configurations of
    their own, each part of them is searched by itself, and the rankings are put together.
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
        self._configs = TextConfigs(session, strategy.config)
        self._parser = Parser(session, strategy, frequent or FrequentLexemes())

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A text that PostgreSQL cannot take is a Failure.

        Raises CorpusError where a tenant is asked of a corpus without tenants, or the settings ask
        for what the database does not have.
        """
        with corpus_errors(f"search {self._session.place}"):
            readings = self._configs.readings(batch.languages)
            found = [self._of_part(reading, batch, limit) for reading in readings]
        answers = [[part[position] for part in found] for position in range(len(batch))]
        return [_together(parts, limit) for parts in answers]

    def _of_part(
        self, reading: Reading, batch: QueryBatch, limit: int
    ) -> dict[int, Ranking | Failure]:
        """Search one part of the chunks for all questions, which are parsed as it was."""
        configs = reading.configs
        documents = [None if self._parser.has_column else config for config in configs]
        tenants = self._strategy.whose(batch.tenants)
        frequent = {each: self._parser.frequent(each, reading.chunks) for each in set(documents)}

        def ask(group: _Group, positions: Sequence[int]) -> list[Ranking]:
            queries = self._parser.queries(
                [batch.texts[position] for position in positions],
                [configs[position] for position in positions],
                frequent[group.config],
            )
            return self._search(queries, group, reading.chunks, limit)

        return ask_in_groups(
            range(len(batch)),
            lambda position: _Group(tenants[position], documents[position]),
            self._strategy.questions_per_statement,
            ask,
        )

    def statement(
        self,
        limit: int,
        *,
        tenant: str | None = None,
        config: str | None = None,
        chunks: sql.Composable = ALL_CHUNKS,
    ) -> sql.Composed:
        """Return the search for the parameters `numbers`, `queries` and `tenant`.

        `config` parses the chunks, where no column holds them parsed; `chunks` is the condition,
        behind an AND, of those to search.
        """
        table, strategy = self._session.table, self._strategy
        return _SEARCH.format(
            key=table.key_expression("c"),
            rank=sql.SQL(strategy.rank),
            weights=_weights(strategy.rank_weights),
            document=self._parser.document(config),
            normalization=sql.Literal(strategy.normalization),
            relation=table.relation,
            chunks=chunks,
            within=self._session.within(tenant, strategy.where),
            limit=sql.Literal(limit),
        )

    def _search(
        self, queries: Sequence[str], group: _Group, chunks: sql.Composable, limit: int
    ) -> list[Ranking]:
        """Search for each question's query; a question without one is not asked."""
        asked = {number: query for number, query in enumerate(queries, start=1) if query}
        if not asked:
            return rankings([], len(queries))
        rows = self._session.fetch(
            self.statement(limit, tenant=group.tenant, config=group.config, chunks=chunks),
            {"numbers": [*asked], "queries": [*asked.values()], "tenant": group.tenant},
            share=len(queries) / self._strategy.questions_per_statement,
        )
        found = rankings(rows, len(queries))
        return [at_least(self._strategy.min_score, ranking) for ranking in found]


def _weights(weights: Sequence[float] | None) -> sql.Composable:
    """Return the ranking function's first argument, where it is given."""
    if weights is None:
        return sql.SQL("")
    return sql.SQL("{}::float4[], ").format(sql.Literal(list(weights)))


def _together(parts: Sequence[Ranking | Failure], limit: int) -> Ranking | Failure:
    """Put the rankings of several parts of the chunks together, best first, ties by key."""
    rows: list[tuple[float, str]] = []
    for part in parts:
        if isinstance(part, Failure):
            return part
        rows += zip(part.scores, part.keys, strict=True)
    rows.sort(key=lambda row: (-row[0], row[1]))
    return Ranking([key for _, key in rows[:limit]], [score for score, _ in rows[:limit]])
