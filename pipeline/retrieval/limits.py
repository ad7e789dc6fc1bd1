"""How many chunks to ask a retriever for."""

from pipeline.types import Level

CHUNKS_PER_DOCUMENT = 5
"""At document level, so many times k chunks are asked for, so that k documents remain."""


def needed_limit(k: int, level: Level) -> int:
    """Return how many chunks the first k keys of a level take.

    Never more: an index asked for more rows may find others (it searches wider, or the planner
    takes another way), and what counts is what the first k are in production.
    """
    return k if level is Level.CHUNK else CHUNKS_PER_DOCUMENT * k
