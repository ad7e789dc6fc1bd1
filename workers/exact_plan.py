"""Plan exact search beside the index: which runs get it, and for how many questions."""

from collections.abc import Sequence

from db import exact
from db.models import Run
from db.session import Session
from pipeline.corpus.statistics import tenant_sizes
from pipeline.corpus.table import CorpusTable
from pipeline.retrieval.exact_cost import ExactCost, Sample, sample
from pipeline.retrieval.limits import needed_limit
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.tree import StrategyTree
from pipeline.types import Level
from workers.context import Context

FOR_SEARCH = 0.75
"""Share of the budget that the search gets; what is left may be spent on trying ef_search."""


def plan_exact(
    ctx: Context, session: Session, table: CorpusTable, version_id: int, started: Sequence[Run]
) -> None:
    """Give each run with an index to judge exact shards, for as many questions as time allows.

    Without an approximate index what is served is exact. Where not even the smallest sample can
    be had, the run's record will say so. The shards of what is served must be planned before.
    """
    for run in started:
        if run.settings["exact_budget"] and has_index(run) and not _asks_outside(run):
            _plan(ctx, session, table, version_id, run)


def has_index(run: Run) -> bool:
    """Say whether an approximate index serves the run."""
    there = run.corpus_fingerprint.get("index") is not None
    return there and StrategyTree.from_json(run.settings["strategy"]).is_approximate


def _asks_outside(run: Run) -> bool:
    """Say whether exact search would ask, and perhaps pay, a server or a reranker once more."""
    return StrategyTree.from_json(run.settings["strategy"]).asks_outside


def _plan(ctx: Context, session: Session, table: CorpusTable, version_id: int, run: Run) -> None:
    chosen = _sample(ctx, session, table, version_id, run)
    lease = ctx.settings.queue.lease
    if not chosen.questions:
        return
    if chosen.seconds / chosen.shards > lease:
        reason = (
            f"for {chosen.questions} questions it would take about {chosen.seconds:.0f} seconds,"
            f" and a task has {lease} ([queue] lease)"
        )
        exact.refuse(session, run.id, reason)
        return
    exact.plan(session, run.id, chosen.questions, chosen.shards)


def _sample(
    ctx: Context, session: Session, table: CorpusTable, version_id: int, run: Run
) -> Sample:
    """Choose how many of the version's questions fit into the run's budget."""
    tenants = list(exact.tenants(session, version_id))
    if StrategyTree.from_json(run.settings["strategy"]).ignores_tenants:
        tenants = [None] * len(tenants)
    sizes = tenant_sizes(ctx.corpus(), table) if any(tenants) else {}
    return sample(
        _cost(run),
        tenants,
        lambda tenant: sizes.get(tenant, 0),
        budget=FOR_SEARCH * run.settings["exact_budget"],
        shard=ctx.settings.queue.lease / 2,
    )


def _cost(run: Run) -> ExactCost:
    strategy, corpus = run.settings["strategy"], run.corpus_fingerprint
    arms = [arm.strategy for arm in StrategyTree.from_json(strategy).searches()]
    by_vector = [arm for arm in arms if isinstance(arm, VectorStrategy)]
    limit = needed_limit(run.k, Level(run.level))
    return ExactCost(
        chunks=corpus["embedded"],
        dimensions=corpus["dimension"],
        limit=max(limit, strategy.get("depth", 0)),
        vector_arms=len(by_vector),
        fulltext_arms=len(arms) - len(by_vector),
        l1_arms=sum(arm.distance == "l1" for arm in by_vector),
    )
