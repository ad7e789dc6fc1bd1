"""Which index serves a strategy's vector searches, if any does."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from pipeline.corpus.indexing import VectorIndex, vector_index
from pipeline.corpus.statistics import CorpusFingerprint
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.vectors import Comparison
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import StrategyTree


def as_searched(
    conn: psycopg.Connection[Any],
    table: CorpusTable,
    corpus: CorpusFingerprint,
    tree: StrategyTree,
) -> CorpusFingerprint:
    """Return a corpus's fingerprint with the index that serves the strategy.

    Of several vector searches the first counts; without any it stays as it is. Raises CorpusError
    where a search is by a distance that the column's type does not have.
    """
    if not tree.is_approximate:
        return corpus
    index = serving_index(conn, table, tree)
    return replace(corpus, index=index.to_json() if index else None)


def serving_index(
    conn: psycopg.Connection[Any], table: CorpusTable, tree: StrategyTree
) -> VectorIndex | None:
    """Return the index that serves the first of a strategy's vector searches."""
    found = [comparison for _, comparison in _comparisons(table, tree)]
    return vector_index(conn, table, found[0]) if found else None


class Unserved(NamedTuple):
    """A vector search that no index serves, and the statement that would create one."""

    strategy: str
    creation: str

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"no index serves strategy {self.strategy}: each search compares all chunks; "
            f"one that would: {self.creation}"
        )


def unserved(
    conn: psycopg.Connection[Any], table: CorpusTable, tree: StrategyTree
) -> Iterator[Unserved]:
    """Yield the vector searches of a strategy that no index serves.

    An index of the rows that a search's `where` leaves may serve it nevertheless: of searches with
    one nothing is said. Raises what `as_searched` raises.
    """
    for search, comparison in _comparisons(table, tree):
        strategy = search.strategy
        condition = isinstance(strategy, VectorStrategy) and strategy.where is not None
        if not condition and vector_index(conn, table, comparison) is None:
            yield Unserved(search.name, _creation(comparison).as_string(conn))


def _comparisons(
    table: CorpusTable, tree: StrategyTree
) -> Iterator[tuple[StrategyTree, Comparison]]:
    """Yield the searches that an index may answer, and what they compare."""
    for search in tree.searches():
        strategy = search.strategy
        if isinstance(strategy, VectorStrategy) and not strategy.exact:
            yield search, Comparison(table, strategy.distance, strategy.cast)


def _creation(comparison: Comparison) -> sql.Composed:
    return sql.SQL("CREATE INDEX ON {} USING hnsw ({} {})").format(
        comparison.table.relation, comparison.expression(), sql.SQL(comparison.operator_class)
    )
