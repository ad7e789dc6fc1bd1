"""Exact nearest neighbours of many questions: the vectors are read once and compared here.

What `VectorRetriever` finds with `exact = true`, at a small part of its cost: PostgreSQL would read
all the vectors again for each question.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import islice
from typing import ClassVar

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.statistics import searched_sizes
from pipeline.corpus.vectors import Comparison
from pipeline.errors import PermanentError
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.kept_vectors import Block, KeptVectors
from pipeline.retrieval.nearest import Nearest
from pipeline.retrieval.session import CorpusSession, at_least
from pipeline.retrieval.similarities import lengths_of
from pipeline.retrieval.strategies.vector import VectorStrategy
from pipeline.retrieval.vector import (
    NO_DIRECTION,
    VectorRetriever,
    checked_vectors,
    comparable,
    rounded,
)
from pipeline.retrieval.vector_arrays import parse_vectors
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking

BLOCK = 4096
"""Vectors compared at a time. With n questions of d dimensions that takes some
BLOCK * (16 d + 9 n) bytes: 140 MB at d = 1,536 and n = 1,000."""

_NUMBERS = 8_000_000
"""Numbers in a block at most, of vectors with many dimensions."""

FEW = 10
"""Questions up to which PostgreSQL's own scans cost about what sending all vectors here does: as
much as 27 scans of 100,000 chunks of 128 numbers, as 6 of 20,000 of 1,024."""

_FLOAT = 4
_MEGABYTE = 1_000_000

_VECTORS = sql.SQL("""
COPY (SELECT {compared}, {key} FROM {relation} AS c
      WHERE {embedding} IS NOT NULL {within}) TO STDOUT (FORMAT BINARY)
""")


class ExactVectorRetriever:
    """Compares the questions with every vector of the corpus. Scores: see `VectorRetriever`.

    A question with a tenant is compared with its chunks; those of each tenant are read once for
    all its questions, and the whole corpus once for the questions without. Chunks without a
    vector, or with one that has no direction where that counts, are never returned. Ties are
    ordered by key. The session's statement timeout bounds each reading together with its
    comparisons.
    """

    needs_vectors: ClassVar[bool] = True

    def __init__(self, session: CorpusSession, strategy: VectorStrategy | None = None) -> None:
        self._session = session
        self._strategy = strategy or VectorStrategy()
        self._comparison = Comparison(session.table, self._strategy.distance, self._strategy.cast)

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A vector that cannot be compared is a Failure of its question.

        Raises ValueError where the batch has no vectors, CorpusError where they are not of the
        corpus's dimensions or a tenant is asked of a corpus without tenants, PermanentError where
        the time is up.
        """
        vectors = checked_vectors(self._session.table, batch)

        def ask(tenant: str | None, positions: Sequence[int]) -> list[Ranking]:
            return self._search(vectors[positions], tenant, limit)

        searched = self._session.searched(self._strategy.where)
        with corpus_errors(f"read the vectors of {searched}"):
            answers = ask_in_groups(
                comparable(self._comparison, vectors),
                self._strategy.whose(batch.tenants).__getitem__,
                max(1, len(batch)),
                ask,
            )
        return [answers.get(position, NO_DIRECTION) for position in range(len(batch))]

    def _search(self, questions: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        return self._nearest(questions, tenant, limit)

    def _nearest(self, questions: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        held = rounded(self._comparison, questions)
        nearest = Nearest(held, limit, self._comparison.distance)
        try:
            for block in self._blocks(tenant):
                nearest.offer(block.keys, block.vectors, block.lengths)
        except psycopg.errors.QueryCanceled as error:
            raise PermanentError(
                f"it was not done in {self._session.statement_timeout:g} seconds: the database is "
                f"slow, or there are too many vectors for exact search here ([eval] exact_budget)"
            ) from error
        return [at_least(self._strategy.min_score, found) for found in nearest.rankings()]

    def _blocks(self, tenant: str | None) -> Iterator[Block]:
        yield from self._read(tenant)

    def _read(self, tenant: str | None) -> Iterator[Block]:
        """Yield the corpus's, or a tenant's, keys and vectors, in no certain order."""
        table, comparison = self._session.table, self._comparison
        statement = _VECTORS.format(
            compared=comparison.expression("c"),
            embedding=table.column("embedding", "c"),
            key=table.key_expression("c"),
            relation=table.relation,
            within=self._session.within(tenant, self._strategy.where),
        )
        dimensions = table.dimensions or 1
        size = max(1, min(BLOCK, _NUMBERS // dimensions))
        rows = self._session.copy_rows(statement, ["bytea", "text"], {"tenant": tenant})
        with closing(rows):
            while block := list(islice(rows, size)):
                sent, keys = zip(*block, strict=True)
                vectors = parse_vectors(sent, dimensions, comparison.type)
                usable = comparable(comparison, vectors)
                kept = vectors[usable]
                yield Block([keys[row] for row in usable], kept, lengths_of(kept))


class KeepingExactRetriever(ExactVectorRetriever):
    """The same for a strategy that is exact itself: it keeps the vectors between two batches.

    As many as the strategy's `exact_memory` holds, as they were when they were first read. Of more
    vectors, or where nothing tells one state of the corpus from another, few questions are searched
    for by PostgreSQL, and for many the vectors are read each time.
    """

    def __init__(self, session: CorpusSession, strategy: VectorStrategy, kept: KeptVectors) -> None:
        super().__init__(session, strategy)
        self._kept = kept
        self._by_sql = VectorRetriever(session, strategy)

    def _search(self, questions: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        if len(questions) <= FEW and not self._keeps(tenant):
            return self._by_sql.search(questions, tenant, limit)
        return self._nearest(questions, tenant, limit)

    def _blocks(self, tenant: str | None) -> Iterator[Block]:
        if not self._keeps(tenant):
            return self._read(tenant)
        strategy = self._strategy
        name = (
            str(self._session.table), self._session.fingerprint, self._comparison.type,
            strategy.cast, strategy.where, tenant,
        )  # fmt: skip
        return self._kept.blocks(name, lambda: self._read(tenant), self._most)

    def _keeps(self, tenant: str | None) -> bool:
        """Say whether a tenant's vectors, or all, have a name to be kept by, and room."""
        if not self._session.hashed:
            return False
        sizes = self._sizes
        chunks = sum(sizes.values()) if tenant is None else sizes.get(tenant, 0)
        return chunks * (self._session.table.dimensions or 0) * _FLOAT <= self._most

    @property
    def _most(self) -> int:
        return self._strategy.exact_memory * _MEGABYTE

    @cached_property
    def _sizes(self) -> Mapping[str | None, int]:
        session = self._session
        return searched_sizes(session.conn, session.table, self._strategy.where)
