"""Compare embedding models over the same questions and the same chunks, by exact search."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.corpus.loading import FROM_FILE
from pipeline.corpus.pool import PoolChunk, count_chunks, draw_pool
from pipeline.corpus.statistics import embedding_models
from pipeline.corpus.table import CorpusTable
from pipeline.embedding.build import identity
from pipeline.embedding.pricing import dollars, price_of
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import CorpusError
from pipeline.experiment import Candidate, Experiment, compare
from pipeline.retrieval.limits import needed_limit
from pipeline.scoring import Measure
from pipeline.types import FloatMatrix, Level
from workers.comparing.budget import (
    Cap,
    Estimate,
    check_estimates,
    check_price,
    estimate,
)
from workers.comparing.models import Model
from workers.comparing.questions import Measured, Questions, load_questions, shared
from workers.comparing.search import TenantSearch
from workers.comparing.vectors import SideVectors
from workers.context import Context

BLOCK = 2048
"""Chunks embedded and compared at a time."""

Advance = Callable[[int], None]
"""Told how many chunks and questions were worked through since it was told last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for: `others` chunks beside the judged ones, None for all of the corpus.

    `measures`: the first one decides; all look at k results at most.
    """

    models: Sequence[Model]
    set_name: str
    k: int
    level: Level
    measures: Sequence[Measure]
    others: int | None
    seed: int
    max_cost: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared over what, and what that costs. `judged`: chunks that questions expect."""

    wanted: Wanted
    questions: Questions
    pool: Sequence[PoolChunk]
    chunks: int
    judged: int
    estimates: Sequence[Estimate]

    @property
    def total(self) -> int:
        """How many texts are worked through, each model's counted."""
        return len(self.wanted.models) * (len(self.pool) + len(self.questions.items))

    @property
    def is_sample(self) -> bool:
        """Whether chunks of the corpus were left out."""
        return len(self.pool) < self.chunks


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found; `failed` questions got no vector from a model and are left out."""

    experiment: Experiment
    failed: int
    spent: float


def plan(ctx: Context, wanted: Wanted) -> Plan:
    """Load the questions, draw the chunks, and estimate what embedding both costs.

    Raises UsageError for a model whose price nobody knows, InputError and CorpusError where there
    is nothing to compare over, TransientError where a server does not answer.
    """
    for model in wanted.models:
        check_price(model.name, model.embedding)
    table = ctx.corpus_table()
    stored = any(model.stored for model in wanted.models)
    if stored:
        _check_stored(ctx, table)
    questions = load_questions(ctx, table, wanted.set_name, wanted.level)
    pool = draw_pool(
        ctx.corpus(), table, questions.judged_keys,
        others=wanted.others, seed=wanted.seed, with_vectors=stored,
    )  # fmt: skip
    chunks = len(pool) if wanted.others is None else count_chunks(ctx.corpus(), table)
    judged = sum(chunk.key in questions.judged_keys for chunk in pool)
    estimates = [_estimate(ctx, model, questions, pool) for model in wanted.models]
    return Plan(wanted, questions, pool, chunks, judged, estimates)


def _check_stored(ctx: Context, table: CorpusTable) -> None:
    """Refuse to hold the corpus's vectors against questions that another model embeds."""
    model = identity(ctx.settings.embedding)["model"]
    made_by = set(embedding_models(ctx.corpus(), table)) - {FROM_FILE}
    if made_by and model not in made_by:
        raise CorpusError(
            f"corpus table {table} was embedded with {', '.join(sorted(made_by))}, but the"
            f" questions would be with {model}: set [embedding] to the model of the corpus"
        )


def _estimate(
    ctx: Context, model: Model, questions: Questions, pool: Sequence[PoolChunk]
) -> Estimate:
    free = Cap(0.0)
    asked = SideVectors(ctx, model.embedding, InputType.QUERY, free).missing(questions.texts)
    if model.stored:
        return estimate(model.name, model.embedding, asked)
    chunks = SideVectors(ctx, model.embedding, InputType.DOCUMENT, free)
    texts = [*asked, *chunks.missing([chunk.text for chunk in pool])]
    return estimate(model.name, model.embedding, texts)


def run(ctx: Context, planned: Plan, advance: Advance) -> Trial:
    """Embed with each model what it has no vector of, search exactly, score and compare.

    What was embedded is kept, also where this is broken off. Raises UsageError where it would cost
    more than the cap, PermanentError where it comes to that or a provider refuses, TransientError
    where one does not answer, UnmeasuredError where no question is left.
    """
    wanted = planned.wanted
    check_estimates(planned.estimates, wanted.max_cost)
    for model in wanted.models:
        # A key that is not set is told before another model's texts are paid for.
        ctx.patient_embedder(model.embedding, InputType.QUERY)
    cap = Cap(wanted.max_cost)
    tried = [_try(ctx, planned, model, cap, advance) for model in wanted.models]
    positions, failed = shared([measured for measured, _ in tried])
    names = [str(measure) for measure in wanted.measures]
    candidates = [
        Candidate(model.name, dict(zip(names, values[positions].T, strict=True)), facts)
        for model, ((_, values), facts) in zip(wanted.models, tried, strict=True)
    ]
    return Trial(compare(candidates, seed=wanted.seed), failed, cap.spent)


def _try(
    ctx: Context, planned: Plan, model: Model, cap: Cap, advance: Advance
) -> tuple[Measured, Mapping[str, object]]:
    """Return what one model finds, and what it takes."""
    wanted, questions, before = planned.wanted, planned.questions, cap.spent
    asked = SideVectors(ctx, model.embedding, InputType.QUERY, cap)
    chunks = SideVectors(ctx, model.embedding, InputType.DOCUMENT, cap)
    vectors = asked.of(questions.texts)
    advance(len(questions.items))
    search = TenantSearch(vectors, questions.tenants, needed_limit(wanted.k, wanted.level))
    lost = 0
    for block in _blocks(planned.pool):
        of_block = _stored(block) if model.stored else chunks.of([each.text for each in block])
        keys, tenants = [each.key for each in block], [each.tenant for each in block]
        lost += search.offer(keys, tenants, of_block)
        advance(len(block))
    facts = {
        "dims": vectors.shape[1],
        "$/M tokens": f"{price_of(model.embedding) or 0:g}",
        "spent": dollars(cap.spent - before),
        "texts/s": _speed([asked, chunks]),
        "no vector": lost,
    }
    return questions.score(search.rankings(), wanted.k, wanted.measures), facts


def _blocks(pool: Sequence[PoolChunk]) -> Iterator[Sequence[PoolChunk]]:
    for start in range(0, len(pool), BLOCK):
        yield pool[start : start + BLOCK]


def _stored(block: Sequence[PoolChunk]) -> FloatMatrix:
    """Return the corpus's own vectors as rows, NaN where a chunk has none."""
    length = max((len(each.vector) for each in block if each.vector is not None), default=0)
    rows = np.full((len(block), length), np.nan, np.float32)
    for number, each in enumerate(block):
        if each.vector is not None:
            rows[number] = each.vector
    return rows


def _speed(embedded: Sequence[SideVectors]) -> int | None:
    """Return the texts a second that were embedded now; None: all were kept from before."""
    texts = sum(each.spent.texts for each in embedded)
    seconds = sum(each.spent.seconds for each in embedded)
    return round(texts / seconds) if texts and seconds else None
