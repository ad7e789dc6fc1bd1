"""Measure one shard: from its questions to one result row each, and where the time went."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from db.models import GoldenItem, Run
from db.results import ResultRow
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.settings import CorpusSettings
from pipeline.errors import RecallwatchError
from pipeline.retrieval.tree import StrategyTree
from pipeline.scoring import Judged, Scores
from pipeline.types import Failure, Kind, Level, Outcome, Ranking
from workers.context import Context
from workers.evidence import usable
from workers.latency import time_searches
from workers.leaks import look_for_foreign
from workers.probing import refuse_silence, try_out
from workers.shard_questions import ShardQuestions, Stats, embed_questions, timed
from workers.underfill import count_underfilled, to_stats

log = structlog.get_logger(__name__)


def measure(ctx: Context, run: Run, items: Sequence[GoldenItem]) -> tuple[list[ResultRow], Stats]:
    """Embed, retrieve and score a shard's questions.

    Expected keys that are not in the corpus, or stand for another text than was judged, are left
    out. Returns one row a question, in order, and seconds and counts by name. Raises
    TransientError, PermanentError or CorpusError for the shard as a whole; what concerns a single
    question becomes that question's failure.
    """
    stats: Stats = {"questions": len(items)}
    judged = [Judged(item.expected, Kind(item.kind)) for item in items]
    shard = ShardQuestions(ctx, run, items, judged, *embed_questions(ctx, run, items, stats))
    is_first = items[0].position == 0
    if is_first:
        try_out(shard)
    with timed(stats, "retrieve_seconds"):
        found = shard.ask(range(len(items)), run.k)
    if is_first:
        refuse_silence(shard, found)
    with timed(stats, "liveness_seconds"):
        live, stale = _usable(ctx, run, items)
    shard = shard.without(stale)
    with timed(stats, "score_seconds"):
        scores = shard.score(range(len(items)), found, live)
    with timed(stats, "look_seconds"):
        looked = _look_deeper(shard, scores, live)
    stats |= to_stats(count_underfilled(shard, found))
    with timed(stats, "latency_seconds"):
        ms = time_searches(shard)
    with timed(stats, "foreign_seconds"):
        foreign = look_for_foreign(shard, found)
    stats["unknown_keys"] = foreign.unknown
    rows = _rows(shard, found, scores, looked)
    return [
        replace(row, leaked=foreign.leaked.get(i, ()), ms=ms.get(i)) for i, row in enumerate(rows)
    ], stats


def _look_deeper(
    shard: ShardQuestions, scores: Scores, live: Container[str]
) -> dict[int, int | None]:
    """Return at which rank each miss's first expected key comes, when more is asked for.

    Asked apart, so that looking changes nothing of what was served; what goes wrong with it, as a
    server that refuses so many, ends the looking alone. A rank within k says that the index missed
    what a wider search of it finds. A reranker is not asked again, which may cost: its stages say
    how deep a key lay.
    """
    depth = shard.run.settings["look_depth"]
    missed = [
        i
        for i, outcome in enumerate(scores.outcomes)
        if outcome is Outcome.SCORED and scores.first_ranks[i] is None
    ]
    tree = StrategyTree.from_json(shard.run.settings["strategy"])
    if not missed or depth <= shard.run.k or tree.reranks:
        return {}
    try:
        found = shard.ask(missed, depth)
    except RecallwatchError as error:
        log.warning("not_looked_deeper", reason=str(error))
        return {}
    return dict(zip(missed, shard.score(missed, found, live).first_ranks, strict=True))


def _usable(
    ctx: Context, run: Run, items: Sequence[GoldenItem]
) -> tuple[set[str], Mapping[int, Container[str]]]:
    """Return which expected keys the corpus holds now, at the run's level, and the stale ones.

    Looked up with every shard, for the corpus may have been written since the batch began. By
    documents nothing is known of the texts.
    """
    table = ctx.corpus_table(CorpusSettings.model_validate(run.settings["corpus"]))
    if Level(run.level) is Level.CHUNK:
        return usable(ctx, table, items)
    keys = {key for item in items for key in item.expected}
    return live_keys(ctx.corpus(), table, keys, Level.DOCUMENT), {}


def _rows(
    shard: ShardQuestions,
    found: Sequence[Ranking | Failure],
    scores: Scores,
    looked: Mapping[int, int | None],
) -> list[ResultRow]:
    rows = []
    for i, item in enumerate(shard.items):
        outcome, result = scores.outcomes[i], found[i]
        rows.append(
            ResultRow(
                position=item.position,
                outcome=outcome,
                retrieved=scores.rankings[i],
                scores=scores.ranking_scores[i],
                measured=_list(scores.values[i]) if outcome is Outcome.SCORED else None,
                first_rank=looked.get(i, scores.first_ranks[i]),
                missing=scores.missing[i],
                error=_reason(result) if outcome is Outcome.FAILED else None,
                returned=len(result.keys) if isinstance(result, Ranking) else None,
                stages=_stages(shard.run, result),
            )
        )
    return rows


def _stages(run: Run, result: Ranking | Failure) -> Mapping[str, Ranking]:
    if isinstance(result, Failure) or not run.settings["store_stages"]:
        return {}
    return result.stages


def _reason(result: Ranking | Failure) -> str | None:
    return result.reason if isinstance(result, Failure) else None


def _list(values: Any) -> list[float]:  # noqa: ANN401 - a row of a numpy matrix
    numbers: list[float] = values.tolist()
    return numbers
