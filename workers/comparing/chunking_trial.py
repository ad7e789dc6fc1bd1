"""Compare chunkings over the same questions and documents: how much of the answers comes back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.chunking.evidence import (
    Letters,
    Piece,
    Place,
    first_match,
    rank_held,
    share_held,
    within_budget,
)
from pipeline.chunking.splitting import Chunking
from pipeline.corpus.table import CorpusTable
from pipeline.embedding.pricing import dollars
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import CorpusError, UnmeasuredError
from pipeline.experiment import Candidate, Experiment, compare
from pipeline.types import FloatMatrix, Ranking, document_of
from workers.comparing.budget import Cap, Estimate, check_estimates, check_price, estimate
from workers.comparing.cutting import PRESENT, Cut, cuts_of
from workers.comparing.documents import Document, from_corpus, from_folder
from workers.comparing.evidence import JudgedQuestion, judged_questions, places_of
from workers.comparing.models import Model
from workers.comparing.search import TenantSearch
from workers.comparing.vectors import SideVectors
from workers.context import Context

BLOCK = 2048
"""Chunks embedded and compared at a time."""

Advance = Callable[[int], None]
"""Told how many chunks were worked through since it was told last."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked for.

    `folder`: whose files are the documents; None: the corpus's, those that questions expect and so
    many `others` (None: all). `budget`: letters that a prompt has room for. `held`: the share of a
    judged text that counts as all of it. `metric`: the measure that decides.
    """

    chunkings: Sequence[Chunking]
    model: Model
    set_name: str
    k: int
    budget: int
    held: float
    metric: str
    folder: Path | None
    others: int | None
    seed: int
    max_cost: float

    @property
    def measures(self) -> list[str]:
        """The measures' names: `held` of a text, `recall` of texts that are, `mrr` of a match."""
        return [f"held@{self.budget}", f"recall@{self.k}", f"mrr@{self.k}"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that can be answered: where each text that answers it stands."""

    text: str
    tenant: str | None
    evidence: Sequence[Sequence[Place]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared over what, and what that costs.

    `unanswered`: questions none of whose judged texts stand in the documents.
    """

    wanted: Wanted
    documents: int
    cuts: Sequence[Cut]
    asked: Sequence[Asked]
    unanswered: int
    estimate: Estimate

    @property
    def total(self) -> int:
        """How many chunks are worked through."""
        return sum(len(cut.pieces) for cut in self.cuts)

    @property
    def favours_present(self) -> bool:
        """Whether most judged texts are whole chunks of the present ones."""
        if self.cuts[0].name != PRESENT:
            return False
        present = {(piece.document, piece.first, piece.last) for piece in self.cuts[0].pieces}
        judged = [places[0] for each in self.asked for places in each.evidence]
        whole = sum((place.document, *place.ends) in present for place in judged)
        return 2 * whole > len(judged)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found; `failed` questions got no vector and are left out."""

    experiment: Experiment
    failed: int
    spent: float


def plan(ctx: Context, wanted: Wanted) -> Plan:
    """Read the documents, find the judged texts in them, cut them, and estimate the cost.

    Raises UsageError for a model whose price nobody knows, InputError and CorpusError where there
    is nothing to compare over, UnmeasuredError where no judged text stands in the documents.
    """
    check_price(wanted.model.name, wanted.model.embedding)
    judged = judged_questions(ctx, _table(ctx, wanted), wanted.set_name)
    documents = _documents(ctx, wanted, judged)
    letters = [Letters(each.text) for each in documents]
    asked = _asked(judged, documents, letters)
    if not asked:
        raise UnmeasuredError(
            "no judged text stands in the documents; recallwatch golden check shows what became of"
            " the keys"
        )
    cuts = list(cuts_of(wanted.chunkings, documents, letters))
    cost = _estimate(ctx, wanted.model, cuts, asked)
    return Plan(wanted, len(documents), cuts, asked, len(judged) - len(asked), cost)


def _table(ctx: Context, wanted: Wanted) -> CorpusTable | None:
    """Return the corpus's table; with a folder there need be none."""
    try:
        return ctx.corpus_table()
    except CorpusError:
        if wanted.folder is None:
            raise
        return None


def _documents(ctx: Context, wanted: Wanted, judged: Sequence[JudgedQuestion]) -> list[Document]:
    if wanted.folder is not None:
        return from_folder(wanted.folder)
    expected = dict.fromkeys(
        document_of(evidence.key) for each in judged for evidence in each.evidence
    )
    return from_corpus(ctx, list(expected), others=wanted.others, seed=wanted.seed)


def _asked(
    judged: Sequence[JudgedQuestion], documents: Sequence[Document], letters: Sequence[Letters]
) -> list[Asked]:
    """Return the questions with a judged text that stands in the documents."""
    found = iter(places_of([one for each in judged for one in each.evidence], documents, letters))
    asked = []
    for each in judged:
        places = [next(found) for _ in each.evidence]
        if here := [one for one in places if one]:
            asked.append(Asked(each.question.text, each.question.tenant, here))
    return asked


def _estimate(ctx: Context, model: Model, cuts: Sequence[Cut], asked: Sequence[Asked]) -> Estimate:
    free = Cap(0.0)
    questions = SideVectors(ctx, model.embedding, InputType.QUERY, free)
    chunks = SideVectors(ctx, model.embedding, InputType.DOCUMENT, free)
    texts = [
        *questions.missing([each.text for each in asked]),
        *chunks.missing([text for cut in cuts for text in cut.texts]),
    ]
    return estimate(model.name, model.embedding, texts)


def run(ctx: Context, planned: Plan, advance: Advance) -> Trial:
    """Embed what has no vector yet, search exactly in each chunking, and compare.

    What was embedded is kept, also where this is broken off. Raises what
    `workers.comparing.embedding_trial.run` raises.
    """
    wanted = planned.wanted
    check_estimates([planned.estimate], wanted.max_cost)
    cap = Cap(wanted.max_cost)
    asked = SideVectors(ctx, wanted.model.embedding, InputType.QUERY, cap)
    vectors = asked.of([each.text for each in planned.asked])
    tried = [_try(ctx, planned, cut, vectors, cap, advance) for cut in planned.cuts]
    # A question without a vector has none in any chunking.
    good = np.flatnonzero(~np.isnan(tried[0][0]).any(axis=1))
    failed = len(planned.asked) - len(good)
    if not len(good):
        raise UnmeasuredError(f"no question can be compared: {failed} got no vector")
    candidates = [
        Candidate(cut.name, dict(zip(wanted.measures, values[good].T, strict=True)), facts)
        for cut, (values, facts) in zip(planned.cuts, tried, strict=True)
    ]
    return Trial(
        compare(candidates, measure=_deciding(wanted), seed=wanted.seed), failed, cap.spent
    )


def _try(
    ctx: Context, planned: Plan, cut: Cut, vectors: FloatMatrix, cap: Cap, advance: Advance
) -> tuple[Floats, Mapping[str, object]]:
    """Return what one chunking brings back, shape (questions, measures), and what it takes."""
    wanted, before = planned.wanted, cap.spent
    chunks = SideVectors(ctx, wanted.model.embedding, InputType.DOCUMENT, cap)
    tenants = [each.tenant if wanted.folder is None else None for each in planned.asked]
    search = TenantSearch(vectors, tenants, cut.limit(wanted.k, wanted.budget))
    lost = 0
    for start in range(0, len(cut.texts), BLOCK):
        block = slice(start, start + BLOCK)
        # Of equal length, so that their order as texts is that of the documents.
        keys = [f"{number:012d}" for number in range(len(cut.texts))[block]]
        lost += search.offer(keys, cut.tenants[block], chunks.of(cut.texts[block]))
        advance(len(keys))
    values = np.full((len(planned.asked), len(wanted.measures)), np.nan)
    for row, (each, ranking) in enumerate(zip(planned.asked, search.rankings(), strict=True)):
        if isinstance(ranking, Ranking):
            pieces = [cut.pieces[int(key)] for key in ranking.keys]
            values[row] = _measured(each, pieces, wanted)
    letters = sum(piece.length for piece in cut.pieces)
    return values, {
        "chunks": len(cut.pieces),
        "letters each": round(letters / len(cut.pieces)) if cut.pieces else 0,
        "spent": dollars(cap.spent - before),
        "no vector": lost,
    }


def _deciding(wanted: Wanted) -> str:
    """Return the name, with its cutoff, of the measure that decides."""
    return next(name for name in wanted.measures if name.startswith(wanted.metric))


def _measured(asked: Asked, ranking: Sequence[Piece], wanted: Wanted) -> list[float]:
    """Return a question's measures, in the order of `Wanted.measures`."""
    prompt = within_budget(ranking, wanted.budget)
    held = [share_held(places, prompt) for places in asked.evidence]
    found = [rank_held(places, ranking[: wanted.k], wanted.held) for places in asked.evidence]
    first = first_match(asked.evidence, ranking[: wanted.k], wanted.held)
    return [
        sum(held) / len(held),
        sum(rank is not None for rank in found) / len(found),
        0.0 if first is None else 1 / first,
    ]
