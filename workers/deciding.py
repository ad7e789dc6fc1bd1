"""Decide on a batch of generated questions: each is kept with what is known of it, or refused.

Cheapest first: the words of a question, then the questions that the set has, then the corpus.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from db import screening
from db.candidates import CandidateRow, categories
from db.models import Generation
from pipeline.corpus.neighbours import contents_by_tenant
from pipeline.errors import CorpusError, RecallwatchError, TransientError
from pipeline.generation.ambiguity import Proposal, propose
from pipeline.generation.filters import (
    Finding,
    Limits,
    Rejection,
    Wording,
    find_fault,
    overlap,
    shared_run,
)
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.sampling import instead_of
from pipeline.generation.similarity import Asked, Twins
from pipeline.generation.words import length
from pipeline.safe_text import clean
from pipeline.types import FloatMatrix, Kind
from workers.context import Context
from workers.round_trips import Look, look_around
from workers.screening_budget import GenerationBudget
from workers.wordings import wordings_of

log = structlog.get_logger(__name__)

PAGE = 2_000
"""Questions of the set that candidates are compared with at a time."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a candidate: `finding` says why it is refused; None: it is kept."""

    candidate: CandidateRow
    finding: Finding | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    proposals: Sequence[Proposal] = ()


def decide(ctx: Context, generation: Generation, batch: Sequence[CandidateRow]) -> list[Decision]:
    """Return a decision for each candidate of a batch, in order. Stores nothing.

    Raises TransientError where a server does not answer, CorpusError where the corpus cannot be
    read. A strategy that cannot be asked, or an embedder that cannot embed, is noted in the facts.
    """
    plan = GenerationPlan.from_json(generation.settings)
    wordings = wordings_of(ctx, batch)
    faults = _faults(ctx, plan, batch, wordings)
    sound = [row for row in range(len(batch)) if row not in faults]
    decisions = {
        row: Decision(batch[row], fault, _facts(wordings[row])) for row, fault in faults.items()
    }
    compared = _Compared(ctx, generation, plan, [batch[row] for row in sound])
    decisions |= dict(zip(sound, compared.decide([wordings[row] for row in sound]), strict=True))
    return _with_categories(ctx, [decisions[row] for row in range(len(batch))])


def _faults(
    ctx: Context, plan: GenerationPlan, batch: Sequence[CandidateRow], wordings: Sequence[Wording]
) -> dict[int, Finding]:
    """Return what is wrong with candidates by their own words, or with the chunks they expect."""
    settings = plan.generation
    limits = Limits(settings.max_words, settings.max_overlap, settings.max_shared_run)
    texts = _sources(ctx, plan, batch)
    faults = {}
    for row, (candidate, wording) in enumerate(zip(batch, wordings, strict=True)):
        fault = (
            find_fault(wording, limits)
            or _not_needed(candidate)
            or _changed_source(candidate, texts[candidate.tenant])
        )
        if fault is not None:
            faults[row] = fault
    return faults


def _sources(
    ctx: Context, plan: GenerationPlan, batch: Sequence[CandidateRow]
) -> dict[str | None, dict[str, str]]:
    """Return, for each tenant, the texts that its candidates' chunks have in the corpus now.

    Raises CorpusError where it holds none of them: it is another corpus, or was indexed anew, and
    questions that were paid for are not refused for that.
    """
    table = ctx.corpus_table(plan.corpus)
    keys = ((one.tenant, [chunk.key for chunk in one.ask.chunks]) for one in batch)
    texts = contents_by_tenant(ctx.corpus(), table, keys)
    if not any(texts.values()):
        raise CorpusError(
            f"{table} holds none of the chunks that the questions were written from, as"
            f" {batch[0].ask.chunks[0].key}: is CORPUS_URL (or DATABASE_URL) of the workers right?"
            f" Then: recallwatch golden generations resume {batch[0].generation_id}; where chunks"
            " have other keys by now, generate anew"
        )
    return texts


def _not_needed(candidate: CandidateRow) -> Finding | None:
    """Refuse a question that was to need several chunks, and needs fewer by the model's word."""
    keys = {chunk.key for chunk in candidate.ask.chunks}
    unneeded = sorted(keys - candidate.expected.keys())
    if candidate.kind is Kind.UNANSWERABLE or not unneeded:
        return None
    return Finding(
        Rejection.CHUNK_NOT_NEEDED,
        f"it was to need {len(keys)} chunks, and does not need {', '.join(unneeded)}",
    )


def _changed_source(candidate: CandidateRow, texts: Mapping[str, str]) -> Finding | None:
    for chunk in candidate.ask.chunks:
        if chunk.key in candidate.expected and texts.get(chunk.key) != chunk.content:
            what = "has another text" if chunk.key in texts else "is not in the corpus any more"
            return Finding(Rejection.SOURCE_CHANGED, f"{chunk.key} {what}")
    return None


def _with_categories(ctx: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """Note in the facts of a question that is of another category which one was asked for."""
    if not decisions:
        return []
    numbers = {each.candidate.number for each in decisions}
    with ctx.database.begin() as session:
        given = categories(session, decisions[0].candidate.generation_id, numbers)
    noted = []
    for each in decisions:
        one = each.candidate
        wanted = instead_of(one.ask.categories, given[one.number])[one.ordinal - 1]
        facts = {"instead_of": wanted} if wanted else {}
        noted.append(replace(each, facts={**each.facts, **facts}))
    return noted


def _facts(wording: Wording) -> dict[str, Any]:
    return {
        "overlap": round(overlap(wording)[0], 3),
        "shared_run": round(length(shared_run(wording)), 1),
    }


class _Compared:
    """Candidates whose words are sound, held against the golden set, the corpus and each other."""

    def __init__(
        self,
        ctx: Context,
        generation: Generation,
        plan: GenerationPlan,
        candidates: Sequence[CandidateRow],
    ) -> None:
        self._ctx = ctx
        self._generation = generation
        self._plan = plan
        self._candidates = candidates
        self._asked = [Asked(each.text, each.tenant) for each in candidates]
        self._near = plan.generation.near_duplicate
        self._budget = GenerationBudget(ctx, generation.id)
        self._notes: list[str] = []

    def decide(self, wordings: Sequence[Wording]) -> list[Decision]:
        """Return a decision for each candidate; `wordings` are theirs."""
        vectors = self._embed([each.text for each in self._candidates])
        twins = Twins(self._asked, vectors, self._near)
        self._compare_with_set(twins, embedded=vectors is not None)
        new = [row for row in range(len(self._candidates)) if twins.finding(row) is None]
        looks = self._look(new, wordings, vectors)
        decisions = []
        for row, candidate in enumerate(self._candidates):
            look = looks.get(row)
            finding = twins.finding(row) or (look.answer if look else None)
            facts = _facts(wordings[row]) | self._facts(twins.nearest(row), look)
            if finding is not None or look is None:
                decisions.append(Decision(candidate, finding, facts))
                continue
            proposals = propose(candidate.expected, look.found, self._near)
            decisions.append(Decision(candidate, None, facts, proposals))
            # Those that follow must not ask what this one asks.
            twins.compare(self._asked[row : row + 1], _part(vectors, [row]))
        return decisions

    def _embed(self, texts: Sequence[str]) -> FloatMatrix | None:
        """Return the texts' vectors; None, and a note, where there is nothing that embeds them."""
        if not texts:
            return None
        try:
            dimensions = self._ctx.corpus_table(self._plan.corpus).dimensions
            embedder = self._ctx.embedder(self._plan.embedding, dimensions)
            return embedder.embed(texts, budget=self._budget)[0]
        except TransientError:
            raise
        except RecallwatchError as error:
            log.warning("not_embedded", reason=str(error))
            reason = clean(str(error))
            self._notes.append(f"near-duplicates were looked for by their words alone: {reason}")
            return None

    def _compare_with_set(self, twins: Twins, *, embedded: bool) -> None:
        """Compare the candidates with the set's questions, a page at a time, in flat memory."""
        tenants = {each.tenant for each in self._candidates}
        after = 0
        while tenants:
            with self._ctx.database.begin() as session:
                page = screening.known(
                    session, self._generation.set_name, tenants, after=after, limit=PAGE
                )
            if not page:
                return
            after = page[-1].id
            vectors = self._embed([each.text for each in page]) if embedded else None
            embedded = vectors is not None
            twins.compare([Asked(each.text, each.tenant) for each in page], vectors)

    def _look(
        self, rows: Sequence[int], wordings: Sequence[Wording], vectors: FloatMatrix | None
    ) -> dict[int, Look]:
        looks = look_around(
            self._ctx,
            self._generation,
            self._plan,
            [self._candidates[row] for row in rows],
            [wordings[row] for row in rows],
            _part(vectors, rows),
            self._embed,
        )
        return dict(zip(rows, looks, strict=True))

    def _facts(self, nearest: tuple[float, str], look: Look | None) -> dict[str, Any]:
        facts: dict[str, Any] = {} if look is None else dict(look.facts)
        cosine, text = nearest
        if text:
            facts["nearest_question"] = {"text": text, "cosine": round(cosine, 4)}
        if self._notes:
            facts["notes"] = list(dict.fromkeys(self._notes))
        return facts


def _part(vectors: FloatMatrix | None, rows: Sequence[int]) -> FloatMatrix | None:
    return None if vectors is None else vectors[list(rows)]
