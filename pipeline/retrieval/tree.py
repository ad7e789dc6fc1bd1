"""From a named strategy to the self-contained settings that a run stores, and back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.errors import PermanentError, UsageError
from pipeline.retrieval.strategies import (
    HttpStrategy,
    PythonStrategy,
    RerankStrategy,
    SqlStrategy,
    Strategy,
    VectorStrategy,
    parts_of,
)

_STRATEGY: TypeAdapter[Strategy] = TypeAdapter(Strategy)


CANDIDATES = "candidates"
"""The name of the stage that a reranker's candidates are."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A leaf of a tree, under the name that its rankings have, asked for `limit` results."""

    name: str
    tree: "StrategyTree"
    limit: int


@dataclass(frozen=True, slots=True)
class StrategyTree:
    """A strategy with its name and, by theirs, the trees of those that it asks."""

    name: str
    strategy: Strategy
    parts: Mapping[str, "StrategyTree"] = field(default_factory=dict)

    def searches(self) -> Iterator["StrategyTree"]:
        """Yield the leaves, which ask no other: itself, or what is below it, from left to right."""
        if not self.parts:
            yield self
        for part in self.parts.values():
            yield from part.searches()

    def all(self) -> Iterator["StrategyTree"]:
        """Yield it and everything below it."""
        yield self
        for part in self.parts.values():
            yield from part.all()

    def stages(self, limit: int) -> Iterator["Stage"]:
        """Yield its leaves as stages of a search for `limit` results, from left to right.

        A tree without parts is the one stage, without a name.
        """
        if not self.parts:
            yield Stage("", self, limit)
        depth = max(limit, getattr(self.strategy, "depth", 0))
        for name, part in self.parts.items():
            own = CANDIDATES if isinstance(self.strategy, RerankStrategy) else name
            for stage in part.stages(depth):
                full = f"{own}/{stage.name}" if stage.name else own
                yield Stage(full, stage.tree, stage.limit)

    @property
    def ignores_tenants(self) -> bool:
        """Whether any of its searches is told that tenants do not matter."""
        return any(getattr(each.strategy, "tenant", "") == "ignore" for each in self.searches())

    @property
    def has_own_words(self) -> bool:
        """Whether any of its searches is in the owner's words: SQL, a server or code of theirs."""
        own = (SqlStrategy, HttpStrategy, PythonStrategy)
        return any(isinstance(each.strategy, own) for each in self.searches())

    @property
    def reranks(self) -> bool:
        """Whether it has a second stage, or is one: often a paid service."""
        return any(isinstance(each.strategy, RerankStrategy) for each in self.all())

    @property
    def asks_outside(self) -> bool:
        """Whether it asks more than the corpus's database: a server, or code of the owner's."""
        return self.reranks or any(
            isinstance(each.strategy, HttpStrategy | PythonStrategy) for each in self.searches()
        )

    @property
    def needs_vectors(self) -> bool:
        """Whether any of its searches asks for the questions' vectors."""
        return any(each.strategy.needs_vectors for each in self.searches())

    @property
    def is_approximate(self) -> bool:
        """Whether any of its searches lets an approximate index answer, where there is one.

        It then serves what the index finds, which another build of the index need not find.
        """
        return any(
            isinstance(each.strategy, VectorStrategy) and not each.strategy.exact
            for each in self.searches()
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as a run stores it; those that it asks are written out in `parts`.

        {"name": "hybrid", "kind": "hybrid", "arms": {"vector": 1.0}, "rrf_k": 60, ...,
        "parts": {"vector": {"name": "vector", "kind": "vector", ...}}}
        """
        stored: dict[str, Any] = {"name": self.name} | self.strategy.model_dump(mode="json")
        if self.parts:
            stored["parts"] = {name: part.to_json() for name, part in self.parts.items()}
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "StrategyTree":
        """Read what `to_json` wrote.

        Raises PermanentError where this version of recallwatch does not know its settings.
        """
        settings = {key: value for key, value in stored.items() if key not in {"name", "parts"}}
        try:
            strategy = _STRATEGY.validate_python(settings)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"])
            raise PermanentError(
                f"the stored settings of strategy {stored.get('name')!r} do not fit this version of"
                f" recallwatch: {place}: {problem['msg']}"
            ) from error
        # JSON in the database keeps no order of keys; the strategy's own list of names does.
        below = stored.get("parts", {})
        parts = {name: cls.from_json(below[name]) for name in parts_of(strategy)}
        return cls(stored["name"], strategy, parts)


def with_defaults(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored settings with the defaults of those that came with a later version.

    So that runs of two versions differ in what differs. What this version cannot read stays as it
    is.
    """
    try:
        return StrategyTree.from_json({"name": ""} | dict(stored)).to_json()
    except (PermanentError, KeyError):
        return stored


def tree_of(name: str, strategies: Mapping[str, Strategy]) -> StrategyTree:
    """Return the tree of a named strategy; raises UsageError for a name that there is not."""
    if name not in strategies:
        raise UsageError(f"no strategy {name!r}; there are: {', '.join(sorted(strategies))}")
    strategy = strategies[name]
    return StrategyTree(
        name, strategy, {part: tree_of(part, strategies) for part in parts_of(strategy)}
    )
