"""Measure one shard: from its questions to one result row each, and where the time went."""

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from db.models import GoldenItem, Run
from db.results import ResultRow
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.statistics import tenant_sizes
from pipeline.embedding.cached import Stats as Spent
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.limits import needed_limit
from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.settings import CorpusSettings
from pipeline.types import Failure, FloatMatrix, Kind, Level, Outcome, QueryBatch, Ranking
from workers.context import Context
from workers.evidence import usable
from workers.spending import BatchBudget

Stats = dict[str, float]


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
    with _timed(stats, "retrieve_seconds"):
        found = shard.ask(range(len(items)), run.k)
    with _timed(stats, "liveness_seconds"):
        live, stale = _usable(ctx, run, items)
    shard = shard.without(stale)
    with _timed(stats, "score_seconds"):
        scores = shard.score(range(len(items)), found, live)
    with _timed(stats, "look_seconds"):
        looked = _look_deeper(shard, scores, live)
    stats["underfilled"] = _underfilled(ctx, run, items, found)
    return _rows(items, found, scores, looked), stats


def embed_questions(
    ctx: Context, run: Run, items: Sequence[GoldenItem], stats: Stats
) -> tuple[FloatMatrix | None, dict[int, Failure]]:
    """Return the questions' vectors, from the cache or the provider, and those that failed."""
    if not run.needs_vectors:
        return None, {}
    embedding = EmbeddingSettings.model_validate(run.settings["embedding"])
    embedder = ctx.embedder(embedding, run.corpus_fingerprint["dimension"])
    embedder.stats = spent = Spent()
    with _timed(stats, "embed_seconds"):
        ids = [str(item.question_id) for item in items]
        texts = [item.text for item in items]
        found = embedder.embed(texts, ids, BatchBudget(ctx, run.batch_id))
    stats["cached_texts"] = spent.hits
    stats["embedded_texts"] = spent.misses
    stats["embedding_calls"] = spent.calls
    return found


@dataclass(frozen=True, slots=True)
class ShardQuestions:
    """The questions of a shard and what they are scored by, with their vectors.

    `failures` are those that could not be embedded.
    """

    ctx: Context
    run: Run
    items: Sequence[GoldenItem]
    judged: Sequence[Judged]
    vectors: FloatMatrix | None
    failures: Mapping[int, Failure]

    def without(self, stale: Mapping[int, Container[str]]) -> "ShardQuestions":
        """Return them with keys, by position, that count as gone."""
        judged = [
            replace(each, stale=stale.get(item.position, ()))
            for item, each in zip(self.items, self.judged, strict=True)
        ]
        return replace(self, judged=judged)

    def ask(
        self, numbers: Sequence[int], k: int, retriever: Retriever | None = None
    ) -> list[Ranking | Failure]:
        """Retrieve what k takes for some of the questions, in one batch; None: as the run does."""
        asked = [i for i in numbers if i not in self.failures]
        batch = QueryBatch(
            texts=[self.items[i].text for i in asked],
            tenants=[self.items[i].tenant for i in asked],
            languages=[self.items[i].language for i in asked],
            vectors=None if self.vectors is None else np.ascontiguousarray(self.vectors[asked]),
        )
        if retriever is None:
            retriever = self.ctx.retriever(self.run.settings, self.run.corpus_fingerprint)
        limit = needed_limit(k, Level(self.run.level))
        answers = iter(retriever.retrieve(batch, limit) if asked else [])
        return [self.failures[i] if i in self.failures else next(answers) for i in numbers]

    def score(
        self, numbers: Sequence[int], found: Sequence[Ranking | Failure], live: Container[str]
    ) -> Scores:
        """Score what came back for some of the questions, by the run's conventions."""
        return score(
            [self.judged[i] for i in numbers],
            found,
            k=self.run.k,
            level=Level(self.run.level),
            measures=[Measure.parse(name) for name in self.run.measures],
            relevance_threshold=self.run.relevance_threshold,
            live=live,
        )


def _look_deeper(
    shard: ShardQuestions, scores: Scores, live: Container[str]
) -> dict[int, int | None]:
    """Return at which rank each miss's first expected key comes, when more is asked for.

    Asked apart, so that looking changes nothing of what was served. A rank within k says that the
    index missed what a wider search of it finds.
    """
    depth = shard.run.settings["look_depth"]
    missed = [
        i
        for i, outcome in enumerate(scores.outcomes)
        if outcome is Outcome.SCORED and scores.first_ranks[i] is None
    ]
    if not missed or depth <= shard.run.k:
        return {}
    deeper = shard.score(missed, shard.ask(missed, depth), live)
    return dict(zip(missed, deeper.first_ranks, strict=True))


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
    items: Sequence[GoldenItem],
    found: Sequence[Ranking | Failure],
    scores: Scores,
    looked: Mapping[int, int | None],
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
                first_rank=looked.get(i, scores.first_ranks[i]),
                missing=scores.missing[i],
                error=_reason(result) if outcome is Outcome.FAILED else None,
                returned=len(result.keys) if isinstance(result, Ranking) else None,
                stages=result.stages if isinstance(result, Ranking) else {},
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
