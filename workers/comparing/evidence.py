"""Where the texts that questions were judged on stand in documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from db import golden
from pipeline.chunking.evidence import Letters, Place
from pipeline.corpus.evidence import chunk_texts
from pipeline.corpus.table import CorpusTable
from pipeline.errors import InputError
from pipeline.golden.passages import squash
from pipeline.golden.rechunking import KEPT, Evidence, Search
from pipeline.types import Kind, Question, document_of, make_key
from workers.comparing.documents import Document
from workers.context import Context


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question and the texts that answer it; a text that is not known is None."""

    question: Question
    evidence: Sequence[Evidence]


def judged_questions(
    ctx: Context, table: CorpusTable | None, set_name: str
) -> list[JudgedQuestion]:
    """Return a set's active, answerable questions with the texts that answer them.

    A text is what was judged, else what the corpus holds under the key. Raises InputError where the
    set has no question, and CorpusError or TransientError where the corpus cannot be read.
    """
    with ctx.database.begin() as session:
        stored = golden.questions(session, set_name, evidence=True)
        questions = [each.question for each in stored if each.question.kind is Kind.ANSWERABLE]
    if not questions:
        raise InputError(
            f"golden set {set_name!r} has no active question; run:"
            f" recallwatch golden import FILE --set {set_name}"
        )
    threshold = ctx.settings.eval.relevance_threshold
    present = _present(ctx, table, questions, threshold)
    return [JudgedQuestion(each, list(_evidence(each, present, threshold))) for each in questions]


def _present(
    ctx: Context, table: CorpusTable | None, questions: Sequence[Question], threshold: int
) -> Mapping[str, Sequence[str]]:
    """Return what the corpus holds under the keys whose judged text nobody kept."""
    lacking = {
        key
        for each in questions
        for key, grade in each.expected.items()
        if grade >= threshold and key not in each.evidence
    }
    if table is None or not lacking:
        return {}
    return chunk_texts(ctx.corpus(), table, lacking)


def _evidence(
    question: Question, present: Mapping[str, Sequence[str]], threshold: int
) -> Iterator[Evidence]:
    for key, grade in question.expected.items():
        text = question.evidence.get(key) or min(present.get(key, [""]))
        if grade >= threshold and squash(text):
            yield Evidence(key, text, question.tenant)


def places_of(
    judged: Sequence[Evidence], documents: Sequence[Document], letters: Sequence[Letters]
) -> list[list[Place]]:
    """Return where each judged text stands: nowhere, at one place, or at several alike.

    A text stands where `KEPT` of it or more does, in its own document rather than in others. A
    tenant's text stands in its documents and in nobody's.
    """
    search = Search(judged)
    numbers: dict[str, list[int]] = {}
    for number, each in enumerate(documents):
        numbers.setdefault(each.name, []).append(number)
        search.see(make_key(each.name, 0), each.text, each.tenant)
    places = []
    for one, found in zip(judged, search.found(), strict=True):
        names = {document_of(place.key) for place in found.places}
        within = sorted(number for name in names for number in numbers[name])
        # A few words are looked for in their own document only, which is none of a folder's.
        likely = within or _holding(squash(one.text), letters)
        own = [n for n in likely if _may_answer(documents[n].tenant, one.tenant)]
        places.append(list(_places(one.text, own, letters)))
    return places


def _holding(squashed: str, letters: Sequence[Letters]) -> list[int]:
    return [number for number, each in enumerate(letters) if squashed in each.squashed]


def _may_answer(owner: str | None, asking: str | None) -> bool:
    return None in {owner, asking} or owner == asking


def _places(text: str, numbers: Sequence[int], letters: Sequence[Letters]) -> Iterator[Place]:
    least = KEPT * len(squash(text))
    for number in numbers:
        place = Place(number, letters[number].passages_of(text))
        if place.passages and place.length >= least:
            yield place
