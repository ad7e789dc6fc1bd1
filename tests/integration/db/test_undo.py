"""Undoing edits of a golden set: all of one, the last first, and nothing that came later."""

from dataclasses import replace

import pytest

from db import edits
from db.edits import Judged
from db.session import Database
from pipeline.errors import InputError
from pipeline.types import Status
from tests.integration.db.building import (
    import_set,
    questions,
    snapshot,
    together,
)
from tests.integration.db.editing import (
    AT,
    apply,
    change,
    note_evidence,
    recent,
    state_of,
    states_of,
    stored,
    undo,
)


def test_undo_puts_everything_back(db: Database) -> None:
    first, _ = stored(db)
    before = state_of(db, first)
    reviewed = edits.with_status(before, Status.REJECTED, by="ann", at=AT, rejection="vague")
    edit_id = apply(db, {first: replace(reviewed, text="Other?", judgments={"z:0": Judged(3)})})
    assert state_of(db, first) != before
    assert edit_id is not None

    assert undo(db, edit_id) == 1

    assert state_of(db, first) == before
    assert recent(db)[0].undone_by == "bob"
    assert recent(db)[0].undone_at is not None


def test_a_question_that_was_put_back_belongs_to_the_same_version(db: Database) -> None:
    first, _ = stored(db)
    version = snapshot(db)
    edit_id = change(db, first, text="Other?")
    assert snapshot(db).id != version.id
    undo(db, edit_id)
    assert snapshot(db).id == version.id


def test_an_edit_is_undone_once(db: Database) -> None:
    first, _ = stored(db)
    edit_id = change(db, first, category="how")
    undo(db, edit_id)
    with pytest.raises(InputError, match=f"edit {edit_id} was undone already"):
        undo(db, edit_id)


def test_two_people_who_undo_the_same_edit_undo_it_once(db: Database) -> None:
    first, _ = stored(db)
    edit_id = change(db, first, category="how")

    def outcome() -> str:
        try:
            return str(undo(db, edit_id))
        except InputError as error:
            return str(error)

    assert sorted(together(outcome, outcome)) == ["1", f"edit {edit_id} was undone already"]


def test_two_edits_are_undone_from_the_last_to_the_first(db: Database) -> None:
    first, _ = stored(db)
    before = state_of(db, first)
    one, two = change(db, first, text="Second?"), change(db, first, text="Third?")

    with pytest.raises(InputError, match=f"has changed since edit {one}.*golden undo {two}"):
        undo(db, one)
    assert state_of(db, first).text == "Third?"

    undo(db, two)
    undo(db, one)
    assert state_of(db, first) == before


def test_edits_of_other_questions_do_not_hinder_an_undo(db: Database) -> None:
    first, second = stored(db)
    one = change(db, first, category="how")
    change(db, second, category="why")
    undo(db, one)
    assert [state_of(db, each).category for each in (first, second)] == [None, "why"]


def test_an_undo_that_would_lose_an_import_is_refused_whole(db: Database) -> None:
    first, second = stored(db)
    states = states_of(db, first, second)
    changes = {each: replace(state, category="how") for each, state in states.items()}
    edit_id = apply(db, changes)
    assert edit_id is not None
    import_set(db, [replace(questions(2)[1], category="from a file")])

    with pytest.raises(InputError, match=f"question {second} has changed .* by an import"):
        undo(db, edit_id)
    assert state_of(db, first).category == "how"


def test_evidence_that_was_noted_since_does_not_hinder_an_undo_and_stays(db: Database) -> None:
    first, _ = stored(db)
    edit_id = change(db, first, category="how")
    note_evidence(db, first)
    undo(db, edit_id)
    assert state_of(db, first).judgments["d0:0"].evidence_hash == "as judged"


def test_evidence_goes_with_the_judgment_and_comes_back_with_it(db: Database) -> None:
    first, _ = stored(db)
    note_evidence(db, first)
    judged = state_of(db, first).judgments["d0:0"]
    edit_id = change(db, first, judgments={"moved:7": judged})
    assert state_of(db, first).judgments == {"moved:7": judged}
    undo(db, edit_id)
    assert state_of(db, first).judgments == {"d0:0": judged}


def test_an_undo_that_would_make_a_twin_is_refused(db: Database) -> None:
    first, _ = stored(db)
    edit_id = change(db, first, text="Other?")
    import_set(db, questions(1))
    with pytest.raises(InputError, match=f"question {first} would be the same as question"):
        undo(db, edit_id)


def test_an_edit_is_undone_under_another_time_zone(db: Database) -> None:
    first, _ = stored(db)
    before = state_of(db, first)
    edit_id = apply(db, {first: edits.with_status(before, Status.RETIRED, by="ann", at=AT)})
    assert edit_id is not None
    with db.begin() as session:
        session.connection().exec_driver_sql("SET LOCAL TimeZone TO 'Asia/Kathmandu'")
        edits.undo(session, edit_id, by=None)
    assert state_of(db, first) == before
