"""How many chunks to ask a retriever for."""

from pipeline.settings import HybridStrategy, Strategy, VectorStrategy
from pipeline.types import Level

CHUNKS_PER_DOCUMENT = 5
"""At document level, so many times k chunks are asked for, so that k documents remain."""


def needed_limit(k: int, level: Level) -> int:
    """Return how many chunks the first k keys of a level take."""
    return k if level is Level.CHUNK else CHUNKS_PER_DOCUMENT * k


def effective_limit(
    strategy: Strategy, k: int, level: Level, look_depth: int, *, tenants: bool = False
) -> int:
    """Return how many chunks to ask for: what k needs, and deeper where that changes nothing.

    The deeper part tells at which rank a missed key would have come. It must not change the first
    k, so it stops where it would:

    * behind an index at `ef_search`: asking for more raises it;
    * behind an index within a tenant (`tenants`: any question has one) at once: the planner weighs
      index against scan by the limit, and a `relaxed_order` scan finds nearer chunks late. It
      would also cost most there: an iterative scan goes on until the limit is full;
    * in a hybrid at `depth`: asking for more changes the arms' candidates.

    One case is left: in a corpus of about a thousand chunks the planner may weigh so without a
    tenant, too. There index and scan find nearly the same.
    """
    needed = needed_limit(k, level)
    if isinstance(strategy, HybridStrategy):
        return max(needed, min(look_depth, strategy.depth))
    if isinstance(strategy, VectorStrategy) and not strategy.exact:
        return needed if tenants else max(needed, min(look_depth, strategy.ef_search))
    return max(needed, look_depth)
