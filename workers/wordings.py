"""The words of generated questions and of their chunks, as the filters compare them."""

from collections.abc import Iterable, Mapping, Sequence

from db.candidates import CandidateRow
from pipeline.corpus.terms import lexemes
from pipeline.generation.ambiguity import Terms
from pipeline.generation.filters import SourceText, Wording
from pipeline.generation.languages import source_language
from pipeline.generation.words import content_terms
from workers.context import Context

Spoken = tuple[str, str | None]
"""A text and its language."""


def wordings_of(ctx: Context, batch: Sequence[CandidateRow]) -> list[Wording]:
    """Return the wording of each candidate, in order. Raises what reading the corpus raises."""
    languages = [_language(candidate) for candidate in batch]
    texts: list[Spoken] = []
    for candidate, language in zip(batch, languages, strict=True):
        texts.append((candidate.text, language))
        texts.append((_forbidden(candidate), language))
        texts += [(chunk.content, language) for chunk in candidate.ask.chunks]
    terms = terms_of(ctx, texts)
    return [
        Wording(
            text=candidate.text,
            terms=terms[candidate.text, language],
            sources=[
                SourceText(chunk.key, chunk.content, terms[chunk.content, language])
                for chunk in candidate.ask.chunks
            ],
            kind=candidate.kind,
            language=language,
            forbidden=candidate.ask.forbidden,
            forbidden_terms=terms[_forbidden(candidate), language],
        )
        for candidate, language in zip(batch, languages, strict=True)
    ]


def terms_of(ctx: Context, texts: Iterable[Spoken]) -> Mapping[Spoken, Terms]:
    """Return the content words of each text, in its language."""
    distinct = list(dict.fromkeys(texts))
    found = lexemes(ctx.corpus(), [text for text, _ in distinct], [own for _, own in distinct])
    return dict(zip(distinct, map(content_terms, found), strict=True))


def _forbidden(candidate: CandidateRow) -> str:
    return " ".join(candidate.ask.forbidden)


def _language(candidate: CandidateRow) -> str | None:
    text = "\n".join(chunk.content for chunk in candidate.ask.chunks)
    return source_language(candidate.ask.language or candidate.language, text)
