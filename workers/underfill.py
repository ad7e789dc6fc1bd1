"""Count vector searches that returned fewer rows than there are: the index gave up."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import searched_sizes
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.tenants import as_stored
from pipeline.errors import RecallwatchError
from pipeline.retrieval.limits import needed_limit
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import Stage, StrategyTree
from pipeline.retrieval.underfill import underfill_cause
from pipeline.types import Failure, Level, Ranking
from workers.shard_questions import ShardQuestions

log = structlog.get_logger(__name__)

PREFIX = "underfilled"
"""Of the names under which a shard counts them; stage and cause follow, apart by line breaks."""

Underfilled = Counter[tuple[str, str]]
"""(stage, cause) -> questions; the stage of a strategy that is no more than its search is blank."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The corpus that questions were asked of, and whose they are.

    `embedded`: its chunks with a vector; None: as many as there are now. `method`: of its vector
    index, as hnsw.
    """

    conn: psycopg.Connection[Any]
    table: CorpusTable
    embedded: int | None
    method: str | None
    tenants: Sequence[str | None]

    def sizes(self, strategy: VectorStrategy) -> Mapping[str | None, int]:
        """Return how many chunks there are to find, of each tenant and, under None, in all."""
        sizes = searched_sizes(self.conn, self.table, strategy.where)
        at_start = self.embedded if strategy.where is None else None
        in_all = sum(sizes.values()) if at_start is None else at_start
        return {tenant: n for tenant, n in sizes.items() if tenant is not None} | {None: in_all}


def count_underfilled(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> Underfilled:
    """Count the questions of a shard, by stage and likely cause.

    In all there are as many chunks to find as when the run was started, unless a condition is to
    be met. It informs: where it cannot be had, nothing is counted.
    """
    try:
        return _count(shard, found)
    except RecallwatchError as error:
        log.warning("underfilled_not_counted", reason=str(error))
        return Counter()


def _count(shard: ShardQuestions, found: Sequence[Ranking | Failure]) -> Underfilled:
    corpus = shard.run.corpus_fingerprint
    searched = Searched(
        shard.ctx.corpus(),
        shard.ctx.corpus_table(CorpusSettings.model_validate(shard.run.settings["corpus"])),
        corpus["embedded"],
        (corpus.get("index") or {}).get("method"),
        [item.tenant for item in shard.items],
    )
    tree = StrategyTree.from_json(shard.run.settings["strategy"])
    asked_for = needed_limit(shard.run.k, Level(shard.run.level))
    return underfilled(searched, tree, asked_for, found)


def underfilled(
    searched: Searched, tree: StrategyTree, k: int, found: Sequence[Ranking | Failure]
) -> Underfilled:
    """Count the answers of a strategy that was asked for k, by stage and likely cause.

    A search with a least score may be short by right.
    """
    counted: Underfilled = Counter()
    for stage in tree.stages(k):
        counted.update(_causes(searched, stage, found))
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
    searched: Searched, stage: Stage, found: Sequence[Ranking | Failure]
) -> Iterator[tuple[str, str]]:
    strategy = stage.tree.strategy
    if not isinstance(strategy, VectorStrategy) or strategy.exact:
        return
    short = [
        (searched.tenants[number], len(ranking.keys))
        for number, ranking in _of_stage(stage, found)
        if len(ranking.keys) < stage.limit
    ]
    if not short:
        return
    there = searched.sizes(strategy)
    # A search compares tenants in the column's own type.
    spelled = as_stored(searched.conn, searched.table, {tenant for tenant, _ in short if tenant})
    for tenant, rows in short:
        whose = spelled[tenant] if tenant and strategy.tenant == "question" else None
        if rows < min(stage.limit, there.get(whose, 0)):
            cause = underfill_cause(strategy, stage.limit, tenant=whose, method=searched.method)
            if cause is not None:
                yield stage.name, cause


def _of_stage(stage: Stage, found: Sequence[Ranking | Failure]) -> Iterator[tuple[int, Ranking]]:
    """Yield each question's number and the ranking that the stage gave for it."""
    for number, each in enumerate(found):
        if isinstance(each, Ranking):
            yield number, each.stages[stage.name] if stage.name else each
