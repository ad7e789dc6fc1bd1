"""What the corpus returns for generated questions: their sources' ranks, and what else is there.

It informs the reviewer and proposes keys. Only an unanswerable question is refused by it: to keep
those that retrieval finds would leave the easy ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from db import screening
from db.candidates import CandidateRow
from db.models import Generation
from db.screening import KnownQuestion
from pipeline.corpus.neighbours import Neighbour, by_tenant, contents, near_duplicates
from pipeline.corpus.table import CorpusTable
from pipeline.errors import RecallwatchError, TransientError
from pipeline.generation.ambiguity import LOOKED_AT, Found, Terms, find_answer
from pipeline.generation.filters import Finding, Wording
from pipeline.generation.plan import GenerationPlan
from pipeline.retrieval.tree import StrategyTree
from pipeline.safe_text import clean
from pipeline.types import Failure, FloatMatrix, Kind, QueryBatch, Ranking
from workers.context import Context
from workers.wordings import Spoken, terms_of

Embed = Callable[[Sequence[str]], FloatMatrix | None]
Answers = Sequence[Ranking | Failure]
Question = CandidateRow | KnownQuestion

SAMPLED = 200
"""Questions of the set by which is told how near an answerable one is to its chunk."""

LEAST_SAMPLED = 20
"""Fewer say nothing of that."""

ANY_COSINE = -1.0

Owned = tuple[str | None, str]
"""A tenant, and a key of its chunks: two tenants may share one."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found around a question; `answer`: the chunk that answers an unanswerable one."""

    found: Found
    facts: Mapping[str, Any] = field(default_factory=dict)
    answer: Finding | None = None


def look_around(
    ctx: Context,
    generation: Generation,
    plan: GenerationPlan,
    candidates: Sequence[CandidateRow],
    wordings: Sequence[Wording],
    vectors: FloatMatrix | None,
    embed: Embed,
) -> list[Look]:
    """Look at what comes back for each candidate, and around the chunks that it was written from.

    As the generation's plan has it, whatever the settings say by now. `vectors`: the candidates',
    shape (n, d), None where there are none; `embed` gets others'. Raises TransientError where a
    server does not answer, CorpusError where the corpus cannot be read; a strategy that cannot be
    asked is noted in the facts.
    """
    if not candidates:
        return []
    asker = _Asker(ctx, generation, plan)
    rankings = asker.ask_all(candidates, vectors)
    table = ctx.corpus_table(plan.corpus)
    neighbours = _neighbours(ctx, table, candidates)
    terms = _terms(ctx, table, candidates, wordings, rankings, neighbours)
    unanswerable = any(each.kind is Kind.UNANSWERABLE for each in candidates)
    usual = asker.usual_cosine(candidates, rankings, embed) if unanswerable else None
    looks = []
    for row, (candidate, wording) in enumerate(zip(candidates, wordings, strict=True)):
        answers = {name: found[row] for name, found in rankings.items()}
        found = Found(
            rankings={name: each.keys for name, each in _ranked(answers).items()},
            neighbours=_of_sources(neighbours, candidate),
            terms=terms[row],
        )
        look = Look(found, _facts(candidate, answers, asker.depth))
        if candidate.kind is Kind.UNANSWERABLE:
            look = _held_against_corpus(look, wording, answers.get(asker.by_vector or ""), usual)
        looks.append(look)
    return looks


class _Asker:
    """Asks the strategies that the set was evaluated with when it was generated.

    `depth`: how many chunks each returns. `by_vector`: one of them whose scores are cosines.
    """

    def __init__(self, ctx: Context, generation: Generation, plan: GenerationPlan) -> None:
        self._ctx = ctx
        self._generation = generation
        self._search = plan.search
        self.depth = max(plan.k, plan.look_depth)
        cosines = (name for name, run in plan.search.items() if run["strategy"]["kind"] == "vector")
        self.by_vector = next(cosines, None)

    def ask_all(
        self, questions: Sequence[Question], vectors: FloatMatrix | None
    ) -> dict[str, Answers]:
        """Return each strategy's answers, in the order of the questions."""
        return {name: self.ask(name, questions, vectors) for name in self._search}

    def ask(
        self, strategy: str, questions: Sequence[Question], vectors: FloatMatrix | None
    ) -> Answers:
        """Return a strategy's answers; each a Failure where it cannot be asked."""
        batch = QueryBatch(
            texts=[each.text for each in questions],
            tenants=[each.tenant for each in questions],
            languages=[each.language for each in questions],
            vectors=vectors,
        )
        try:
            run = self._search[strategy]
            if vectors is None and StrategyTree.from_json(run["strategy"]).needs_vectors:
                return [Failure("the questions could not be embedded")] * len(questions)
            retriever = self._ctx.retriever(run, dict(self._generation.corpus_fingerprint))
            return retriever.retrieve(batch, self.depth)
        except TransientError:
            raise
        except RecallwatchError as error:
            return [Failure(str(error))] * len(questions)

    def usual_cosine(
        self,
        candidates: Sequence[CandidateRow],
        rankings: Mapping[str, Answers],
        embed: Embed,
    ) -> float | None:
        """Return the median cosine of answerable questions to the nearest chunk that answers them.

        Of the set's and of the candidates; None where LEAST_SAMPLED do not find one.
        """
        if self.by_vector is None:
            return None
        with self._ctx.database.begin() as session:
            known = screening.answered(session, self._generation.set_name, SAMPLED)
        vectors = embed([each.text for each in known])
        answers = [*rankings[self.by_vector], *self.ask(self.by_vector, known, vectors)]
        keys = [[*each.expected] for each in candidates] + [[*each.keys] for each in known]
        nearest = [
            max(scores)
            for found, wanted in zip(answers, keys, strict=True)
            if isinstance(found, Ranking)
            and (scores := [score for key, score in _pairs(found) if key in wanted])
        ]
        return median(nearest) if len(nearest) >= LEAST_SAMPLED else None


def _neighbours(
    ctx: Context, table: CorpusTable, candidates: Iterable[CandidateRow]
) -> dict[Owned, Ranking]:
    """Return source -> the chunks nearest to it, with their cosines; sources without any left out.

    Of one tenant, as the chunks that a question of it could be answered by.
    """
    keys = by_tenant((one.tenant, one.expected) for one in candidates)
    near: defaultdict[Owned, list[Neighbour]] = defaultdict(list)
    for tenant, wanted in keys.items():
        for each in near_duplicates(ctx.corpus(), table, wanted, least=ANY_COSINE, tenant=tenant):
            near[tenant, each.of].append(each)
    return {
        source: Ranking([one.key for one in found], [one.similarity for one in found])
        for source, found in near.items()
    }


def _of_sources(neighbours: Mapping[Owned, Ranking], candidate: CandidateRow) -> dict[str, Ranking]:
    return {
        key: neighbours[candidate.tenant, key]
        for key in candidate.expected
        if (candidate.tenant, key) in neighbours
    }


def _terms(
    ctx: Context,
    table: CorpusTable,
    candidates: Sequence[CandidateRow],
    wordings: Sequence[Wording],
    rankings: Mapping[str, Answers],
    neighbours: Mapping[Owned, Ranking],
) -> list[Mapping[str, Terms]]:
    """Return, for each candidate, the content words of the chunks around it, in its language."""
    around: list[list[str]] = []
    for row, candidate in enumerate(candidates):
        keys = [*candidate.expected]
        for near in _of_sources(neighbours, candidate).values():
            keys += near.keys
        for found in _ranked({name: each[row] for name, each in rankings.items()}).values():
            keys += found.keys[:LOOKED_AT]
        around.append(keys)
    tenants = [candidate.tenant for candidate in candidates]
    texts = {
        (tenant, key): text
        for tenant, wanted in by_tenant(zip(tenants, around, strict=True)).items()
        for key, text in contents(ctx.corpus(), table, wanted, tenant=tenant).items()
    }
    spoken: list[dict[str, Spoken]] = [
        {key: (texts[tenant, key], wording.language) for key in keys if (tenant, key) in texts}
        for tenant, keys, wording in zip(tenants, around, wordings, strict=True)
    ]
    terms = terms_of(ctx, (each for keys in spoken for each in keys.values()))
    return [{key: terms[each] for key, each in keys.items()} for keys in spoken]


def _facts(
    candidate: CandidateRow, answers: Mapping[str, Ranking | Failure], depth: int
) -> dict[str, Any]:
    """Return the round trip: each source's rank under each strategy, from 1; None: beyond depth."""
    facts: dict[str, Any] = {"rank_depth": depth}
    if candidate.expected:
        facts["ranks"] = {
            name: {key: _rank(found, key) for key in candidate.expected}
            for name, found in _ranked(answers).items()
        }
    else:
        facts["returned"] = {
            name: [[key, round(score, 4)] for key, score in _pairs(found)[:3]]
            for name, found in _ranked(answers).items()
        }
    failed = {
        name: clean(found.reason) for name, found in answers.items() if isinstance(found, Failure)
    }
    return facts | ({"not_asked": failed} if failed else {})


def _held_against_corpus(
    look: Look, wording: Wording, nearest: Ranking | Failure | None, usual: float | None
) -> Look:
    near = (
        Ranking(nearest.keys[:LOOKED_AT], nearest.scores[:LOOKED_AT])
        if isinstance(nearest, Ranking)
        else None
    )
    returned = [key for keys in look.found.rankings.values() for key in keys[:LOOKED_AT]]
    answer = find_answer(wording.terms, near, returned, look.found.terms, usual)
    usually = {} if usual is None else {"usual_cosine": round(usual, 4)}
    return Look(look.found, {**look.facts, **usually}, answer)


def _ranked(answers: Mapping[str, Ranking | Failure]) -> dict[str, Ranking]:
    return {name: found for name, found in answers.items() if isinstance(found, Ranking)}


def _pairs(found: Ranking) -> list[tuple[str, float]]:
    return list(zip(found.keys, found.scores, strict=True))


def _rank(found: Ranking, key: str) -> int | None:
    return list(found.keys).index(key) + 1 if key in found.keys else None
