"""Nearest neighbours by one of pgvector's distances, many questions a statement."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from psycopg import sql

from pipeline.corpus.errors import corpus_errors
from pipeline.corpus.statistics import searched_sizes
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.tenants import as_stored
from pipeline.corpus.vectors import Comparison
from pipeline.errors import CorpusError
from pipeline.retrieval.isolation import ask_in_groups
from pipeline.retrieval.session import CorpusSession, at_least, rankings
from pipeline.retrieval.strategies.vector import MAX_EF_SEARCH, VectorStrategy
from pipeline.retrieval.vector_arrays import VectorArray, register_vector_array, sparse_texts
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking

__all__ = ("MAX_EF_SEARCH", "NO_DIRECTION", "VectorRetriever", "checked_vectors", "with_direction")

# The key behind the distance decides ties: the planner sorts the equal distances that the index
# yields (Incremental Sort). The outer order repeats both: the index goes by distances of its own
# rounding, and with relaxed_order not even by those. A distance is NaN where the stored vector has
# length zero: an index leaves such rows out, and so must a scan.
_SEARCH = sql.SQL("""
SELECT question.number, found.key, {score}
FROM {questions}
CROSS JOIN LATERAL (
    SELECT {key} AS key, {compared} {operator} question.vector AS distance
    FROM {relation} AS c
    WHERE {embedding} IS NOT NULL {within}
    ORDER BY {order}, {key} COLLATE "C"
    LIMIT {limit}
) AS found
WHERE found.distance <> 'NaN'
ORDER BY question.number, found.distance, found.key COLLATE "C"
""")

# Only the bare operator, ascending, lets an index serve the order. With the sum none ever can,
# whatever the server's enable_... settings.
_BY_INDEX = sql.SQL("{compared} {operator} question.vector")
_EXACTLY = sql.SQL("({compared} {operator} question.vector) + 0")

# What the questions' vectors are sent as -> what they are compared as. Casting them once keeps it
# out of each row's comparison.
_QUESTIONS: Mapping[str, str] = {
    "vector": "unnest(%(vectors)b::vector[]) WITH ORDINALITY AS question(vector, number)",
    "halfvec": "unnest(%(vectors)b::vector[]::halfvec[])"
    " WITH ORDINALITY AS question(vector, number)",
    "sparsevec": "unnest(%(vectors)s::text[]::sparsevec[])"
    " WITH ORDINALITY AS question(vector, number)",
    "bit": "(SELECT binary_quantize(vector)::bit({dimensions}), number"
    " FROM unnest(%(vectors)b::vector[]) WITH ORDINALITY AS asked(vector, number)"
    " OFFSET 0) AS question(vector, number)",
}


class VectorRetriever:
    """Searches a column of vectors, through its index or exactly.

    Scores: 1 - distance for cosine and jaccard, the inner product, and the distance below zero for
    l2, l1 and hamming: the higher, the nearer. A question with a tenant is searched for within it,
    unless the strategy ignores tenants; one without, in the whole corpus. Chunks without a vector
    are never returned. Ties are ordered by key.
    """

    needs_vectors: ClassVar[bool] = True

    def __init__(self, session: CorpusSession, strategy: VectorStrategy) -> None:
        self._session = session
        self._strategy = strategy
        self._spelled: dict[str, str] = {}
        self.comparison = Comparison(session.table, strategy.distance, strategy.cast)
        with corpus_errors(f"search {session.place}"):
            register_vector_array(session.conn)

    def retrieve(self, batch: QueryBatch, limit: int) -> list[Ranking | Failure]:
        """See `Retriever.retrieve`. A vector that cannot be compared is a Failure of its question.

        Raises ValueError where the batch has no vectors, CorpusError where they are not of the
        corpus's dimensions or a tenant is asked of a corpus without tenants.
        """
        vectors = checked_vectors(self._session.table, batch)

        def ask(tenant: str | None, positions: Sequence[int]) -> list[Ranking]:
            return self.search(vectors[positions], tenant, limit)

        with corpus_errors(f"search {self._session.searched(self._strategy.where)}"):
            answers = ask_in_groups(
                comparable(self.comparison, vectors),
                self._strategy.whose(batch.tenants).__getitem__,
                self._strategy.questions_per_statement,
                ask,
            )
        return [answers.get(position, NO_DIRECTION) for position in range(len(batch))]

    def search(self, vectors: FloatMatrix, tenant: str | None, limit: int) -> list[Ranking]:
        """Return a ranking for each of a tenant's questions; raises psycopg's own errors."""
        rows = self._session.fetch(
            self.statement(limit, tenant=tenant),
            self.parameters(vectors, tenant),
            settings=self.planner_settings(limit, tenant=tenant),
            share=len(vectors) / self._strategy.questions_per_statement,
        )
        found = rankings(rows, len(vectors))
        return [at_least(self._strategy.min_score, ranking) for ranking in found]

    def statement(self, limit: int, *, tenant: str | None = None) -> sql.Composed:
        """Return the search for the parameters that `parameters` gives."""
        table, comparison = self._session.table, self.comparison
        compared = {"compared": comparison.expression("c"), "operator": comparison.operator}
        order = _EXACTLY if self._is_exact(tenant) else _BY_INDEX
        return _SEARCH.format(
            score=comparison.score,
            questions=sql.SQL(_QUESTIONS[comparison.type]).format(
                dimensions=sql.Literal(table.dimensions)
            ),
            key=table.key_expression("c"),
            embedding=table.column("embedding", "c"),
            order=order.format(**compared),
            relation=table.relation,
            within=self._session.within(tenant, self._strategy.where),
            limit=sql.Literal(limit),
            **compared,
        )

    def parameters(self, vectors: FloatMatrix, tenant: str | None = None) -> dict[str, Any]:
        """Return the statement's parameters for questions of one tenant."""
        if self.comparison.type == "sparsevec":
            return {"vectors": sparse_texts(vectors), "tenant": tenant}
        return {"vectors": VectorArray(vectors), "tenant": tenant}

    def planner_settings(self, limit: int, *, tenant: str | None = None) -> dict[str, str]:
        """Return the server settings under which the statement runs; what is unset is not sent."""
        strategy = self._strategy
        if self._is_exact(tenant):
            return {}
        # Without a filter one pass of the index fills the limit: another would be for the ties of
        # its last row alone.
        width = strategy.width(limit)
        filtered = tenant is not None or strategy.where is not None
        scan = strategy.iterative_scan if filtered or limit > width else "off"
        settings = {
            "hnsw.ef_search": width,
            "hnsw.iterative_scan": scan,
            "ivfflat.iterative_scan": "off" if scan == "off" else "relaxed_order",
            "hnsw.max_scan_tuples": strategy.max_scan_tuples,
            "hnsw.scan_mem_multiplier": strategy.scan_mem_multiplier,
            "ivfflat.probes": strategy.probes,
            "ivfflat.max_probes": strategy.max_probes,
        }
        return {name: str(value) for name, value in settings.items() if value is not None}

    def _is_exact(self, tenant: str | None) -> bool:
        """Say whether a tenant's questions, or those of nobody, are to bypass the index."""
        strategy = self._strategy
        if strategy.exact or tenant is None or not strategy.exact_below:
            return strategy.exact
        if tenant not in self._spelled:
            # A search compares tenants in the column's own type.
            self._spelled |= as_stored(self._session.conn, self._session.table, [tenant])
        return self._sizes.get(self._spelled[tenant], 0) < strategy.exact_below

    @cached_property
    def _sizes(self) -> Mapping[str | None, int]:
        """The chunks of each tenant, counted once: a retriever is of one state of the corpus."""
        session = self._session
        return searched_sizes(session.conn, session.table, self._strategy.where)


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


def rounded(comparison: Comparison, vectors: FloatMatrix) -> FloatMatrix:
    """Return vectors as the type that is compared holds them; what overflows is infinite."""
    if comparison.type != "halfvec":
        return vectors
    with np.errstate(over="ignore"):
        return vectors.astype(np.float16).astype(np.float32)


def comparable(comparison: Comparison, vectors: FloatMatrix) -> list[int]:
    """Return the positions of the vectors that the comparison can be made with."""
    held = rounded(comparison, vectors)
    if comparison.distance == "cosine":
        return with_direction(held)
    positions: list[int] = np.flatnonzero(np.isfinite(held).all(axis=1)).tolist()
    return positions
