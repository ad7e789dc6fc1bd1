"""A shard's questions: their vectors, what they are asked with, what they are scored by."""

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from db.models import GoldenItem, Run
from pipeline.embedding.cached import Stats as Spent
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.limits import needed_limit
from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.types import Failure, FloatMatrix, Level, QueryBatch, Ranking
from workers.context import Context
from workers.spending import BatchBudget

Stats = dict[str, float]
"""Seconds and counts by name, which a shard stores."""


def embed_questions(
    ctx: Context, run: Run, items: Sequence[GoldenItem], stats: Stats
) -> tuple[FloatMatrix | None, dict[int, Failure]]:
    """Return the questions' vectors, from the cache or the provider, and those that failed."""
    if not run.needs_vectors:
        return None, {}
    embedding = EmbeddingSettings.model_validate(run.settings["embedding"])
    embedder = ctx.embedder(embedding, run.corpus_fingerprint["dimension"])
    embedder.stats = spent = Spent()
    with timed(stats, "embed_seconds"):
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


@contextmanager
def timed(stats: Stats, name: str) -> Iterator[None]:
    """Note how many seconds it takes."""
    started = time.monotonic()
    yield
    stats[name] = time.monotonic() - started
