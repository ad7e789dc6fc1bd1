"""Measure one shard: from its questions to one result row each, and where the time went."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from db.models import GoldenItem, Run
from db.results import ResultRow
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.statistics import tenant_sizes
from pipeline.embedding.cached import Stats as Spent
from pipeline.retrieval.build import parse_snapshot
from pipeline.retrieval.limits import effective_limit
from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.settings import CorpusSettings, EmbeddingSettings
from pipeline.types import Failure, FloatMatrix, Kind, Level, Outcome, QueryBatch, Ranking
from workers.context import Context

Stats = dict[str, float]


def measure(ctx: Context, run: Run, items: Sequence[GoldenItem]) -> tuple[list[ResultRow], Stats]:
    """Embed, retrieve and score a shard's questions.

    Returns one row a question, in order, and seconds and counts by name. Raises TransientError,
    PermanentError or CorpusError for the shard as a whole; what concerns a single question
    becomes that question's failure.
    """
    stats: Stats = {"questions": len(items)}
    vectors, failures = _embed(ctx, run, items, stats)
    with _timed(stats, "retrieve_seconds"):
        found = _retrieve(ctx, run, items, vectors, failures)
    with _timed(stats, "liveness_seconds"):
        live = _live(ctx, run, items)
    with _timed(stats, "score_seconds"):
        scores = score(
            [Judged(item.expected, Kind(item.kind)) for item in items],
            found,
            k=run.k,
            level=Level(run.level),
            measures=[Measure.parse(name) for name in run.measures],
            relevance_threshold=run.relevance_threshold,
            live=live,
        )
    stats["underfilled"] = _underfilled(ctx, run, items, found)
    return _rows(items, found, scores), stats


def _embed(
    ctx: Context, run: Run, items: Sequence[GoldenItem], stats: Stats
) -> tuple[FloatMatrix | None, dict[int, Failure]]:
    """Return the questions' vectors, from the cache or the provider, and those that failed."""
    if not run.needs_vectors:
        return None, {}
    embedder = ctx.embedder(EmbeddingSettings.model_validate(run.settings["embedding"]))
    embedder.stats = spent = Spent()
    with _timed(stats, "embed_seconds"):
        ids = [str(item.question_id) for item in items]
        found = embedder.embed([item.text for item in items], ids)
    stats["cached_texts"] = spent.hits
    stats["embedded_texts"] = spent.misses
    stats["embedding_calls"] = spent.calls
    return found


def _retrieve(
    ctx: Context,
    run: Run,
    items: Sequence[GoldenItem],
    vectors: FloatMatrix | None,
    failures: dict[int, Failure],
) -> list[Ranking | Failure]:
    """Retrieve the questions that could be embedded, in one batch, and merge the failures in."""
    asked = [i for i in range(len(items)) if i not in failures]
    batch = QueryBatch(
        texts=[items[i].text for i in asked],
        tenants=[items[i].tenant for i in asked],
        languages=[items[i].language for i in asked],
        vectors=None if vectors is None else np.ascontiguousarray(vectors[asked]),
    )
    strategy, _ = parse_snapshot(run.settings["strategy"])
    limit = effective_limit(strategy, run.k, Level(run.level), run.settings["look_depth"])
    retriever = ctx.retriever(run.settings, run.corpus_fingerprint)
    found = retriever.retrieve(batch, limit) if asked else []
    answered = iter(found)
    return [failures[i] if i in failures else next(answered) for i in range(len(items))]


def _live(ctx: Context, run: Run, items: Sequence[GoldenItem]) -> set[str]:
    """Return which of the shard's expected keys the corpus holds now, at the run's level."""
    table = ctx.corpus_table(CorpusSettings.model_validate(run.settings["corpus"]))
    keys = {key for item in items for key in item.expected}
    return live_keys(ctx.corpus(), table, keys, Level(run.level))


def _underfilled(
    ctx: Context, run: Run, items: Sequence[GoldenItem], found: Sequence[Ranking | Failure]
) -> int:
    """Count vector searches that returned fewer than k rows though the corpus has more.

    The index gave up: ef_search too low, or a tenant filter without an iterative scan.
    """
    short = [
        (item.tenant, len(ranking.keys))
        for item, ranking in zip(items, found, strict=True)
        if isinstance(ranking, Ranking) and len(ranking.keys) < run.k
    ]
    if not short or run.settings["strategy"]["kind"] != "vector":
        return 0
    table = ctx.corpus_table(CorpusSettings.model_validate(run.settings["corpus"]))
    sizes = tenant_sizes(ctx.corpus(), table)
    whole = run.corpus_fingerprint["embedded"]
    searched = [(sizes.get(tenant, 0) if tenant else whole, rows) for tenant, rows in short]
    return sum(rows < min(run.k, chunks) for chunks, rows in searched)


def _rows(
    items: Sequence[GoldenItem], found: Sequence[Ranking | Failure], scores: Scores
) -> list[ResultRow]:
    rows = []
    for i, item in enumerate(items):
        outcome, result = scores.outcomes[i], found[i]
        rows.append(
            ResultRow(
                position=item.position,
                outcome=outcome,
                retrieved=scores.rankings[i],
                scores=scores.ranking_scores[i],
                measured=_list(scores.values[i]) if outcome is Outcome.SCORED else None,
                first_rank=scores.first_ranks[i],
                missing=scores.missing[i],
                error=_reason(result) if outcome is Outcome.FAILED else None,
            )
        )
    return rows


def _reason(result: Ranking | Failure) -> str | None:
    return result.reason if isinstance(result, Failure) else None


def _list(values: Any) -> list[float]:  # noqa: ANN401 - a row of a numpy matrix
    numbers: list[float] = values.tolist()
    return numbers


@contextmanager
def _timed(stats: Stats, name: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    stats[name] = time.monotonic() - started
