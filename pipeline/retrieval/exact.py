"""Exact nearest neighbours of many questions: the vectors are read once and compared here.

What `VectorRetriever(exact=True)` finds, at a small part of its cost: PostgreSQL would read all the
vectors again for each question.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import ClassVar

import psycopg
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.errors import PermanentError
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.nearest import Nearest
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.vector import NO_DIRECTION, checked_vectors, with_direction
from pipeline.retrieval.vector_arrays import parse_vectors
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking

BLOCK = 4096
"""Vectors compared at a time. With n questions of d dimensions that takes some
BLOCK * (16 d + 9 n) bytes: 140 MB at d = 1,536 and n = 1,000."""

_VECTORS = sql.SQL("""
COPY (SELECT {embedding}, {key} FROM {relation} AS c
      WHERE {embedding} IS NOT NULL {within_tenant}) TO STDOUT (FORMAT BINARY)
""")


class ExactVectorRetriever:
    """Compares the questions with every vector of the corpus. Scores are cosine similarities.

    A question with a tenant is compared with its chunks; those of each tenant are read once for
    all its questions, and the whole corpus once for the questions without. Chunks without a
    vector, or with one that has no direction (length zero, in single precision), are never
    returned. Ties are ordered by key. The session's statement timeout bounds each reading
    together with its comparisons.
    """

    needs_vectors: ClassVar[bool] = True

    def __init__(self, session: CorpusSession) -> None:
        self._session = session

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A vector without a direction is a Failure of its question.

        Raises ValueError where the batch has no vectors, CorpusError where they are not of the
        corpus's dimensions or a tenant is asked of a corpus without tenants, PermanentError where
        the time is up.
        """
        vectors = checked_vectors(self._session.table, batch)

        def ask(tenant: str | None, positions: Sequence[int]) -> list[Ranking]:
            return self._nearest(vectors[positions], tenant, limit)

        with corpus_errors(f"read the vectors of {self._session.place}"):
            answers = ask_in_groups(
                with_direction(vectors), batch.tenants.__getitem__, max(1, len(batch)), ask
            )
        return [answers.get(position, NO_DIRECTION) for position in range(len(batch))]

    def _nearest(self, questions: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        nearest = Nearest(questions, limit)
        try:
            for keys, vectors in self._blocks(tenant):
                usable = with_direction(vectors)
                nearest.offer([keys[row] for row in usable], vectors[usable])
        except psycopg.errors.QueryCanceled as error:
            raise PermanentError(
                f"it was not done in {self._session.statement_timeout:g} seconds: the database is "
                f"slow, or [eval] exact_budget too high for this machine"
            ) from error
        return nearest.rankings()

    def _blocks(self, tenant: str | None) -> Iterator[tuple[list[str], FloatMatrix]]:
        """Yield the corpus's, or a tenant's, keys and vectors, in no certain order."""
        table = self._session.table
        statement = _VECTORS.format(
            embedding=table.column("embedding", "c"),
            key=table.key_expression("c"),
            relation=table.relation,
            within_tenant=self._session.within(tenant),
        )
        rows = self._session.copy_rows(statement, ["bytea", "text"], {"tenant": tenant})
        with closing(rows):
            while block := list(islice(rows, BLOCK)):
                sent, keys = zip(*block, strict=True)
                yield list(keys), parse_vectors(sent, table.dimensions or 0)
