"""Where the texts of judgments are in the whole corpus."""

from collections.abc import Collection, Iterator, Sequence

from db import edits, evidence
from db.evidence import JudgedKey, StoredJudgment
from db.session import Session
from pipeline.corpus.evidence import each_row
from pipeline.corpus.table import CorpusTable
from pipeline.golden.rechunking import Evidence, Found, Search
from pipeline.types import KeyState
from workers.context import Context
from workers.evidence import differing

TEXTS_PER_PASS = 20_000
"""Judged texts that one pass over the corpus looks for: 3 KB each, or so."""

QUESTIONS_PER_READ = 1_000

Sought = tuple[JudgedKey, str | None]
"""What was judged, and the tenant of the question; None: it has none."""


def locate(
    ctx: Context, session: Session, table: CorpusTable, judgments: Sequence[StoredJudgment]
) -> list[Found]:
    """Return what became of the text of each judgment, in the order given.

    The corpus is read once for so many texts that are not under their keys, and not at all where
    there is none. Another tenant's chunks hold nothing of a question with a tenant. A key without
    evidence is live or lost by whether it is there. Raises what reading the corpus raises.
    """
    distinct = list(dict.fromkeys(each.judged for each in judgments))
    gone, changed = differing(ctx, table, distinct)
    missing = {*changed, *(each for each in distinct if each.key in gone and each.evidence_hash)}
    asked = {each.question_id for each in judgments if each.judged in missing}
    tenants = _tenants(session, asked) if table.has("tenant") else {}
    sought = [(each.judged, tenants.get(each.question_id)) for each in judgments]
    some = list(dict.fromkeys(each for each in sought if each[0] in missing))
    found: dict[Sought, Found] = {}
    for start in range(0, len(some), TEXTS_PER_PASS):
        found |= dict(_pass(ctx, session, table, some[start : start + TEXTS_PER_PASS]))
    return [found[each] if each in found else _by_name(each[0], gone) for each in sought]


def _by_name(judged: JudgedKey, gone: Collection[str]) -> Found:
    return Found(KeyState.LOST) if judged.key in gone else Found(KeyState.LIVE, (), 1.0)


def _tenants(session: Session, question_ids: Collection[int]) -> dict[int, str | None]:
    ids, found = sorted(question_ids), dict[int, str | None]()
    for start in range(0, len(ids), QUESTIONS_PER_READ):
        states = edits.states(session, ids[start : start + QUESTIONS_PER_READ])
        found |= {each: state.tenant for each, state in states.items()}
    return found


def _pass(
    ctx: Context, session: Session, table: CorpusTable, sought: Sequence[Sought]
) -> Iterator[tuple[Sought, Found]]:
    """Yield what one pass over the corpus finds of the texts."""
    texts = evidence.texts(session, {judged.evidence_hash or "" for judged, _ in sought})
    search = Search([
        Evidence(judged.key, texts[judged.evidence_hash or ""], tenant)
        for judged, tenant in sought
    ])  # fmt: skip
    for key, content, tenant in each_row(ctx.corpus(), table):
        search.see(key, content, tenant)
    yield from zip(sought, search.found(), strict=True)
