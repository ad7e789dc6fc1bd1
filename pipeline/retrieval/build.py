"""From a named strategy to the self-contained settings that a run stores, and to its retriever."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.errors import PermanentError, UsageError
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.exact import ExactVectorRetriever
from pipeline.retrieval.fulltext import FulltextRetriever
from pipeline.retrieval.hybrid import Arm, HybridRetriever
from pipeline.retrieval.lexemes import FrequentLexemes
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.vector import VectorRetriever
from pipeline.settings import FulltextStrategy, HybridStrategy, Strategy, VectorStrategy

_STRATEGY: TypeAdapter[Strategy] = TypeAdapter(Strategy)


def snapshot(name: str, strategies: Mapping[str, Strategy]) -> dict[str, Any]:
    """Return a strategy's name and settings as JSON, the arms of a hybrid written out in it.

    {"name": "hybrid", "kind": "hybrid", "rrf_k": 60, "depth": 50,
    "arms": {"vector": {"weight": 1.0, "kind": "vector", ...}, ...}}

    Raises UsageError for an unknown name.
    """
    strategy = _named(name, strategies)
    stored = {"name": name} | strategy.model_dump(mode="json")
    if isinstance(strategy, HybridStrategy):
        stored["arms"] = {
            arm: {"weight": weight} | _named(arm, strategies).model_dump(mode="json")
            for arm, weight in strategy.arms.items()
        }
    return stored


def parse_snapshot(stored: Mapping[str, Any]) -> tuple[Strategy, dict[str, Strategy]]:
    """Return the strategy that a snapshot was made of, and its arms by name.

    Raises PermanentError where this version of recallwatch does not know its settings.
    """
    settings = {key: value for key, value in stored.items() if key != "name"}
    arms = settings.get("arms", {})
    if arms:
        settings["arms"] = {name: arm["weight"] for name, arm in arms.items()}
    try:
        return _STRATEGY.validate_python(settings), {
            name: _STRATEGY.validate_python({k: v for k, v in arm.items() if k != "weight"})
            for name, arm in arms.items()
        }
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise PermanentError(
            f"the stored settings of strategy {stored.get('name')!r} do not fit this version of "
            f"recallwatch: {place}: {problem['msg']}"
        ) from error


def needs_vectors(stored: Mapping[str, Any]) -> bool:
    """Return whether the strategy of a snapshot asks for the questions' vectors."""
    strategy, arms = parse_snapshot(stored)
    return any(isinstance(one, VectorStrategy) for one in (strategy, *arms.values()))


def is_approximate(stored: Mapping[str, Any]) -> bool:
    """Return whether the strategy of a snapshot lets an approximate index answer, if there is one.

    It then serves what the index finds, which another build of the index need not find.
    """
    strategy, arms = parse_snapshot(stored)
    searches = (strategy, *arms.values())
    return any(isinstance(one, VectorStrategy) and not one.exact for one in searches)


def arms_of(stored: Mapping[str, Any]) -> list[VectorStrategy | FulltextStrategy]:
    """Return the searches that a snapshot's strategy makes: its arms, or itself."""
    strategy, arms = parse_snapshot(stored)
    searches = (strategy, *arms.values())
    return [one for one in searches if not isinstance(one, HybridStrategy)]


def from_snapshot(
    stored: Mapping[str, Any],
    session: CorpusSession,
    frequent: FrequentLexemes | None = None,
    *,
    exact: bool = False,
) -> Retriever:
    """Build the retriever of a snapshot; see `build_retriever`.

    Raises PermanentError where this version of recallwatch does not know its settings.
    """
    strategy, arms = parse_snapshot(stored)
    return build_retriever(strategy, session, arms, frequent, exact=exact)


def build_retriever(
    strategy: Strategy,
    session: CorpusSession,
    strategies: Mapping[str, Strategy],
    frequent: FrequentLexemes | None = None,
    *,
    exact: bool = False,
) -> Retriever:
    """Build the retriever of a strategy; a hybrid's arms are looked up in `strategies`.

    `frequent` is what a process keeps between the retrievers that it builds. `exact`: vectors are
    compared with all of the corpus's, whatever index there is; all else stays as it is.

    Raises UsageError for an unknown arm, CorpusError where the database has no type vector,
    TransientError where it does not answer.
    """
    if isinstance(strategy, VectorStrategy):
        return ExactVectorRetriever(session) if exact else VectorRetriever(session, strategy)
    if not isinstance(strategy, HybridStrategy):
        return FulltextRetriever(session, strategy, frequent)
    arms = [
        Arm(
            name,
            weight,
            build_retriever(_named(name, strategies), session, strategies, frequent, exact=exact),
        )
        for name, weight in strategy.arms.items()
    ]
    return HybridRetriever(arms, rrf_k=strategy.rrf_k, depth=strategy.depth)


def _named(name: str, strategies: Mapping[str, Strategy]) -> Strategy:
    if name not in strategies:
        raise UsageError(f"no strategy {name!r}; there are: {', '.join(sorted(strategies))}")
    return strategies[name]
