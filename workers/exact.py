"""Measure an exact shard: what its questions would have found had there been no vector index."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from db import shards
from db.exact import ExactRow, Served
from db.models import Json, Run
from db.shards import Claim
from pipeline.scoring import Judged
from pipeline.types import Kind, Level, Outcome, document_of
from workers.context import Context
from workers.ef_search import ANY_KEY, walk
from workers.shard_questions import ShardQuestions, Stats, embed_questions


@dataclass(frozen=True, slots=True)
class ExactMeasured:
    """An exact shard's results, what they took, and what was found out about ef_search."""

    rows: Sequence[ExactRow]
    stats: Stats
    ef_search: Json | None


def measure_exact(ctx: Context, run: Run, claim: Claim, served: Sequence[Served]) -> ExactMeasured:
    """Search exactly for a shard's questions, and score them as they were scored when served.

    A question that cannot be searched for gets no row. The shard of the first ranks also tries
    ef_search, where the index loses a point. Raises what `workers.measuring.measure` raises.
    """
    started = time.monotonic()
    spent: Stats = {}
    questions = _questions(ctx, run, served, spent)
    everyone = range(len(served))
    retriever = ctx.retriever(run.settings, run.corpus_fingerprint, exact=True)
    scores = questions.score(everyone, questions.ask(everyone, run.k, retriever), ANY_KEY)
    rows = [
        ExactRow(questions.items[i].position, scores.rankings[i], scores.values[i].tolist())
        for i in everyone
        if scores.outcomes[i] is Outcome.SCORED
    ]
    # A vector that is cached was counted when its question was served.
    paid = {name: spent[name] for name in shards.PAID if name in spent}
    stats = paid | {"exact_seconds": time.monotonic() - started}
    return ExactMeasured(rows, stats, walk(questions, served, rows) if claim.first == 0 else None)


def _questions(ctx: Context, run: Run, served: Sequence[Served], spent: Stats) -> ShardQuestions:
    """Take the questions with the keys that were live when served, whatever lives by now."""
    items = [one.item for one in served]
    judged = [Judged(_live(one, Level(run.level)), Kind(one.item.kind)) for one in served]
    return ShardQuestions(ctx, run, items, judged, *embed_questions(ctx, run, items, spent))


def _live(one: Served, level: Level) -> Mapping[str, int]:
    dead = set(one.missing)
    return {
        key: grade
        for key, grade in one.item.expected.items()
        if (document_of(key) if level is Level.DOCUMENT else key) not in dead
    }
