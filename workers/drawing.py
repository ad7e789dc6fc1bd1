"""Draw the chunks that a generation asks for, and shape its requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pipeline.corpus.sampling import Sampler
from pipeline.corpus.table import CorpusTable
from pipeline.corpus.terms import distinctive
from pipeline.errors import CorpusError
from pipeline.generation import sampling
from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.distinctive import COMPARED, Distinctive
from pipeline.generation.sampling import Distinct, DrawnChunk
from pipeline.generation.settings import GenerationSettings
from pipeline.types import Kind
from workers.context import Context

TRIED = 4
"""Chunks that are drawn, at most, to find one that has a companion."""

_COMPANION = "a neighbour or a similar chunk that was not drawn yet and says something else"


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


def draw(
    ctx: Context, table: CorpusTable, wanted: Wanted, asked: Sequence[SourceChunk]
) -> list[Ask]:
    """Return the requests, each of chunks that say something new.

    `asked`: chunks that were asked for before, which are not drawn, nor those that say the same.
    Raises CorpusError where nothing can be drawn.
    """
    least = wanted.generation.min_characters
    sampler = Sampler(ctx.corpus(), table, min_characters=least)
    taken = Distinct(wanted.generation.near_duplicate)
    for each in [*sampler.at(asked), *map(DrawnChunk, asked)]:
        taken.remember(each)
    groups = list(_Draw(sampler, wanted, taken).groups())
    if not groups:
        raise CorpusError(_nothing_drawn(sampler, wanted, again=bool(asked)))
    distinctive = _distinctive(ctx, sampler, wanted, groups) if wanted.forbid_terms else None
    mix = sampling.categories(wanted.categories, wanted.seed)
    return [
        sampling.ask_for(
            group.chunks, list(islice(mix, group.questions)), kind=group.kind,
            forbidden=distinctive.terms(group.chunks) if distinctive else (),
        )
        for group in groups
    ]  # fmt: skip


def _nothing_drawn(sampler: Sampler, wanted: Wanted, *, again: bool) -> str:
    whose = "" if wanted.tenant is None else f" of tenant {wanted.tenant!r}"
    least = wanted.generation.min_characters
    if next(iter(sampler.draw(seed=wanted.seed, tenant=wanted.tenant)), None) is None:
        return (
            f"no chunk{whose} has {least} characters or more: lower --min-characters, or look at:"
            " recallwatch corpus show"
        )
    if again:
        return (
            f"no chunk{whose} is left that {wanted.set_name!r} was not generated from before, or"
            " from one that says the same; to ask for these once more: --again"
        )
    return f"no chunk{whose} of {least} characters or more has {_COMPANION}"


def shortfalls(wanted: Wanted, asks: Sequence[Ask], *, again: bool) -> Iterator[str]:
    """Say which options got less than they asked for, and why; `again`: --again may help."""
    several = sum(len(ask.chunks) > 1 for ask in asks)
    unanswerable = sum(ask.kind is Kind.UNANSWERABLE for ask in asks)
    hint = "; chunks that the set was generated from are left out (--again)" if again else ""
    sampled = len(asks) - several - unanswerable
    alone = (("--sample", sampled, wanted.sample),
             ("--unanswerable", unanswerable, wanted.unanswerable))  # fmt: skip
    short = [f"{n or 'none'} of {of} for {option}" for option, n, of in alone if n < of]
    if short:
        least = wanted.generation.min_characters
        why = f"the corpus has no more chunks of {least} characters that each say something new"
        yield f"{', '.join(short)}: {why}{hint}"
    if several < wanted.multi_chunk:
        yield (
            f"{several or 'none'} of {wanted.multi_chunk} for --multi-chunk: no more of the chunks"
            f" that were drawn have {_COMPANION}{hint}"
        )


def _distinctive(
    ctx: Context, sampler: Sampler, wanted: Wanted, groups: Iterable["_Group"]
) -> Distinctive:
    """Return what tells the chunks apart: from each other, and from COMPARED of the corpus."""
    others = islice(sampler.draw(seed=wanted.seed, tenant=wanted.tenant), COMPARED)
    chunks = [chunk for group in groups for chunk in group.chunks]
    return distinctive(ctx.corpus(), [*chunks, *(each.chunk for each in others)])


@dataclass(frozen=True, slots=True)
class _Group:
    """The chunks of one request, and how many questions it asks for."""

    chunks: Sequence[SourceChunk]
    questions: int = 1
    kind: Kind = Kind.ANSWERABLE


class _Draw:
    """Draws the chunks of all requests: each says something new, whichever request it is in."""

    def __init__(self, sampler: Sampler, wanted: Wanted, taken: Distinct) -> None:
        self._sampler = sampler
        self._wanted = wanted
        self._taken = taken
        drawn = sampler.draw(seed=wanted.seed, tenant=wanted.tenant)
        self._new = filter(taken.take, drawn)

    def groups(self) -> Iterator[_Group]:
        """Yield those of one chunk, for what no chunk answers, and of several chunks."""
        wanted = self._wanted
        for drawn in islice(self._new, wanted.sample):
            yield _Group([drawn.chunk], wanted.per_chunk)
        for drawn in islice(self._new, wanted.unanswerable):
            yield _Group([drawn.chunk], kind=Kind.UNANSWERABLE)
        yield from islice(self._pairs(), wanted.multi_chunk)

    def _pairs(self) -> Iterator[_Group]:
        """Yield chunks with a neighbouring one and with a similar one in turn, where there are."""
        for number, drawn in enumerate(islice(self._new, TRIED * self._wanted.multi_chunk)):
            companions = filter(self._taken.take, self._companions(drawn, number))
            other = next(companions, None)
            if other is not None:
                yield _Group([drawn.chunk, other.chunk])

    def _companions(self, drawn: DrawnChunk, number: int) -> Sequence[DrawnChunk]:
        neighbours = self._sampler.neighbours(drawn)
        similar = self._sampler.similar(drawn, below=self._wanted.generation.near_duplicate)
        return [*similar, *neighbours] if number % 2 else [*neighbours, *similar]
