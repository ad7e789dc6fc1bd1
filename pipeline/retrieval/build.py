"""From the tree of a strategy to its retriever."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.retrieval.base import Retriever
from pipeline.retrieval.exact import ExactVectorRetriever, KeepingExactRetriever
from pipeline.retrieval.fulltext import FulltextRetriever
from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.http.retriever import HttpRetriever
from pipeline.retrieval.hybrid import Arm, HybridRetriever
from pipeline.retrieval.kept_vectors import KeptVectors
from pipeline.retrieval.lexemes import FrequentLexemes
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.python import PythonRetriever
from pipeline.retrieval.rerank.build import build_reranker
from pipeline.retrieval.rerank.retriever import RerankRetriever
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.sql import SqlRetriever
from pipeline.retrieval.strategies import (
    FulltextStrategy,
    HttpStrategy,
    HybridStrategy,
    PythonStrategy,
    RerankStrategy,
    SqlStrategy,
    TrigramStrategy,
    VectorStrategy,
)
from pipeline.retrieval.tree import StrategyTree
from pipeline.retrieval.trigram import TrigramRetriever
from pipeline.retrieval.vector import VectorRetriever


@dataclass(frozen=True, slots=True)
class Resources:
    """What retrievers are built from.

    `frequent`, `vectors` and `host`, where the owner's Python lives, are what a process keeps
    between the retrievers that it builds. `exact`: vectors are compared with all of the corpus's,
    whatever index there is; all else stays as it is. `environment` holds the secrets that settings
    name.
    """

    session: CorpusSession
    frequent: FrequentLexemes = field(default_factory=FrequentLexemes)
    vectors: KeptVectors = field(default_factory=KeptVectors)
    exact: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    host: PythonHost = field(default_factory=PythonHost)


def build(tree: StrategyTree, resources: Resources) -> Retriever:
    """Build the retriever of a strategy.

    Raises CorpusError where the database has no type vector, TransientError where it does not
    answer, SettingsError where an environment variable is not set that the settings name,
    PermanentError where the owner's code cannot be loaded.
    """
    return _BUILDERS[type(tree.strategy)](tree, tree.strategy, resources)


def _vector(_tree: StrategyTree, strategy: VectorStrategy, resources: Resources) -> Retriever:
    if resources.exact:
        return ExactVectorRetriever(resources.session, strategy)
    if strategy.exact:
        return KeepingExactRetriever(resources.session, strategy, resources.vectors)
    return VectorRetriever(resources.session, strategy)


def _fulltext(_tree: StrategyTree, strategy: FulltextStrategy, resources: Resources) -> Retriever:
    return FulltextRetriever(resources.session, strategy, resources.frequent)


def _trigram(_tree: StrategyTree, strategy: TrigramStrategy, resources: Resources) -> Retriever:
    return TrigramRetriever(resources.session, strategy)


def _hybrid(tree: StrategyTree, strategy: HybridStrategy, resources: Resources) -> Retriever:
    arms = [
        Arm(name, weight, build(tree.parts[name], resources))
        for name, weight in strategy.arms.items()
    ]
    return HybridRetriever(arms, formula=strategy.formula, depth=strategy.depth)


def _sql(tree: StrategyTree, strategy: SqlStrategy, resources: Resources) -> Retriever:
    return SqlRetriever(tree.name, resources.session, strategy)


def _http(tree: StrategyTree, strategy: HttpStrategy, resources: Resources) -> Retriever:
    endpoint = Endpoint(tree.name, strategy, resources.environment)
    return HttpRetriever(tree.name, strategy, endpoint)


def _python(tree: StrategyTree, strategy: PythonStrategy, resources: Resources) -> Retriever:
    return PythonRetriever(tree.name, strategy, resources.host)


def _rerank(tree: StrategyTree, strategy: RerankStrategy, resources: Resources) -> Retriever:
    reranker = build_reranker(
        tree.name,
        strategy.reranker,
        resources.environment,
        resources.host,
    )
    candidates = build(tree.parts[strategy.candidates], resources)
    return RerankRetriever(resources.session, candidates, reranker, strategy.depth)


_BUILDERS: Mapping[type, Callable[[StrategyTree, Any, Resources], Retriever]] = {
    VectorStrategy: _vector,
    FulltextStrategy: _fulltext,
    TrigramStrategy: _trigram,
    HybridStrategy: _hybrid,
    SqlStrategy: _sql,
    HttpStrategy: _http,
    PythonStrategy: _python,
    RerankStrategy: _rerank,
}
