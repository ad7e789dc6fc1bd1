"""One person's way through the questions that wait for review: what each key of the keyboard does.

Every decision is an edit of its own, committed at once: whatever ends a review, what was decided
is decided, and the next review goes on with what still waits.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from db import edits, reviews
from db.reviews import Item, LastEdit
from db.session import Database
from pipeline.errors import InputError
from pipeline.golden.judgments import checked_key
from pipeline.text import MAX_QUESTION_CHARACTERS, indexable, visible
from pipeline.types import EditAction, Status


class Review:
    """The questions `ids` of a set, in this order, as `by` goes through them.

    Of the methods that decide, those that end with a question move on to the next. All raise
    InputError, and change nothing, for what cannot be; then too when somebody else changed the
    question meanwhile: `current` shows it as it is.
    """

    def __init__(
        self, database: Database, set_name: str, ids: Sequence[int], *, by: str | None
    ) -> None:
        self.done: Counter[str] = Counter()
        self._database = database
        self._set_name = set_name
        self._ids = list(ids)
        self._by = by
        self._place = 0
        self._edits: set[int] = set()
        self._statuses = self._read_statuses()

    @property
    def place(self) -> tuple[int, int]:
        """Which question it is, from 1, and how many there are."""
        return self._place + 1, len(self._ids)

    def current(self) -> Item | None:
        """Return the question to review, as it is now; None: there is no more.

        Those that somebody else decided since the review began are passed over.
        """
        while self._place < len(self._ids):
            item = self._read(self._ids[self._place])
            if item is not None and self._statuses.get(item.id) == item.state.status:
                return item
            self._place += 1
        return None

    def accept(self, item: Item) -> None:
        """Make it active, reviewed now; one whose keys are all gone is unanswerable."""
        self._decide(item, EditAction.ACCEPT, reviews.reviewed(item.state, Status.ACTIVE,
                                                               by=self._by))  # fmt: skip
        self._next("accepted")

    def reject(self, item: Item, reason: str) -> None:
        """Reject it, for a reason that is kept."""
        after = reviews.reviewed(item.state, Status.REJECTED, by=self._by,
                                 rejection=visible("the reason", reason.strip()))  # fmt: skip
        self._decide(item, EditAction.REJECT, after)
        self._next("rejected")

    def skip(self) -> None:
        """Leave it as it is, for another time."""
        self._next("skipped")

    def reword(self, item: Item, text: str) -> None:
        """Give it another text."""
        if len(visible("the question", text)) > MAX_QUESTION_CHARACTERS:
            raise InputError(f"the question is longer than {MAX_QUESTION_CHARACTERS:,} characters")
        self._decide(item, EditAction.CHANGE, replace(item.state, text=text))

    def categorise(self, item: Item, category: str) -> None:
        """Give it a category; a blank one takes it away."""
        named = indexable("the category", category.strip()) if category.strip() else None
        self._decide(item, EditAction.CHANGE, replace(item.state, category=named))

    def toggle(self, item: Item, key: str, contents: Mapping[str, str]) -> None:
        """Expect a key that was not expected, with grade 1; or the other way round."""
        expected = _grades(item)
        if key in expected:
            del expected[key]
            self._expect(item, expected, {})
        else:
            self.grade(item, key, 1, contents)

    def grade(self, item: Item, key: str, grade: int, contents: Mapping[str, str]) -> None:
        """Give a key a grade: 1 and more is relevant, 0 and less judged not to be.

        It is given to what the key's chunk says in `contents`; only a known key may be gone.
        """
        if checked_key(key) not in contents and key not in item.state.judgments:
            raise InputError(f"no chunk {key} is in the corpus")
        judged = {key: contents[key]} if key in contents else {}
        self._expect(item, _grades(item) | {key: grade}, judged)

    def earlier(self) -> str | None:
        """Return what an undo would take back, if it was not decided in this review."""
        with self._database.begin() as session:
            last = reviews.last_edit(session, self._set_name, self._by)
        return None if last is None or last.id in self._edits else _said(last)

    def undo(self) -> str:
        """Take back what this person did last in reviews of the set, and show that question.

        Returns what was undone. Works after an interruption too.
        """
        with self._database.begin() as session:
            last = reviews.last_edit(session, self._set_name, self._by)
            if last is None:
                raise InputError("there is nothing to undo")
            edits.undo(session, last.id, by=self._by)
            [state] = edits.states(session, [last.question_id]).values()
        self._statuses[last.question_id] = state.status
        if last.question_id not in self._ids:
            self._ids.insert(self._place, last.question_id)
        self._place = self._ids.index(last.question_id)
        self.done["undone"] += 1
        return f"undone: {_said(last)}"

    def _expect(self, item: Item, expected: dict[str, int], judged: Mapping[str, str]) -> None:
        """Expect these keys; `judged` are the texts of those that were judged just now."""
        after = reviews.with_keys(item.state, expected, by=self._by, again=judged)
        self._decide(item, EditAction.CHANGE, reviews.with_evidence(after, judged), judged)

    def _decide(
        self,
        item: Item,
        action: EditAction,
        after: edits.State,
        judged: Mapping[str, str] | None = None,
    ) -> None:
        with self._database.begin() as session:
            if judged:
                reviews.keep(session, self._set_name, judged.values())
            edit_id = reviews.decide(session, self._set_name, action, item, after, by=self._by)
        if edit_id is not None:
            self._edits.add(edit_id)

    def _next(self, what: str) -> None:
        self.done[what] += 1
        self._place += 1

    def _read(self, question_id: int) -> Item | None:
        with self._database.begin() as session:
            return next(reviews.items(session, [question_id]), None)

    def _read_statuses(self) -> dict[int, str]:
        with self._database.begin() as session:
            return reviews.statuses(session, self._ids)


def _said(edit: LastEdit) -> str:
    return f"{edit.action} of question {edit.question_id}"


def _grades(item: Item) -> dict[str, int]:
    return {key: judged.grade for key, judged in item.state.judgments.items()}
