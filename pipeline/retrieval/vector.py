"""Nearest neighbours by cosine distance, many questions a statement."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.errors import CorpusError
from pipeline.retrieval.isolation import Isolation, groups
from pipeline.retrieval.rows import rankings
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.vector_arrays import VectorArray, register_vector_array
from pipeline.settings import VectorStrategy
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking

MAX_EF_SEARCH = 1000
"""The largest hnsw.ef_search that pgvector takes."""

# Only this very expression, ascending, lets the index serve the order. The key behind it decides
# ties: the planner sorts the equal distances that the index yields (Incremental Sort). The outer
# order repeats it because an index's own distances are rounded. A distance is NaN where the
# stored vector has length zero: an index leaves such rows out, and so does an exact search here.
_SEARCH = sql.SQL("""
SELECT question.number, found.key, 1 - found.distance
FROM unnest(%(vectors)b::vector[]) WITH ORDINALITY AS question(vector, number)
CROSS JOIN LATERAL (
    SELECT {key} AS key, {embedding} <=> question.vector AS distance
    FROM {relation} AS c
    WHERE {embedding} IS NOT NULL {tenant}
    ORDER BY {embedding} <=> question.vector, {key} COLLATE "C"
    LIMIT {limit}
) AS found
WHERE found.distance <> 'NaN'
ORDER BY question.number, found.distance, found.key COLLATE "C"
""")


class VectorRetriever:
    """Searches a pgvector column, through its index or exactly. Scores are cosine similarities.

    A question with a tenant is searched for within it; one without, in the whole corpus. Chunks
    without a vector are never returned.
    """

    needs_vectors: ClassVar[bool] = True

    def __init__(self, session: CorpusSession, strategy: VectorStrategy) -> None:
        self._session = session
        self._strategy = strategy
        with corpus_errors(f"search {session.place}"):
            register_vector_array(session.conn)

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A vector of no usable length is a Failure of its question.

        Raises ValueError where the batch has no vectors, CorpusError where they are not of the
        corpus's dimensions.
        """
        vectors = self._vectors(batch)
        answers: list[Ranking | Failure] = [
            Failure("the question's vector has length zero, or holds NaN or infinity")
        ] * len(batch)
        size = self._strategy.questions_per_statement
        isolation = Isolation()
        for tenant, positions in groups(_usable(vectors), batch.tenants.__getitem__, size):

            def ask(some: Sequence[int], tenant: str | None = tenant) -> list[Ranking]:
                return self._search(vectors[some], tenant, limit)

            with corpus_errors(f"search {self._session.place}"):
                found = isolation.answers(ask, positions)
            for position, answer in zip(positions, found, strict=True):
                answers[position] = answer
        return answers
