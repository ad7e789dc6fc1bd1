"""About how long exact search takes, so that a sample of the questions fits into a time budget."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipeline.retrieval.exact import BLOCK

LEAST = 100
"""Questions asked whatever the budget: fewer would say little."""

MOST_IN_SHARD = 1000
"""Questions that share one reading of the vectors: their comparison takes 140 MB at most."""

# Measured on one core of a server of 2024, then doubled: slower machines keep within the budget.
_MULTIPLY_ADDS = 20e9
"""A second, of a float32 matrix product."""
_DIFFERENCES = 0.8e9
"""Differences a second, which l1 adds up: no matrix product has them."""
_SELECTING = 300
"""Multiply-adds that looking at one product's result costs."""
_READING = 10e-6
"""Seconds to read a vector that lies in its row."""
_READING_TOASTED = 0.08e-6
"""Seconds a dimension to read one that PostgreSQL keeps apart from its row."""
_INLINE_DIMENSIONS = 500
"""A row of over 2 kB is kept apart."""
_COMPARING = 4e-6, 16e-9
"""Seconds to compare one candidate in float64, and for each of its dimensions."""
_FULLTEXT = 1e-3, 50e-9
"""Seconds of one full text search, and for each chunk."""


@dataclass(frozen=True, slots=True)
class ExactCost:
    """Seconds of one core for a strategy's exact search; an arm is one of its searches.

    `chunks`: those with a vector, of `dimensions` numbers. `limit`: chunks asked of each arm.
    `l1_arms`: those of the vector arms that go by l1.
    """

    chunks: int
    dimensions: int
    limit: int
    vector_arms: int
    fulltext_arms: int
    l1_arms: int = 0

    @property
    def reading(self) -> float:
        """Seconds to read all vectors once, as each shard does for each arm."""
        each = _READING
        if self.dimensions > _INLINE_DIMENSIONS:
            each = _READING_TOASTED * self.dimensions
        return self.vector_arms * self.chunks * each

    def question(self, chunks: int) -> float:
        """Return the seconds to search for one question in so many chunks, once they are read."""
        pairs = chunks * (self.dimensions + _SELECTING) / _MULTIPLY_ADDS
        # The n-th block of vectors holds a limit-th / n of what is nearest so far.
        candidates = min(chunks, self.limit * (1 + math.log1p(chunks / BLOCK)))
        once, each = _COMPARING
        vector = pairs + candidates * (once + each * self.dimensions)
        once, each = _FULLTEXT
        by_l1 = self.l1_arms * chunks * self.dimensions / _DIFFERENCES
        return self.vector_arms * vector + by_l1 + self.fulltext_arms * (once + each * chunks)


@dataclass(frozen=True, slots=True)
class Sample:
    """The first `questions` of those there are, in `shards` shards, and the seconds estimated."""

    questions: int
    shards: int
    seconds: float


def sample(
    cost: ExactCost,
    tenants: Iterable[str | None],
    chunks_of: Callable[[str], int],
    *,
    budget: float,
    shard: float,
) -> Sample:
    """Return how many of the questions fit into the budget, but `LEAST` of them at least.

    `tenants` are those of the questions, in order; `chunks_of` counts a tenant's chunks. A shard
    takes no more than `shard` seconds, unless a single question does.
    """
    questions = shards = 0
    spent = in_shard = 0.0
    filled = MOST_IN_SHARD
    for tenant in tenants:
        own = cost.question(cost.chunks if tenant is None else chunks_of(tenant))
        begins = filled == MOST_IN_SHARD or in_shard + own > shard
        more = own + (cost.reading if begins else 0)
        if questions >= LEAST and spent + more > budget:
            break
        if begins:
            shards, filled, in_shard = shards + 1, 0, cost.reading
        questions, filled = questions + 1, filled + 1
        spent, in_shard = spent + more, in_shard + own
    return Sample(questions, shards, spent)
