"""Review by file: questions out to a table, and all decisions of a table back in, or none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from db import edits, reviews
from db.edits import State
from db.reviews import Item
from db.session import Session
from pipeline.corpus.neighbours import contents_by_tenant
from pipeline.errors import InputError, RecallwatchError
from pipeline.golden.decisions import (
    Decided,
    Decision,
    Proposal,
    read_decisions,
    taken_over,
    write_proposals,
)
from pipeline.types import EditAction, Kind, Status
from workers.context import Context

AT_ONCE = 200


def export_proposals(
    ctx: Context, session: Session, ids: Sequence[int], stream: TextIO
) -> tuple[int, str | None]:
    """Write the questions; return how many, and why their chunks' texts are missing if they are."""
    missing: list[str] = []
    proposals = _proposals(ctx, reviews.items(session, ids), missing)
    return write_proposals(proposals, stream), next(iter(missing), None)


def _proposals(ctx: Context, items: Iterator[Item], missing: list[str]) -> Iterator[Proposal]:
    while some := list(islice(items, AT_ONCE)):
        keys = [(item.state.tenant, _keys(item)) for item in some]
        texts: Mapping[str | None, Mapping[str, str]] = {}
        if not missing:
            try:
                texts = contents_by_tenant(ctx.corpus(), ctx.corpus_table(), keys)
            except RecallwatchError as error:
                missing.append(str(error))
        for item in some:
            own = texts.get(item.state.tenant, {})
            yield Proposal(
                id=item.id,
                mark=reviews.mark(item.state),
                question=item.state.question,
                proposed={each.key: each.reason for each in item.proposed},
                chunks={key: own[key] for key in _keys(item) if key in own},
            )


def _keys(item: Item) -> list[str]:
    return [*item.state.judgments, *(each.key for each in item.proposed)]


@dataclass(frozen=True, slots=True)
class Imported:
    """What a table's decisions did: the edit that undoes them all, and how many of each."""

    edit_id: int | None
    counts: Mapping[str, int]


def import_decisions(
    ctx: Context, session: Session, set_name: str, path: Path, *, by: str | None
) -> Imported:
    """Take over all decisions of a table as one edit.

    Raises InputError, and changes nothing, when any row is wrong or out of date: it tells the first
    and how many there are.
    """
    table = _Table(path)
    rows = table.read()
    stored = edits.states(session, [row.id for row in rows])
    known = set(reviews.known(session, set_name, list(stored)))
    changes: dict[int, State] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        try:
            after = _after(row, stored[row.id] if row.id in known else None, set_name, by)
        except InputError as error:
            table.fault(row, str(error))
            continue
        counts[row.decision.value if row.decision else "open"] += 1
        if after is not None:
            changes[row.id] = after
    texts = _judged_texts(ctx, table, rows, stored, changes)
    table.raise_faults()
    reviews.keep(session, set_name, {one for each in texts.values() for one in each.values()})
    changes = {
        question_id: reviews.with_evidence(after, texts[question_id])
        for question_id, after in changes.items()
    }
    seen = {question_id: stored[question_id] for question_id in changes}
    edit_id = edits.apply(session, set_name, EditAction.IMPORT, changes, by=by, seen=seen)
    return Imported(edit_id, counts)


class _Table:
    """The rows of a file, and what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._faults: list[str] = []

    def read(self) -> list[Decided]:
        rows: list[Decided] = []
        places: dict[int, str] = {}
        for row in read_decisions(self._path):
            if isinstance(row, InputError):
                self._faults.append(str(row))
            elif places.setdefault(row.id, row.place) != row.place:
                self.fault(row, f"question {row.id} stands in {places[row.id]} already")
            else:
                rows.append(row)
        return rows

    def fault(self, row: Decided, reason: str) -> None:
        self._faults.append(f"{row.place}: {reason}")

    def raise_faults(self) -> None:
        if not self._faults:
            return
        more = len(self._faults) - 1
        wrong = "1 more row is wrong" if more == 1 else f"{more} more rows are wrong"
        also = f" ({wrong})" if more else ""
        raise InputError(f"{self._faults[0]}{also}; nothing was taken over")


def _after(row: Decided, stored: State | None, set_name: str, by: str | None) -> State | None:
    """Return the state that a row asks for; None: nothing. Raises InputError for what cannot be."""
    if stored is None:
        raise InputError(f"there is no question {row.id} in golden set {set_name}")
    if row.mark != reviews.mark(stored):
        raise InputError(f"question {row.id} has changed since the export: export it again")
    changes = taken_over(stored.question, row.question)
    if row.decision is None:
        if changes:
            raise InputError(
                f"the cells of question {row.id} were changed ({', '.join(changes)}), but decision"
                " is empty: accept, reject or change is needed"
            )
        return None
    if row.decision is Decision.REJECT:
        return reviews.reviewed(stored, Status.REJECTED, by=by, rejection=row.reason)
    if row.keyless and stored.kind == Kind.ANSWERABLE:
        raise InputError("expected is empty: name a chunk, or write {} where nothing answers it")
    if row.decision is Decision.CHANGE and not changes:
        raise InputError("decision is change, but no cell was changed: leave it empty")
    after = _changed(stored, changes, by)
    if row.decision is Decision.ACCEPT:
        return reviews.reviewed(after, Status.ACTIVE, by=by)
    return after


def _changed(stored: State, changes: Mapping[str, Any], by: str | None) -> State:
    fields = {name: value for name, value in changes.items() if name != "expected"}
    after = replace(stored, **fields)
    if "expected" not in changes:
        return after
    return reviews.with_keys(after, changes["expected"], by=by)


def _judged_texts(
    ctx: Context,
    table: _Table,
    rows: Sequence[Decided],
    stored: Mapping[int, State],
    changes: Mapping[int, State],
) -> dict[int, dict[str, str]]:
    """Return, by question, the texts of the keys that are new to it or have another grade.

    A new one that is not in the corpus is a fault of its row.
    """
    judged = {
        question_id: [
            key
            for key, one in after.judgments.items()
            if one != stored[question_id].judgments.get(key)
        ]
        for question_id, after in changes.items()
    }
    wanted = [(changes[question_id].tenant, keys) for question_id, keys in judged.items() if keys]
    texts = contents_by_tenant(ctx.corpus(), ctx.corpus_table(), wanted) if wanted else {}
    own = {question_id: texts.get(changes[question_id].tenant, {}) for question_id in judged}
    for row in rows:
        for key in judged.get(row.id, ()):
            if key not in own[row.id] and key not in stored[row.id].judgments:
                table.fault(row, f"no chunk {key} is in the corpus")
    return {
        question_id: {key: own[question_id][key] for key in keys if key in own[question_id]}
        for question_id, keys in judged.items()
    }
