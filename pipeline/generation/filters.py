"""What is wrong with a generated question, as far as its own words tell.

Filters that need the corpus or the golden set are `similarity` and `ambiguity`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.generation.languages import other_language
from pipeline.generation.references import is_generic, reference_to_text
from pipeline.generation.words import holds_run, length, longest_shared_run, tokens
from pipeline.safe_text import clean
from pipeline.text import MAX_QUESTION_CHARACTERS, quoted
from pipeline.types import Kind

LEAST_TERMS = 4
"""Content words from which their overlap is judged: a shorter question must name its subject."""

_CHARACTERS_PER_WORD = 12
"""Of a question as long as it may be: more is pasted, not typed."""


class Rejection(StrEnum):
    """The filter that refused a generated question; stored, counted and shown under its name."""

    EMPTY = "empty"
    CONTROL_CHARACTERS = "control_characters"
    TOO_LONG = "too_long"
    TOO_GENERIC = "too_generic"
    REFERS_TO_TEXT = "refers_to_text"
    WRONG_LANGUAGE = "wrong_language"
    FORBIDDEN_TERM = "forbidden_term"
    SHARED_RUN = "shared_run"
    OVERLAP = "overlap"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    SOURCE_CHANGED = "source_changed"
    CHUNK_NOT_NEEDED = "chunk_not_needed"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a question is refused: the filter, and what it saw."""

    rejection: Rejection
    detail: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a question may be: [generation] max_words, max_overlap, max_shared_run."""

    max_words: int
    max_overlap: float
    max_shared_run: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A chunk that a question was written from; `terms`: its content words."""

    key: str
    content: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wording:
    """A question, its content words, and the chunks that it was written from.

    `language` is the one to ask in, the chunks'; None: it is not known, and any will do.
    `forbidden` are the terms that it must not use, `forbidden_terms` the same as content words.
    Content words: `pipeline.generation.words.content_terms` of `pipeline.corpus.terms.lexemes`.
    """

    text: str
    terms: frozenset[str]
    sources: Sequence[SourceText]
    kind: Kind = Kind.ANSWERABLE
    language: str | None = None
    forbidden: Sequence[str] = ()
    forbidden_terms: frozenset[str] = frozenset()


def find_fault(wording: Wording, limits: Limits) -> Finding | None:
    """Return the first thing that is wrong with a question's words; None: nothing is."""
    found = (check(wording, limits) for check in _CHECKS)
    return next(filter(None, found), None)


def overlap(wording: Wording) -> tuple[float, str]:
    """Return the largest share of the question's content words that one chunk holds, and its key.

    0 and no key for a question without content words or chunks.
    """
    if not wording.terms:
        return 0.0, ""
    shares = (
        (len(wording.terms & source.terms) / len(wording.terms), source.key)
        for source in wording.sources
    )
    return max(shares, key=lambda share: share[0], default=(0.0, ""))


def shared_run(wording: Wording) -> Sequence[str]:
    """Return the longest run of tokens, by `words.length`, that question and a chunk share."""
    asked = tokens(wording.text)
    runs = (longest_shared_run(asked, tokens(source.content)) for source in wording.sources)
    return max(runs, key=length, default=())


def _empty(wording: Wording, _: Limits) -> Finding | None:
    if tokens(wording.text):
        return None
    return Finding(Rejection.EMPTY, f"it holds no word: {quoted(wording.text)}")


def _controls(wording: Wording, _: Limits) -> Finding | None:
    if clean(wording.text) == wording.text:
        return None
    what = "it holds characters that control a terminal or reorder text"
    return Finding(Rejection.CONTROL_CHARACTERS, f"{what}: {quoted(wording.text)}")


def _too_long(wording: Wording, limits: Limits) -> Finding | None:
    words, characters = length(tokens(wording.text)), len(wording.text)
    if words > limits.max_words:
        return Finding(Rejection.TOO_LONG, f"{words:.0f} words; at most {limits.max_words} pass")
    most = min(MAX_QUESTION_CHARACTERS, _CHARACTERS_PER_WORD * limits.max_words)
    if characters > most:
        return Finding(Rejection.TOO_LONG, f"{characters} characters; at most {most} pass")
    return None


def _generic(wording: Wording, _: Limits) -> Finding | None:
    if wording.terms and not is_generic(wording.text):
        return None
    return Finding(Rejection.TOO_GENERIC, "nothing in it says what it is about")


def _reference(wording: Wording, _: Limits) -> Finding | None:
    words = reference_to_text(wording.text)
    if words is None:
        return None
    return Finding(Rejection.REFERS_TO_TEXT, f"it speaks of its source: {quoted(words)}")


def _language(wording: Wording, _: Limits) -> Finding | None:
    wanted = wording.language
    found = other_language(wording.text, wanted) if wanted else None
    if found is None:
        return None
    return Finding(Rejection.WRONG_LANGUAGE, f"it is in {found}, its source in {wanted}")


def _forbidden(wording: Wording, _: Limits) -> Finding | None:
    asked = tokens(wording.text)
    used = [term for term in wording.forbidden if holds_run(asked, tokens(term))]
    used += sorted(wording.terms & wording.forbidden_terms)
    return Finding(Rejection.FORBIDDEN_TERM, f"it uses {quoted(used[0])}") if used else None


def _shared_run(wording: Wording, limits: Limits) -> Finding | None:
    run = shared_run(wording)
    if length(run) <= limits.max_shared_run:
        return None
    words = f"{length(run):.0f} words in a row are its source's: {quoted(' '.join(run))}"
    return Finding(Rejection.SHARED_RUN, words)


def _overlap(wording: Wording, limits: Limits) -> Finding | None:
    """Judge answerable questions: one that its chunk does not answer has only its subject there."""
    share, key = overlap(wording)
    few = len(wording.terms) < LEAST_TERMS or wording.kind is Kind.UNANSWERABLE
    if few or share <= limits.max_overlap:
        return None
    return Finding(Rejection.OVERLAP, f"{share:.0%} of its content words stand in {key}")


_CHECKS: Sequence[Callable[[Wording, Limits], Finding | None]] = (
    _empty,
    _controls,
    _too_long,
    _generic,
    _reference,
    _language,
    _forbidden,
    _shared_run,
    _overlap,
)
