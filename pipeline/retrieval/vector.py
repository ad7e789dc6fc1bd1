"""Nearest neighbours by cosine distance, many questions a statement."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.session import CorpusSession, rankings
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.vector_arrays import VectorArray, register_vector_array
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking

MAX_EF_SEARCH = 1000
"""The largest hnsw.ef_search that pgvector takes."""

# The key behind the distance decides ties: the planner sorts the equal distances that the index
# yields (Incremental Sort). The outer order repeats both: the index goes by distances of its own
# rounding, and with relaxed_order not even by those. A distance is NaN where the stored vector has
# length zero: an index leaves such rows out, and so must a scan.
_SEARCH = sql.SQL("""
SELECT question.number, found.key, 1 - found.distance
FROM unnest(%(vectors)b::vector[]) WITH ORDINALITY AS question(vector, number)
CROSS JOIN LATERAL (
    SELECT {key} AS key, {embedding} <=> question.vector AS distance
    FROM {relation} AS c
    WHERE {embedding} IS NOT NULL {within_tenant}
    ORDER BY {order}, {key} COLLATE "C"
    LIMIT {limit}
) AS found
WHERE found.distance <> 'NaN'
ORDER BY question.number, found.distance, found.key COLLATE "C"
""")

# Only the bare operator, ascending, lets an index serve the order. With the sum none ever can,
# whatever the server's enable_... settings.
_BY_INDEX = sql.SQL("{embedding} <=> question.vector")
_EXACTLY = sql.SQL("({embedding} <=> question.vector) + 0")


class VectorRetriever:
    """Searches a pgvector column, through its index or exactly. Scores are cosine similarities.

    A question with a tenant is searched for within it; one without, in the whole corpus. Chunks
    without a vector are never returned. Ties are ordered by key.
    """

    needs_vectors: ClassVar[bool] = True

    def __init__(self, session: CorpusSession, strategy: VectorStrategy) -> None:
        self._session = session
        self._strategy = strategy
        with corpus_errors(f"search {session.place}"):
            register_vector_array(session.conn)

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A vector without a direction is a Failure of its question.

        Raises ValueError where the batch has no vectors, CorpusError where they are not of the
        corpus's dimensions or a tenant is asked of a corpus without tenants.
        """
        vectors = checked_vectors(self._session.table, batch)

        def ask(tenant: str | None, positions: Sequence[int]) -> list[Ranking]:
            return self._search(vectors[positions], tenant, limit)

        with corpus_errors(f"search {self._session.place}"):
            answers = ask_in_groups(
                with_direction(vectors),
                batch.tenants.__getitem__,
                self._strategy.questions_per_statement,
                ask,
            )
        return [answers.get(position, NO_DIRECTION) for position in range(len(batch))]

    def statement(self, limit: int, *, tenant: str | None = None) -> sql.Composed:
        """Return the search for the parameters `vectors` (a VectorArray) and `tenant`."""
        table = self._session.table
        embedding = table.column("embedding", "c")
        order = _EXACTLY if self._strategy.exact else _BY_INDEX
        return _SEARCH.format(
            key=table.key_expression("c"),
            embedding=embedding,
            order=order.format(embedding=embedding),
            relation=table.relation,
            within_tenant=self._session.within(tenant),
            limit=sql.Literal(limit),
        )

    def planner_settings(self, limit: int, *, tenant: str | None = None) -> dict[str, str]:
        """Return the server settings under which the statement runs."""
        if self._strategy.exact:
            return {}
        # Without a filter one pass of the index fills the limit: another would be for the ties of
        # its last row alone.
        iterate = tenant is not None or limit > MAX_EF_SEARCH
        return {
            "hnsw.ef_search": str(min(max(self._strategy.ef_search, limit), MAX_EF_SEARCH)),
            "hnsw.iterative_scan": self._strategy.iterative_scan if iterate else "off",
        }

    def _search(self, vectors: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        rows = self._session.fetch(
            self.statement(limit, tenant=tenant),
            {"vectors": VectorArray(vectors), "tenant": tenant},
            settings=self.planner_settings(limit, tenant=tenant),
            share=len(vectors) / self._strategy.questions_per_statement,
        )
        return rankings(rows, len(vectors))


def checked_vectors(table: CorpusTable, batch: QueryBatch) -> FloatMatrix:
    """Return the batch's vectors.

    Raises ValueError where it has none, CorpusError where they cannot be compared with the
    table's.
    """
    if batch.vectors is None or len(batch.vectors) != len(batch):
        raise ValueError("vector search needs one vector a question")
    stored, asked = table.dimensions, batch.vectors.shape[1]
    column = f"{table}.{table.columns['embedding']}"
    if stored is None:
        raise CorpusError(f"no chunk has a vector in {column}: embed the chunks first")
    if stored != asked:
        raise CorpusError(
            f"the questions' vectors have {asked} dimensions, those in {column} have {stored}; "
            f"embed the questions with the model that the chunks were embedded with"
        )
    return batch.vectors


NO_DIRECTION = Failure("the question's vector has length zero, or holds NaN or infinity")


def with_direction(vectors: FloatMatrix) -> list[int]:
    """Return the positions of the vectors that have a cosine with others.

    The squared length is taken in single precision, as pgvector takes it: a vector so short or
    so long that this is 0 or infinite gives NaN distances there.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squared = np.einsum("ij,ij->i", vectors, vectors)
    positions: list[int] = np.flatnonzero(np.isfinite(squared) & (squared > 0)).tolist()
    return positions
