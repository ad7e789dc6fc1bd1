"""Search by similar spelling with pg_trgm, many questions a statement."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.errors import CorpusError
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.session import CorpusSession, at_least, rankings
from pipeline.retrieval.strategies.trigram import Similarity, TrigramStrategy
from pipeline.types import Failure, QueryBatch, Ranking

# Only the operator lets a trigram index serve; it compares by the threshold of its name.
_SEARCH = sql.SQL("""
SELECT question.number, found.key, found.score
FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS question(text, number)
CROSS JOIN LATERAL (
    SELECT {key} AS key, {function}(question.text, {content}) AS score
    FROM {relation} AS c
    WHERE question.text OPERATOR({schema}.{operator}) {content} {within}
    ORDER BY score DESC, {key} COLLATE "C"
    LIMIT {limit}
) AS found
ORDER BY question.number, found.score DESC, found.key COLLATE "C"
""")

_OPERATORS: Mapping[Similarity, sql.SQL] = {
    # A percent sign is doubled where a statement has parameters.
    "similarity": sql.SQL("%%"),
    "word_similarity": sql.SQL("<%%"),
    "strict_word_similarity": sql.SQL("<<%%"),
}

_SCHEMA = sql.SQL("""
SELECT nspname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
WHERE proname = {name} AND pronargs = 2 AND proargtypes[0] = 'text'::regtype
AND proargtypes[1] = 'text'::regtype AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY pg_function_is_visible(p.oid) DESC, nspname LIMIT 1
""")


class TrigramRetriever:
    """Searches for chunks spelled like the question. Scores are pg_trgm's similarities, 0 to 1.

    Ties are ordered by key.
    """

    needs_vectors: ClassVar[bool] = False

    def __init__(self, session: CorpusSession, strategy: TrigramStrategy) -> None:
        self._session = session
        self._strategy = strategy

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A text that PostgreSQL cannot take is a Failure.

        Raises CorpusError where the database has no pg_trgm, or a tenant is asked of a corpus
        without tenants.
        """

        def ask(tenant: str | None, positions: Sequence[int]) -> list[Ranking]:
            return self._search([batch.texts[position] for position in positions], tenant, limit)

        with corpus_errors(f"search {self._session.place}"):
            answers = ask_in_groups(
                range(len(batch)),
                self._strategy.whose(batch.tenants).__getitem__,
                self._strategy.questions_per_statement,
                ask,
            )
        return [answers[position] for position in range(len(batch))]

    def statement(self, limit: int, *, tenant: str | None = None) -> sql.Composed:
        """Return the search for the parameters `texts` and `tenant`."""
        table, strategy = self._session.table, self._strategy
        return _SEARCH.format(
            key=table.key_expression("c"),
            function=sql.Identifier(self._schema, strategy.similarity),
            content=table.column("content", "c"),
            relation=table.relation,
            schema=sql.Identifier(self._schema),
            operator=_OPERATORS[strategy.similarity],
            within=self._session.within(tenant, strategy.where),
            limit=sql.Literal(limit),
        )

    @property
    def planner_settings(self) -> dict[str, str]:
        """The server settings under which the statement runs; what is unset is not sent."""
        if self._strategy.threshold is None:
            return {}
        name = f"pg_trgm.{self._strategy.similarity}_threshold"
        return {name: str(self._strategy.threshold)}

    def _search(self, texts: Sequence[str], tenant: str | None, limit: int) -> list[Ranking]:
        rows = self._session.fetch(
            self.statement(limit, tenant=tenant),
            {"texts": texts, "tenant": tenant},
            settings=self.planner_settings,
            share=len(texts) / self._strategy.questions_per_statement,
        )
        found = rankings(rows, len(texts))
        return [at_least(self._strategy.min_score, ranking) for ranking in found]

    @cached_property
    def _schema(self) -> str:
        """The schema that pg_trgm's functions and operators are in."""
        rows = self._session.fetch(_SCHEMA.format(name=sql.Literal(self._strategy.similarity)))
        if not rows:
            raise CorpusError(
                f"trigram search needs pg_trgm, which database {self._session.conn.info.dbname}"
                " does not have; run `CREATE EXTENSION pg_trgm` there as an owner of the database"
            )
        schema: str = rows[0][0]
        return schema
