"""Look the expected keys of a version up before it is evaluated: are they there, and the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from db import evidence, golden
from db.evidence import ExpectedKey, JudgedKey
from db.models import GoldenVersion
from db.session import Session
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError
from pipeline.types import KeyState, Level, document_of
from workers.context import Context
from workers.evidence import differing, stale

KEYS_PER_LOOK = 20_000
"""Expected keys looked up in the corpus at a time."""

SEE = "see: recallwatch golden check"


@dataclass(frozen=True, slots=True)
class Stale:
    """A key of the question at a position, and where its text is now."""

    position: int
    key: str
    state: KeyState


@dataclass(frozen=True, slots=True)
class Liveness:
    """How many distinct keys a version expects, how many are not in the corpus, and one of them.

    At document level, documents. `stale` are the keys of single questions that are there, but
    stand for another text than was judged: `outdated` distinct ones. `ineligible` of `answerable`
    questions have no other; both are counted only where a key is gone or outdated.
    """

    expected: int
    gone: int
    example: str
    stale: Sequence[Stale] = ()
    outdated: int = 0
    ineligible: int = 0
    answerable: int = 0

    @property
    def warnings(self) -> list[str]:
        """What to warn of."""
        lines = []
        if self.gone:
            gone = f"{self.gone} of {self.expected} expected keys"
            lines.append(f"{gone} are not in the corpus, as {self.example!r}")
        if self.outdated:
            example = min(each.key for each in self.stale)
            lines.append(
                f"{self.outdated} of {self.expected} expected keys stand for another text than was"
                f" judged, as {example!r}, and are not scored; {SEE}"
            )
        return lines


@dataclass(slots=True)
class _Seen:
    """What was found of distinct keys, or of documents."""

    expected: int = 0
    gone: set[str] = field(default_factory=set)
    stale: dict[JudgedKey, KeyState] = field(default_factory=dict)


@dataclass(slots=True)
class _Questions:
    """What that means for the answerable questions; of each `ineligible` one, its documents."""

    answerable: int = 0
    ineligible: list[set[str]] = field(default_factory=list)
    stale: list[Stale] = field(default_factory=list)


def check_liveness(
    ctx: Context,
    session: Session,
    table: CorpusTable,
    version: GoldenVersion,
    level: Level,
    *,
    most_ineligible: float = 1.0,
) -> Liveness:
    """Look every expected key of a version up in the corpus; at chunk level, its text too.

    Raises CorpusError when none is there: it is the wrong corpus, or the wrong set. Raises it, too,
    when a larger share of the answerable questions than `most_ineligible` has no usable key. This
    is to refuse and to warn; what is scored is decided with each shard: `workers.evidence.usable`.
    """
    if level is Level.DOCUMENT:
        seen = _documents(ctx, session, table, version.id)
    else:
        seen = _chunks(ctx, session, table, version)
    if seen.expected and seen.expected == len(seen.gone):
        offer = level is Level.CHUNK and bool(
            live_keys(ctx.corpus(), table, seen.gone, Level.DOCUMENT)
        )
        raise CorpusError(_no_key(seen, table, version.set_name, documents=offer))
    questions = _Questions()
    if seen.gone or seen.stale:
        threshold = ctx.settings.eval.relevance_threshold
        questions = _questions(evidence.expected(session, version.id), seen, level, threshold)
    found = Liveness(
        expected=seen.expected,
        gone=len(seen.gone),
        example=min(seen.gone, default=""),
        stale=tuple(questions.stale),
        outdated=len({each.key for each in questions.stale}),
        ineligible=len(questions.ineligible),
        answerable=questions.answerable,
    )
    if found.ineligible > most_ineligible * found.answerable:
        offer = level is Level.CHUNK and _fits_by_document(ctx, table, questions, most_ineligible)
        raise CorpusError(_refusal(found, most_ineligible, documents=offer))
    return found


def _chunks(ctx: Context, session: Session, table: CorpusTable, version: GoldenVersion) -> _Seen:
    seen, changed, last = _Seen(), [], None
    judged = evidence.judged_keys(session, version.id)
    while batch := list(islice(judged, KEYS_PER_LOOK)):
        gone, others = differing(ctx, table, batch)
        seen.gone |= gone
        changed += others
        seen.expected += len({each.key for each in batch} - {last})
        last = batch[-1].key
    seen.stale = stale(ctx, session, table, changed, renew_in=version.set_name)
    return seen


def _documents(ctx: Context, session: Session, table: CorpusTable, version_id: int) -> _Seen:
    seen, known = _Seen(), set[str]()
    keys = golden.expected_keys(session, version_id)
    while batch := {document_of(key) for key in islice(keys, KEYS_PER_LOOK)}:
        seen.gone |= batch - live_keys(ctx.corpus(), table, _as_keys(batch), Level.DOCUMENT)
        known |= batch
    seen.expected = len(known)
    return seen


def _as_keys(documents: set[str]) -> Iterator[str]:
    """Yield a key of each document, for a document's own id may hold a colon."""
    return (f"{document}:" for document in documents)


def _questions(
    expected: Iterator[ExpectedKey], seen: _Seen, level: Level, threshold: int
) -> _Questions:
    found = _Questions()
    for position, keys in groupby(expected, key=lambda each: each.position):
        found.answerable += 1
        documents, usable = set(), False
        for each in keys:
            key, state = each.judged.key, seen.stale.get(each.judged)
            documents.add(document_of(key))
            if state is not None:
                found.stale.append(Stale(position, key, state))
            name = document_of(key) if level is Level.DOCUMENT else key
            usable |= each.grade >= threshold and state is None and name not in seen.gone
        if not usable:
            found.ineligible.append(documents)
    return found


def _fits_by_document(ctx: Context, table: CorpusTable, questions: _Questions, most: float) -> bool:
    """Say whether enough documents are there for an evaluation at document level."""
    wanted = set().union(*questions.ineligible)
    live = live_keys(ctx.corpus(), table, _as_keys(wanted), Level.DOCUMENT)
    lacking = sum(not documents & live for documents in questions.ineligible)
    return lacking <= most * questions.answerable


def _no_key(seen: _Seen, table: CorpusTable, set_name: str, *, documents: bool) -> str:
    return (
        f"none of the {seen.expected} expected keys of golden set {set_name!r} is in corpus table"
        f" {table} (for example {min(seen.gone)!r}): is it the right corpus? If it was re-chunked,"
        f" {SEE}{_instead(documents=documents)}"
    )


def _refusal(found: Liveness, most: float, *, documents: bool) -> str:
    why = "; ".join(each.removesuffix(f"; {SEE}") for each in found.warnings)
    return (
        f"{found.ineligible} of {found.answerable} questions have no usable expected key"
        f" ({found.ineligible / found.answerable:.1%}; [gate] max_ineligible is {most:.1%}): {why}."
        f" Was the corpus re-chunked? {SEE.capitalize()}, then recallwatch golden remap"
        f"{_instead(documents=documents)}"
    )


def _instead(*, documents: bool) -> str:
    return ", or evaluate documents: recallwatch eval --level document" if documents else ""
