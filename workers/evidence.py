"""Keep the texts that questions were judged on, and find the keys that stand for others now."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from db import evidence
from db.evidence import JudgedKey
from db.session import Session
from pipeline.corpus.evidence import chunk_hashes, chunk_texts, each_chunk, text_hash
from pipeline.corpus.table import CorpusTable
from pipeline.golden.rechunking import Evidence, Found, Search
from pipeline.types import KeyState, document_of
from workers.context import Context

KEYS_PER_CAPTURE = 500
"""Texts of chunks, a megabyte each at most, that are held at a time."""

TEXTS_PER_SEARCH = 20_000
"""Judged texts that one pass over the corpus looks for: 3 KB each, or so."""


def capture(ctx: Context, session: Session, table: CorpusTable, set_name: str) -> None:
    """Keep the present texts of what a set's active questions expect, where none is kept yet."""
    keys = iter(evidence.lacking(session, set_name))
    while batch := list(islice(keys, KEYS_PER_CAPTURE)):
        found = chunk_texts(ctx.corpus(), table, batch)
        hashes = {key: text_hash(texts[0]) for key, texts in found.items()}
        evidence.add(session, {hashes[key]: texts[0] for key, texts in found.items()})
        evidence.attach(session, set_name, hashes)


def differing(
    ctx: Context, table: CorpusTable, judged: Sequence[JudgedKey]
) -> tuple[set[str], list[JudgedKey]]:
    """Return the keys that are not in the corpus, and those that have another text there."""
    found = chunk_hashes(ctx.corpus(), table, {each.key for each in judged})
    gone = {each.key for each in judged if each.key not in found}
    changed = [
        each
        for each in judged
        if each.evidence_hash
        and each.evidence_hash not in found.get(each.key, [each.evidence_hash])
    ]
    return gone, changed


def stale(
    ctx: Context, session: Session, table: CorpusTable, changed: Iterable[JudgedKey]
) -> dict[JudgedKey, KeyState]:
    """Return those keys whose chunks no longer hold what was judged, and where that is now.

    It is looked for in the key's document only; `golden check` reads the whole corpus.
    """
    found: dict[JudgedKey, KeyState] = {}
    rest = iter(changed)
    while batch := list(islice(rest, TEXTS_PER_SEARCH)):
        texts = chunk_texts(ctx.corpus(), table, {each.key for each in batch})
        own = ((key, text) for key, several in texts.items() for text in several)
        bad = [each for each, one in _search(session, batch, own) if not one.usable]
        if bad:
            near = each_chunk(ctx.corpus(), table, {document_of(each.key) for each in bad})
            found |= {each: one.state for each, one in _search(session, bad, near)}
    return found


def locate(
    ctx: Context, session: Session, table: CorpusTable, judged: Sequence[JudgedKey]
) -> dict[JudgedKey, Found]:
    """Look for what was judged in the whole corpus, which is read once for so many texts.

    A key without evidence is live or lost by whether it is there. The corpus is not read when all
    keys have the text that was judged.
    """
    gone, changed = differing(ctx, table, judged)
    wanted = {*changed, *(each for each in judged if each.key in gone and each.evidence_hash)}
    found = {each: _untouched(each, gone) for each in judged if each not in wanted}
    rest = iter(each for each in judged if each in wanted)
    while batch := list(islice(rest, TEXTS_PER_SEARCH)):
        found |= dict(_search(session, batch, each_chunk(ctx.corpus(), table)))
    return found


def _untouched(judged: JudgedKey, gone: set[str]) -> Found:
    return Found(KeyState.LOST) if judged.key in gone else Found(KeyState.LIVE, (), 1.0)


def _search(
    session: Session, judged: Sequence[JudgedKey], chunks: Iterable[tuple[str, str]]
) -> Iterator[tuple[JudgedKey, Found]]:
    """Search the chunks for the texts that were judged."""
    hashes = {each.evidence_hash for each in judged if each.evidence_hash}
    texts = evidence.texts(session, hashes)
    search = Search([Evidence(each.key, texts[each.evidence_hash or ""]) for each in judged])
    for key, content in chunks:
        search.see(key, content)
    yield from zip(judged, search.found(), strict=True)
