"""Start a generation: draw, estimate, store, ring; and take one up again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from db import generation_requests, generation_resuming, generations
from db.generation_resuming import Resumed
from db.generations import NewGeneration
from db.locks import lock_set
from db.models import Generation
from pipeline.corpus.statistics import fingerprint
from pipeline.embedding.pricing import dollars
from pipeline.errors import UsageError
from pipeline.generation.base import Ask, GenerationStatus, SourceChunk
from pipeline.generation.estimate import Estimate, estimate
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.pricing import priced, without_date
from pipeline.generation.prompts import VERSION
from pipeline.settings import Settings
from workers import doorbell
from workers.context import Context
from workers.drawing import Wanted, draw, shortfalls
from workers.enqueue import run_settings
from workers.generation_sweeping import sweep_generations
from workers.spending import check_amount

MESSAGE_BATCHES_TAKE = timedelta(hours=26)
"""What a generation's deadline is put off by: the provider gives itself 24 hours for a batch."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A generation that can be started: its requests and what they cost. Nothing is stored yet."""

    wanted: Wanted
    asks: Sequence[Ask]
    estimate: Estimate
    corpus: Mapping[str, Any]
    warnings: Sequence[str] = field(default_factory=list)


def prepare(ctx: Context, wanted: Wanted) -> Prepared:
    """Draw the chunks and estimate what asking costs.

    Chunks that the set's generations asked for before are not drawn, nor those that say the same,
    unless `again`. Raises UsageError where the estimate is above the cap or a cap has no price,
    CorpusError where the corpus has no eligible chunk.
    """
    settings = wanted.generation
    price = priced(settings, message_batches=wanted.message_batches)
    check_amount(settings.max_cost)
    if price is None and settings.max_cost is not None:
        raise UsageError(
            f"a cost cap of {dollars(settings.max_cost)} needs a price: what {settings.model} costs"
            f' is not known; set [generation.prices."{settings.model}"] input and output (US'
            " dollars for a million tokens)"
        )
    table = ctx.corpus_table()
    if wanted.tenant is not None and not table.has("tenant"):
        raise UsageError("--tenant needs [corpus] tenant, the column that says whose a chunk is")
    with ctx.database.begin() as session:
        asked = [] if wanted.again else generation_requests.asked_chunks(session, wanted.set_name)
    asks = draw(ctx, table, wanted, asked)
    estimated = estimate(asks, price)
    _check_cap(estimated, settings.max_cost)
    corpus = fingerprint(ctx.corpus(), table).to_json()
    warnings = [*_warnings(wanted, estimated), *shortfalls(wanted, asks, again=bool(asked))]
    return Prepared(wanted, asks, estimated, corpus, warnings)


def _check_cap(estimated: Estimate, max_cost: float | None) -> None:
    if max_cost is not None and estimated.cost is not None and estimated.cost > max_cost:
        raise UsageError(
            f"estimated cost: about {dollars(estimated.cost)}, which is above the cap of"
            f" {dollars(max_cost)} (--max-cost or [generation] max_cost): raise it, or ask for less"
        )


def _warnings(wanted: Wanted, estimated: Estimate) -> Iterator[str]:
    settings = wanted.generation
    if without_date(settings.production_model or "") == without_date(settings.model):
        yield (
            f"{settings.model} also answers your users ([generation] production_model): it asks"
            " what it finds easy to answer; let another model write the questions"
        )
    most, cap = estimated.most, settings.max_cost
    if most is not None and cap is not None and most > cap:
        yield (
            f"at most {dollars(most)} are possible: should the cap of {dollars(cap)} be reached,"
            " the rest is not asked"
        )
        if wanted.message_batches:
            yield (
                "the cap leaves room for a part of the requests at a time: message batches go one"
                " after the other, each of up to a day, and what is not sent by the deadline fails"
            )


def start(ctx: Context, prepared: Prepared) -> int:
    """Store a generation and its requests, ring for them, and return its id.

    Raises UsageError where another one took chunks of it since it was prepared, unless `again`.
    """
    wanted = prepared.wanted
    new = NewGeneration(
        set_name=wanted.set_name,
        settings=_plan(ctx.settings, wanted).to_json(),
        corpus_fingerprint=prepared.corpus,
        asks=prepared.asks,
        message_batches=wanted.message_batches,
        max_cost=wanted.generation.max_cost,
        requested_by=wanted.requested_by,
        deadline=deadline(ctx, message_batches=wanted.message_batches),
    )
    with ctx.database.begin() as session:
        if not wanted.again:
            lock_set(session, wanted.set_name)
            _refuse_asked(generation_requests.asked_chunks(session, wanted.set_name), prepared)
        generation_id = generations.create(session, new)
    ring(generation_id, len(prepared.asks), message_batches=wanted.message_batches)
    return generation_id


def _refuse_asked(asked: Iterable[SourceChunk], prepared: Prepared) -> None:
    taken = {each.key for each in asked}
    lost = sum(any(chunk.key in taken for chunk in ask.chunks) for ask in prepared.asks)
    if lost:
        raise UsageError(
            f"another generation of {prepared.wanted.set_name!r} was started meanwhile and asks for"
            f" the chunks of {lost} of {len(prepared.asks)} requests: run the command again, which"
            " draws others"
        )


def _plan(settings: Settings, wanted: Wanted) -> GenerationPlan:
    return GenerationPlan(
        generation=wanted.generation,
        search={name: run_settings(settings, name) for name in settings.eval.strategies},
        corpus=settings.corpus,
        embedding=settings.embedding,
        k=settings.eval.k,
        look_depth=settings.eval.look_depth,
        prompt_version=VERSION,
        sample=wanted.sample,
        per_chunk=wanted.per_chunk,
        multi_chunk=wanted.multi_chunk,
        unanswerable=wanted.unanswerable,
        categories=dict(wanted.categories),
        seed=wanted.seed,
        tenant=wanted.tenant,
        again=wanted.again,
        forbid_terms=wanted.forbid_terms,
        activate=wanted.activate,
    )


def ring(generation_id: int, requests: int, *, message_batches: bool) -> None:
    """Ask for a new generation's requests to be sent, one by one or together."""
    if message_batches:
        doorbell.submit([generation_id])
    else:
        doorbell.ask((generation_id, number) for number in range(1, requests + 1))


def resume(ctx: Context, generation_id: int, *, ask_again: bool, max_cost: float | None) -> Resumed:
    """Take up what a generation left undone, and ring for it; see `generation_resuming.resume`.

    Raises UsageError where a cap has no price, too.
    """
    with ctx.database.begin() as session:
        found = generations.get(session, generation_id)
        _check_price(found, max_cost)
        resumed = generation_resuming.resume(
            session, generation_id, ask_again=ask_again, max_cost=max_cost,
            deadline=deadline(ctx, message_batches=found.message_batches),
        )  # fmt: skip
    if resumed.status is GenerationStatus.SCREENING:
        doorbell.screen([generation_id])
    else:
        sweep_generations(ctx, quiet=0, poll_every=0)
    return resumed


def _check_price(found: Generation, max_cost: float | None) -> None:
    check_amount(max_cost)
    cap = found.max_cost if max_cost is None else max_cost
    settings = GenerationPlan.from_json(found.settings).generation
    if cap is not None and priced(settings) is None:
        raise UsageError(
            f"a cost cap of {dollars(cap)} needs a price: generation {found.id} was started without"
            f" one for {settings.model}, and keeps the settings that it was started with"
        )


def deadline(ctx: Context, *, message_batches: bool) -> timedelta:
    """Return how long a generation may take."""
    longest = timedelta(seconds=ctx.settings.queue.deadline)
    return longest + MESSAGE_BATCHES_TAKE if message_batches else longest
