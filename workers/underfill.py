"""Count vector searches that returned fewer rows than there are: the index gave up."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.corpus.statistics import searched_sizes
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import Stage, StrategyTree
from pipeline.retrieval.underfill import underfill_cause
from pipeline.corpus.settings import CorpusSettings
from pipeline.types import Failure, Ranking
from workers.shard_questions import ShardQuestions

PREFIX = "underfilled"
"""Of the names under which a shard counts them; stage and cause follow, apart by line breaks."""

Underfilled = Counter[tuple[str, str]]
"""(stage, cause) -> questions; the stage of a strategy that is no more than its search is blank."""


def count_underfilled(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> Underfilled:
    """Count the questions of a shard, by stage and likely cause.

    A search with a least score may be short by right.
    """
    tree = StrategyTree.from_json(shard.run.settings["strategy"])
    counted: Underfilled = Counter()
    for stage in tree.stages(shard.run.k):
        counted.update(_causes(shard, stage, found))
    return counted


def to_stats(counted: Underfilled) -> dict[str, float]:
    """Write them as counts by name, as shards store them."""
    return {"\n".join((PREFIX, *names)): float(n) for names, n in counted.items()}


def from_stats(stats: Mapping[str, float]) -> list[dict[str, Any]]:
    """Read them back: [{"stage", "cause", "questions"}, ...], the most frequent first."""
    named = [(name.split("\n"), n) for name, n in stats.items() if name.startswith(f"{PREFIX}\n")]
    found: list[dict[str, Any]] = [
        {"stage": stage, "cause": cause, "questions": int(n)} for (_, stage, cause), n in named
    ]
    return sorted(found, key=lambda each: (-each["questions"], each["stage"], each["cause"]))


def _causes(
    shard: ShardQuestions, stage: Stage, found: Sequence[Ranking | Failure]
) -> Iterator[tuple[str, str]]:
    strategy = stage.tree.strategy
    if not isinstance(strategy, VectorStrategy) or strategy.exact:
        return
    short = [
        (shard.items[number].tenant, len(ranking.keys))
        for number, ranking in _of_stage(stage, found)
        if len(ranking.keys) < stage.limit
    ]
    if not short:
        return
    there = _sizes(shard, strategy)
    method = (shard.run.corpus_fingerprint.get("index") or {}).get("method")
    for tenant, rows in short:
        whose = tenant if strategy.tenant == "question" else None
        if rows < min(stage.limit, there.get(whose, 0)):
            cause = underfill_cause(strategy, stage.limit, tenant=whose, method=method)
            if cause is not None:
                yield stage.name, cause


def _of_stage(stage: Stage, found: Sequence[Ranking | Failure]) -> Iterator[tuple[int, Ranking]]:
    """Yield each question's number and the ranking that the stage gave for it."""
    for number, each in enumerate(found):
        if isinstance(each, Ranking):
            yield number, each.stages[stage.name] if stage.name else each


def _sizes(shard: ShardQuestions, strategy: VectorStrategy) -> Mapping[str | None, int]:
    """Return how many chunks there are to find, of each tenant and, under None, in all.

    In all: as many as there were when the run was started, unless a condition is to be met.
    """
    table = shard.ctx.corpus_table(CorpusSettings.model_validate(shard.run.settings["corpus"]))
    sizes = searched_sizes(shard.ctx.corpus(), table, strategy.where)
    at_start: int = shard.run.corpus_fingerprint["embedded"]
    in_all = at_start if strategy.where is None else sum(sizes.values())
    return {tenant: n for tenant, n in sizes.items() if tenant is not None} | {None: in_all}
