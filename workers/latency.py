"""How long a search takes by itself: some questions are searched one at a time, with a clock.

As a worker sees it, with whatever else it and its neighbours do at the time; without embedding.
"""

import time
from collections.abc import Iterator

import structlog

from pipeline.errors import RecallwatchError
from pipeline.types import Ranking
from workers.shard_questions import ShardQuestions

MOST_OF_LEASE = 0.1
"""Share of a shard's lease that may be spent on it."""

log = structlog.get_logger(__name__)


def time_searches(shard: ShardQuestions) -> dict[int, float]:
    """Return the milliseconds of a search, by the number of the question, for a share of them.

    All shards together time as many as [eval] latency_sample says, spread evenly over the run.
    They were searched just before, all together: everything is warm. It informs only: what goes
    wrong ends it, and nothing else.
    """
    ends = time.monotonic() + MOST_OF_LEASE * shard.ctx.settings.queue.lease
    timed: dict[int, float] = {}
    try:
        for number in _sample(shard):
            if time.monotonic() > ends:
                break
            started = time.monotonic()
            [answer] = shard.ask([number], shard.run.k)
            if isinstance(answer, Ranking):
                timed[number] = 1000 * (time.monotonic() - started)
    except RecallwatchError as error:
        log.warning("latency_not_measured", reason=str(error))
    return timed


def _sample(shard: ShardQuestions) -> Iterator[int]:
    """Yield the numbers of those whose turn it is: position * sample / size reaches an integer."""
    sample: int = shard.run.settings["latency_sample"]
    for number, item in enumerate(shard.items):
        if item.position * sample % shard.run.size < sample and number not in shard.failures:
            yield number
