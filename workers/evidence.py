"""Keep the texts that questions were judged on, and find the keys that stand for others now."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from db import evidence
from db.evidence import JudgedKey
from db.models import GoldenItem
from db.session import Session, allow_idling
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
    """Keep the present texts of what a set's active questions expect, where none is kept yet.

    The session has the set's lock.
    """
    lacking = evidence.lacking(session, set_name)
    while batch := list(islice(lacking, KEYS_PER_CAPTURE)):
        hashes = _keep(ctx, session, table, {key for _, key in batch})
        evidence.attach(session, {one: hashes[one[1]] for one in batch if one[1] in hashes})


def _keep(
    ctx: Context, session: Session, table: CorpusTable, keys: Collection[str]
) -> dict[str, str]:
    """Keep the present texts of keys; return the hashes of those that are there."""
    found = chunk_texts(ctx.corpus(), table, keys)
    # Of several rows of a key always the same one, in whatever order they come.
    texts = {key: min(several) for key, several in found.items()}
    hashes = {key: text_hash(one) for key, one in texts.items()}
    evidence.add(session, {hashes[key]: one for key, one in texts.items()})
    return hashes


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
    ctx: Context,
    session: Session,
    table: CorpusTable,
    changed: Iterable[JudgedKey],
    *,
    renew_in: str | None = None,
) -> dict[JudgedKey, KeyState]:
    """Return those keys whose chunks no longer hold what was judged, and where that is now.

    It is looked for in the key's document only; `golden check` reads the whole corpus. `renew_in`:
    a set, whose lock the session has. Where a text of it differs in white space and case alone,
    the present one becomes the evidence, so that it need not be looked at again.
    """
    found: dict[JudgedKey, KeyState] = {}
    rest = iter(changed)
    while batch := list(islice(rest, TEXTS_PER_SEARCH)):
        texts = chunk_texts(ctx.corpus(), table, {each.key for each in batch})
        own = dict(_search(session, batch, _rows(texts)))
        if renew_in is not None:
            same = [each for each, one in own.items() if one.state is KeyState.LIVE]
            _renew(session, renew_in, same, texts)
        bad = [each for each, one in own.items() if not one.usable]
        if bad:
            near = each_chunk(ctx.corpus(), table, {document_of(each.key) for each in bad})
            found |= {each: one.state for each, one in _search(session, bad, near)}
    return found


def _rows(texts: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    return ((key, one) for key, several in texts.items() for one in several)


def _renew(
    session: Session, set_name: str, same: Iterable[JudgedKey], texts: Mapping[str, Sequence[str]]
) -> None:
    """Take the present texts for evidence; of several rows of a key none, for they may differ."""
    single = (each for each in same if len(texts[each.key]) == 1)
    while batch := list(islice(single, KEYS_PER_CAPTURE)):
        hashes = {each: text_hash(texts[each.key][0]) for each in batch}
        evidence.add(session, {hashes[each]: texts[each.key][0] for each in batch})
        evidence.renew(session, set_name, hashes)


def usable(
    ctx: Context, table: CorpusTable, items: Sequence[GoldenItem]
) -> tuple[set[str], dict[int, frozenset[str]]]:
    """Return which keys of a version's questions are there, and which are stale, by position."""
    with ctx.database.begin() as session:
        # The corpus is asked meanwhile, which may take its time.
        allow_idling(session, ctx.settings.queue.lease)
        hashes = evidence.of_questions(session, [item.question_id for item in items])
        judged = {
            item.position: [
                JudgedKey(key, hashes.get(item.question_id, {}).get(key)) for key in item.expected
            ]
            for item in items
        }
        distinct = dict.fromkeys(each for keys in judged.values() for each in keys)
        gone, changed = differing(ctx, table, list(distinct))
        old = stale(ctx, session, table, changed)
    live = {each.key for each in distinct} - gone
    outdated = {
        position: frozenset(each.key for each in keys if each in old)
        for position, keys in judged.items()
    }
    return live, outdated


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
