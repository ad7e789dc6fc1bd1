"""The settings of each kind of strategy: a table [strategies.NAME] of recallwatch.toml.

A kind that asks other strategies names them in its property `parts`; all else has none.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from pipeline.retrieval.strategies.fulltext import FulltextStrategy
from pipeline.retrieval.strategies.http import HttpStrategy, Requests
from pipeline.retrieval.strategies.hybrid import HybridStrategy
from pipeline.retrieval.strategies.python import PythonStrategy
from pipeline.retrieval.strategies.rerank import RerankStrategy
from pipeline.retrieval.strategies.sql import SqlStrategy
from pipeline.retrieval.strategies.trigram import TrigramStrategy
from pipeline.retrieval.strategies.vector import VectorStrategy

__all__ = (
    "BUILT_IN", "FulltextStrategy", "HttpStrategy", "HybridStrategy", "PythonStrategy",
    "RerankStrategy", "SqlStrategy", "Strategy", "TrigramStrategy", "VectorStrategy",
    "check_parts", "parts_of", "variables_of",
)  # fmt: skip

Strategy = Annotated[
    VectorStrategy
    | FulltextStrategy
    | TrigramStrategy
    | HybridStrategy
    | SqlStrategy
    | HttpStrategy
    | PythonStrategy
    | RerankStrategy,
    Field(discriminator="kind"),
]

BUILT_IN: dict[str, Strategy] = {
    "vector": VectorStrategy(),
    "fulltext": FulltextStrategy(),
    "hybrid": HybridStrategy(),
}


def parts_of(strategy: Strategy) -> Iterable[str]:
    """Return the names of the strategies that one asks: arms, candidates; else none."""
    return strategy.parts if isinstance(strategy, HybridStrategy | RerankStrategy) else ()


def variables_of(strategies: Mapping[str, Strategy]) -> list[str]:
    """Return the environment variables that strategies name: their values are secret."""
    rerankers = [each.reranker for each in strategies.values() if isinstance(each, RerankStrategy)]
    return [
        variable
        for each in (*strategies.values(), *rerankers)
        if isinstance(each, Requests)
        for variable in each.variables
    ]


def check_parts(strategies: Mapping[str, Strategy]) -> None:
    """Raise ValueError where a strategy asks one that there is not, or in the end itself."""
    for name in strategies:
        _check(name, strategies, ())


def _check(name: str, strategies: Mapping[str, Strategy], above: tuple[str, ...]) -> None:
    if name in above:
        circle = " -> ".join((*above, name))
        raise ValueError(f"strategies.{above[0]}: it asks itself in the end: {circle}")
    for part in parts_of(strategies[name]):
        if part not in strategies:
            there_are = ", ".join(strategies)
            raise ValueError(f"strategies.{name}: no strategy {part!r}; there are {there_are}")
        _check(part, strategies, (*above, name))
