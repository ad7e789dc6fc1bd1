"""Start a generation: draw chunks, shape requests, estimate, store, ring."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any

from db import generation_requests, generations
from db.generations import NewGeneration
from pipeline.corpus.sampling import Sampler
from pipeline.corpus.statistics import fingerprint
from pipeline.embedding.pricing import dollars
from pipeline.errors import CorpusError, UsageError
from pipeline.generation import sampling
from pipeline.generation.base import Ask, GenerationStatus
from pipeline.generation.estimate import Estimate, estimate
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.pricing import price_of
from pipeline.generation.prompts import VERSION
from pipeline.generation.sampling import DrawnChunk
from pipeline.generation.settings import GenerationSettings
from pipeline.types import Kind
from workers import doorbell
from workers.context import Context
from workers.generation_sweeping import sweep_generations

MESSAGE_BATCHES_TAKE = timedelta(hours=26)
"""What a generation's deadline is put off by: the provider gives itself 24 hours for a batch."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be generated; the options of `recallwatch golden generate`."""

    set_name: str
    generation: GenerationSettings
    sample: int
    per_chunk: int
    multi_chunk: int
    unanswerable: int
    categories: Mapping[str, int]
    seed: int
    tenant: str | None = None
    forbid_terms: bool = False
    activate: bool = False
    message_batches: bool = False
    again: bool = False
    requested_by: str | None = None

    @property
    def chunks(self) -> int:
        """How many chunks are drawn."""
        return self.sample + self.multi_chunk + self.unanswerable


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

    Chunks that the set's generations asked for before are not drawn, unless `again`. Raises
    UsageError where the estimate is above the cap or a cap has no price, CorpusError where the
    corpus has no eligible chunk.
    """
    settings = wanted.generation
    price = price_of(settings, message_batches=wanted.message_batches)
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
        asked = set() if wanted.again else generation_requests.asked_keys(session, wanted.set_name)
    sampler = Sampler(ctx.corpus(), table, min_characters=settings.min_characters)
    asks, warnings = _asks(sampler, wanted, asked)
    estimated = estimate(asks, price)
    _check_cap(estimated, settings.max_cost)
    corpus = fingerprint(ctx.corpus(), table).to_json()
    return Prepared(wanted, asks, estimated, corpus, [*_warnings(settings, estimated), *warnings])


def _check_cap(estimated: Estimate, max_cost: float | None) -> None:
    if max_cost is not None and estimated.cost is not None and estimated.cost > max_cost:
        raise UsageError(
            f"estimated cost: about {dollars(estimated.cost)}, which is above the cap of"
            f" {dollars(max_cost)} (--max-cost or [generation] max_cost): raise it, or ask for less"
        )


def _warnings(settings: GenerationSettings, estimated: Estimate) -> Iterator[str]:
    if settings.production_model == settings.model:
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


def _asks(sampler: Sampler, wanted: Wanted, asked: AbstractSet[str]) -> tuple[list[Ask], list[str]]:
    drawn = sampling.distinct(
        sampler.draw(seed=wanted.seed, tenant=wanted.tenant), wanted.chunks,
        near_duplicate=wanted.generation.near_duplicate, skipped=asked,
    )  # fmt: skip
    if not drawn:
        raise CorpusError(_nothing_drawn(wanted, asked))
    shaper = _Shaper(sampler, wanted, drawn)
    asks = list(shaper.asks())
    warnings = list(_shortfalls(wanted, len(drawn), len(asks)))
    return asks, warnings


def _nothing_drawn(wanted: Wanted, asked: AbstractSet[str]) -> str:
    whose = "" if wanted.tenant is None else f" of tenant {wanted.tenant!r}"
    if asked:
        return (
            f"no chunk{whose} is left that {wanted.set_name!r} was not generated from before; to"
            " ask for these once more: --again"
        )
    return (
        f"no chunk{whose} has {wanted.generation.min_characters} characters or more: lower"
        " --min-characters, or look at: recallwatch corpus show"
    )


def _shortfalls(wanted: Wanted, drawn: int, asks: int) -> Iterator[str]:
    if drawn < wanted.chunks:
        yield (
            f"{drawn} chunks instead of {wanted.chunks}: the corpus has no more of"
            f" {wanted.generation.min_characters} characters that each say something new"
        )
    elif asks < wanted.chunks:
        yield f"{wanted.chunks - asks} chunks have neither a neighbour nor a similar chunk"


class _Shaper:
    """Makes requests of the chunks in the order in which they were drawn."""

    def __init__(self, sampler: Sampler, wanted: Wanted, drawn: Sequence[DrawnChunk]) -> None:
        self._sampler = sampler
        self._wanted = wanted
        self._drawn = drawn
        self._categories = sampling.categories(wanted.categories, wanted.seed)
        self._frequencies = sampling.document_frequencies(each.chunk for each in drawn)

    def asks(self) -> Iterator[Ask]:
        """Yield those of one chunk, of several, and for what no chunk answers."""
        chunks = iter(self._drawn)
        for drawn in islice(chunks, self._wanted.sample):
            yield self._ask([drawn], self._wanted.per_chunk)
        for number, drawn in enumerate(islice(chunks, self._wanted.multi_chunk)):
            other = self._companion(drawn, number)
            if other is not None:
                yield self._ask([drawn, other], 1)
        for drawn in islice(chunks, self._wanted.unanswerable):
            yield self._ask([drawn], 1, Kind.UNANSWERABLE)

    def _companion(self, drawn: DrawnChunk, number: int) -> DrawnChunk | None:
        """Return a neighbouring chunk and a similar one in turn, or the one that there is."""
        near = self._wanted.generation.near_duplicate
        neighbour = self._sampler.neighbour(drawn)
        similar = self._sampler.similar(drawn, below=near)
        return (similar or neighbour) if number % 2 else (neighbour or similar)

    def _ask(
        self, drawn: Sequence[DrawnChunk], questions: int, kind: Kind = Kind.ANSWERABLE
    ) -> Ask:
        chunks = [each.chunk for each in drawn]
        return sampling.ask_for(
            chunks, list(islice(self._categories, questions)), kind=kind,
            forbidden=self._forbidden(drawn) if self._wanted.forbid_terms else (),
        )  # fmt: skip

    def _forbidden(self, drawn: Iterable[DrawnChunk]) -> list[str]:
        terms = (
            term
            for each in drawn
            for term in sampling.distinctive_terms(each.chunk, self._frequencies)
        )
        return list(dict.fromkeys(terms))


def start(ctx: Context, prepared: Prepared) -> int:
    """Store a generation and its requests, ring for them, and return its id."""
    wanted = prepared.wanted
    new = NewGeneration(
        set_name=wanted.set_name,
        settings=_plan(wanted).to_json(),
        corpus_fingerprint=prepared.corpus,
        asks=prepared.asks,
        message_batches=wanted.message_batches,
        max_cost=wanted.generation.max_cost,
        requested_by=wanted.requested_by,
        deadline=_deadline(ctx, message_batches=wanted.message_batches),
    )
    with ctx.database.begin() as session:
        generation_id = generations.create(session, new)
    ring(generation_id, len(prepared.asks), message_batches=wanted.message_batches)
    return generation_id


def _plan(wanted: Wanted) -> GenerationPlan:
    return GenerationPlan(
        generation=wanted.generation,
        prompt_version=VERSION,
        sample=wanted.sample,
        per_chunk=wanted.per_chunk,
        multi_chunk=wanted.multi_chunk,
        unanswerable=wanted.unanswerable,
        categories=dict(wanted.categories),
        seed=wanted.seed,
        tenant=wanted.tenant,
        forbid_terms=wanted.forbid_terms,
        activate=wanted.activate,
    )


def ring(generation_id: int, requests: int, *, message_batches: bool) -> None:
    """Ask for a new generation's requests to be sent, one by one or together."""
    if message_batches:
        doorbell.submit([generation_id])
    else:
        doorbell.ask((generation_id, number) for number in range(1, requests + 1))


def resume(ctx: Context, generation_id: int, *, ask_again: bool, max_cost: float | None) -> None:
    """Take up what a generation left undone, and ring for it; see `generations.resume`."""
    with ctx.database.begin() as session:
        found = generations.get(session, generation_id)
        status = generations.resume(
            session, generation_id, ask_again=ask_again, max_cost=max_cost,
            deadline=_deadline(ctx, message_batches=found.message_batches),
        )  # fmt: skip
    if status is GenerationStatus.SCREENING:
        doorbell.screen([generation_id])
    else:
        sweep_generations(ctx, quiet=0, poll_every=0)


def _deadline(ctx: Context, *, message_batches: bool) -> timedelta:
    deadline = timedelta(seconds=ctx.settings.queue.deadline)
    return deadline + MESSAGE_BATCHES_TAKE if message_batches else deadline
