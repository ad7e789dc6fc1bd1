"""Find what every judgment of a set stands for in the corpus now, and move keys to their texts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from db import edits, evidence
from db.edits import Judged, State
from db.evidence import StoredJudgment
from db.locks import lock_set
from db.session import Session, allow_idling
from pipeline.corpus.evidence import chunk_texts, text_hash
from pipeline.corpus.table import CorpusTable
from pipeline.errors import InputError
from pipeline.golden.fingerprint import content_hash
from pipeline.golden.rechunking import Found
from pipeline.types import EditAction, KeyState
from workers.context import Context
from workers.evidence import KEYS_PER_CAPTURE
from workers.locating import locate

REVIEWED = (KeyState.SPLIT, KeyState.CHANGED)
"""What is only written when a person asks for it: the new chunks are not all that was judged."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A judgment, and what became of the text that it was made on."""

    judgment: StoredJudgment
    found: Found

    @property
    def key(self) -> str:
        """The key that is expected."""
        return self.judgment.judged.key

    @property
    def is_live(self) -> bool:
        """Whether the key stands for what was judged, as far as anybody knows."""
        return self.found.state is KeyState.LIVE

    def moves(self, include: Collection[KeyState]) -> bool:
        """Say whether a remap that includes these states writes new keys for the judgment.

        Never where nobody knows which of several documents is meant.
        """
        asked = self.found.state in include and bool(self.found.places)
        return self.found.safe or (asked and not self.found.ambiguous)


@dataclass(frozen=True, slots=True)
class Remapped:
    """An edit (None: there was nothing to write), its questions, and those left as they were.

    `twins` would have become the same as another question of the set. Of `blocked` ones a text
    stands under a key that the question expects for another text, which is not moved.
    """

    edit_id: int | None
    questions: Sequence[int]
    twins: Sequence[int]
    blocked: Sequence[int]


def check(ctx: Context, set_name: str) -> list[Checked]:
    """Look for what every judgment of a set's active and proposed questions was made on.

    Raises InputError when there is none, and what reading the corpus raises.
    """
    table = ctx.corpus_table()
    with ctx.database.begin() as session:
        # The corpus is read meanwhile, which may take its time.
        allow_idling(session, ctx.settings.queue.deadline)
        judgments = list(evidence.judgments(session, set_name))
        if not judgments:
            raise InputError(
                f"golden set {set_name!r} has no active or proposed question with expected keys;"
                " see: recallwatch golden list --sets"
            )
        found = locate(ctx, session, table, judgments)
    return [Checked(judgment, one) for judgment, one in zip(judgments, found, strict=True)]


def remap(
    ctx: Context,
    set_name: str,
    checked: Sequence[Checked],
    *,
    include: Collection[KeyState] = (),
    by: str | None,
) -> Remapped:
    """Write the new keys as one edit, each with the text that it stands for as its evidence.

    Safe ones, and those of the states in `include`. A judgment that was changed since it was
    checked stays as it is. Raises what reading the corpus raises.
    """
    moving: dict[int, list[Checked]] = {}
    for each in checked:
        if each.moves(include):
            moving.setdefault(each.judgment.question_id, []).append(each)
    table = ctx.corpus_table()
    with ctx.database.begin() as session:
        allow_idling(session, ctx.settings.queue.deadline)
        lock_set(session, set_name)
        targets = {
            place.key for moved in moving.values() for e in moved for place in e.found.places
        }
        hashes = _keep_texts(ctx, session, table, sorted(targets))
        before = edits.states(session, list(moving))
        judgments = {each: _moved(state, moving[each], hashes) for each, state in before.items()}
        changes = {
            each: replace(before[each], judgments=found)
            for each, found in judgments.items()
            if found is not None and found != before[each].judgments
        }
        twins = _twins(session, set_name, before, changes)
        written = {each: state for each, state in changes.items() if each not in twins}
        seen = {each: before[each] for each in written}
        edit_id = edits.apply(session, set_name, EditAction.REMAP, written, by=by, seen=seen)
    blocked = [each for each, found in judgments.items() if found is None]
    return Remapped(edit_id, sorted(written), sorted(twins), sorted(blocked))


def _keep_texts(
    ctx: Context, session: Session, table: CorpusTable, keys: Sequence[str]
) -> dict[str, str]:
    """Keep the present texts of keys as evidence; return the hashes of those that are there."""
    hashes: dict[str, str] = {}
    for start in range(0, len(keys), KEYS_PER_CAPTURE):
        found = chunk_texts(ctx.corpus(), table, keys[start : start + KEYS_PER_CAPTURE])
        # Of several rows of a key always the same one, in whatever order they come.
        texts = {key: min(several) for key, several in found.items()}
        hashes |= {key: text_hash(one) for key, one in texts.items()}
        evidence.add(session, {hashes[key]: one for key, one in texts.items()})
    return hashes


def _moved(
    state: State, moved: Sequence[Checked], hashes: Mapping[str, str]
) -> Mapping[str, Judged] | None:
    """Return a question's judgments with new keys; where two meet, the higher grade stays.

    None: a key would become that of a judgment that stays and was made on another text.
    """
    by_key = {each.key: each for each in moved}
    found: dict[str, Judged] = {}
    for key, judged in state.judgments.items():
        for new_key, new in _successors(key, judged, by_key.get(key), hashes):
            met = found.get(new_key, new)
            if met.evidence_hash != new.evidence_hash:
                return None
            found[new_key] = max(met, new, key=lambda each: each.grade)
    return found


def _successors(
    key: str, judged: Judged, moved: Checked | None, hashes: Mapping[str, str]
) -> Iterator[tuple[str, Judged]]:
    places = [] if moved is None else [place.key for place in moved.found.places]
    changed = moved is not None and moved.judgment.judged.evidence_hash != judged.evidence_hash
    if changed or not places or not all(place in hashes for place in places):
        yield key, judged
        return
    for place in places:
        yield place, replace(judged, evidence_hash=hashes[place])


def _twins(
    session: Session, set_name: str, before: Mapping[int, State], changes: Mapping[int, State]
) -> set[int]:
    """Return the questions that would be the same as another one; a set holds each once.

    What stays as it is may be met by others, so that it is looked at again.
    """
    own = {each: content_hash(state.question) for each, state in changes.items()
           if state.external_id is None}  # fmt: skip
    was = {each: content_hash(before[each].question) for each in own}
    others = evidence.with_content(session, set_name, own.values())
    taken = {one for one, ids in others.items() if any(each not in own for each in ids)}
    twins: set[int] = set()
    while True:
        held, more = set(taken), set[int]()
        for each, content in own.items():
            if each not in twins:
                if content in held:
                    more.add(each)
                held.add(content)
        if not more:
            return twins
        twins |= more
        taken |= {was[each] for each in more}
