"""How many chunks to ask a retriever for."""

from pipeline.settings import FulltextStrategy, HybridStrategy, VectorStrategy
from pipeline.types import Level

CHUNKS_PER_DOCUMENT = 5
"""At document level, so many times k chunks are asked for, so that k documents remain."""


def effective_limit(
    strategy: VectorStrategy | FulltextStrategy | HybridStrategy,
    k: int,
    level: Level,
    look_depth: int,
) -> int:
    """Return how many chunks to ask for: what k needs, and deeper where that changes nothing.

    The deeper part tells at which rank a missed key would have come. It must not change the first
    k, so it stops where it would: behind the index at `ef_search` (asking for more raises it),
    with `relaxed_order` at once (a deeper scan finds nearer chunks late), in a hybrid at `depth`
    (asking for more changes the arms' candidates).
    """
    needed = k if level is Level.CHUNK else CHUNKS_PER_DOCUMENT * k
    if isinstance(strategy, HybridStrategy):
        return max(needed, min(look_depth, strategy.depth))
    if isinstance(strategy, VectorStrategy) and not strategy.exact:
        if strategy.iterative_scan == "relaxed_order":
            return needed
        return max(needed, min(look_depth, strategy.ef_search))
    return max(needed, look_depth)
