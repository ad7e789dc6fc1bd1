"""Edits of a golden set: what they write and what they refuse."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db import edits
from db.edits import Judged, State
from db.session import Database
from pipeline.errors import InputError
from pipeline.golden.fingerprint import content_hash, item_hash
from pipeline.types import EditAction, Question, Status
from tests.acceptance.command import wait_until
from tests.integration.db.building import (
    SET,
    execute,
    fetch,
    import_set,
    on_a_database,
    questions,
    together,
)
from tests.integration.db.editing import (
    AT,
    INSERT_LIKE,
    WAITING,
    apply,
    change,
    note_evidence,
    recent,
    state_of,
    states_of,
    stored,
    undo,
)
from tests.unit.pipeline.golden.strategies import questions as any_question


def test_an_edit_writes_the_whole_state_and_the_hashes_of_the_new_content(db: Database) -> None:
    first, _ = stored(db)
    after = State(
        text="What now?", kind="answerable", status="active", category="how", tenant="acme",
        language="en", source="log", must_pass=True, external_id="x1", notes="seen",
        reviewed_by="ann", reviewed_at=AT.isoformat(),
        judgments={"d0:0": Judged(2, judged_by="ann"), "new:1": Judged(1, judged_by="ann")},
    )  # fmt: skip

    apply(db, {first: after})

    now = state_of(db, first)
    judged = {key: replace(each, judged_at=None) for key, each in now.judgments.items()}
    assert replace(now, judgments=judged) == after
    hashes = fetch(db, "SELECT content_hash, item_hash FROM recallwatch.question WHERE id = :id",
                   {"id": first})  # fmt: skip
    asked = Question(
        text="What now?", expected={"d0:0": 2, "new:1": 1}, category="how", tenant="acme",
        language="en", source=after.question.source, must_pass=True, external_id="x1",
        notes="seen",
    )  # fmt: skip
    assert hashes == [(content_hash(asked), item_hash(asked))]


def test_a_new_judgment_is_dated_now_and_an_old_one_keeps_its_date(db: Database) -> None:
    first, _ = stored(db)
    old = state_of(db, first).judgments["d0:0"]
    change(db, first, judgments={"d0:0": old, "new:1": Judged(1)})
    now = state_of(db, first).judgments
    assert now["d0:0"] == old
    assert now["new:1"].judged_at is not None
    assert now["new:1"].judged_at > str(old.judged_at)


def test_an_edit_that_changes_nothing_is_none(db: Database) -> None:
    first, _ = stored(db)
    assert apply(db, states_of(db, first)) is None
    assert recent(db) == []


def test_only_what_changed_belongs_to_the_edit(db: Database) -> None:
    first, second = stored(db)
    states = states_of(db, first, second)
    states[second] = replace(states[second], category="how")
    edit_id = apply(db, states)
    assert fetch(db, "SELECT edit_id, question_id FROM recallwatch.edit_item") == [
        (edit_id, second)
    ]


def test_an_edit_that_is_not_there_is_refused(db: Database) -> None:
    with pytest.raises(InputError, match="there is no edit 0"):
        undo(db, 0)


def test_an_edit_begun_before_evidence_was_noted_does_not_take_it_away(db: Database) -> None:
    first, _ = stored(db)
    seen = states_of(db, first)
    note_evidence(db, first)
    apply(db, {first: replace(seen[first], category="how")}, seen=seen)
    assert state_of(db, first).judgments["d0:0"].evidence_hash == "as judged"


def test_a_question_that_is_not_as_it_was_seen_is_refused(db: Database) -> None:
    first, _ = stored(db)
    seen = states_of(db, first)
    change(db, first, category="how")
    with pytest.raises(InputError, match=f"question {first} has been changed meanwhile"):
        apply(db, {first: replace(seen[first], category="why")}, seen=seen)
    assert state_of(db, first).category == "how"


def test_two_people_who_decide_at_once_decide_once(db: Database) -> None:
    first, _ = stored(db)
    seen = states_of(db, first)

    def decide(category: str) -> Callable[[], bool]:
        def decided() -> bool:
            try:
                apply(db, {first: replace(seen[first], category=category)}, seen=seen)
            except InputError:
                return False
            return True

        return decided

    assert sorted(together(decide("how"), decide("why"))) == [False, True]


def test_the_twin_of_another_question_is_refused(db: Database) -> None:
    first, second = stored(db)
    twin = replace(state_of(db, first), category="another label does not make it another question")
    with pytest.raises(
        InputError, match=f"question {second} would be the same as question {first}"
    ):
        apply(db, {second: twin})
    assert state_of(db, second).text == "question 1"
    assert recent(db) == []


def test_questions_that_become_twins_in_one_edit_are_refused(db: Database) -> None:
    first, second = stored(db)
    same = replace(state_of(db, first), text="The same?")
    with pytest.raises(InputError, match="would be the same"):
        apply(db, {first: same, second: same})


def test_an_external_id_is_one_questions_only(db: Database) -> None:
    import_set(db, [replace(each, external_id=each.text) for each in questions(2)])
    first, second = fetch(db, "SELECT id FROM recallwatch.question ORDER BY id")
    with pytest.raises(InputError, match="would be the same"):
        change(db, second, external_id="question 0")
    assert state_of(db, first).external_id == "question 0"


def test_a_twin_that_somebody_is_adding_meanwhile_is_refused(db: Database) -> None:
    first, _ = stored(db)
    changed = replace(state_of(db, first), text="Added meanwhile?")

    def refusal() -> str:
        with pytest.raises(InputError) as raised:
            apply(db, {first: changed})
        return str(raised.value)

    with ThreadPoolExecutor(1) as pool, db.begin() as session:
        session.execute(INSERT_LIKE, {"id": first, "text": changed.text,
                                      "hash": content_hash(changed.question)})  # fmt: skip
        said = pool.submit(refusal)
        wait_until(lambda: fetch(db, WAITING))
        session.commit()
        assert "the same as one that was added just now" in said.result(timeout=10)


@pytest.mark.parametrize("external_ids", [(None, None), ("a", "b")])
@pytest.mark.parametrize("at_once", [1, 1_000])
def test_two_questions_exchange_what_is_unique_in_one_edit_and_in_its_undo(
    db: Database,
    monkeypatch: pytest.MonkeyPatch,
    external_ids: tuple[str | None, str | None],
    at_once: int,
) -> None:
    monkeypatch.setattr(edits, "WRITTEN_AT_ONCE", at_once)
    made = zip(questions(2), external_ids, strict=True)
    import_set(db, [replace(question, external_id=each) for question, each in made])
    first, second = fetch(db, "SELECT id FROM recallwatch.question ORDER BY id")
    before = states_of(db, first, second)

    edit_id = apply(db, {first: before[second], second: before[first]})

    assert states_of(db, first, second) == {first: before[second], second: before[first]}
    assert edit_id is not None
    undo(db, edit_id)
    assert states_of(db, first, second) == before


def test_a_question_of_another_set_is_refused(db: Database) -> None:
    import_set(db, questions(1), set_name="other")
    [stranger] = fetch(db, "SELECT id FROM recallwatch.question")
    with pytest.raises(InputError, match=f"golden set {SET} has no question {stranger}"):
        change(db, stranger, category="how")
    with pytest.raises(InputError, match=f"golden set {SET} has no question 0"):
        apply(db, {0: state_of(db, stranger)})


def test_edits_are_listed_the_newest_first_with_who_and_what(db: Database) -> None:
    first, second = stored(db)
    one = change(db, first, category="how")
    states = states_of(db, first, second)
    two = apply(db, {each: edits.with_status(state, Status.RETIRED, by="ann", at=AT)
                     for each, state in states.items()}, action=EditAction.REJECT)  # fmt: skip
    listed = [(each.id, each.action, each.questions, each.edited_by) for each in recent(db)]
    assert listed == [(two, EditAction.REJECT, 2, "ann"), (one, EditAction.CHANGE, 1, "ann")]


def test_a_question_that_was_rejected_and_is_accepted_loses_the_reason(db: Database) -> None:
    first, _ = stored(db)
    rejected = edits.with_status(
        state_of(db, first), Status.REJECTED, by="ann", at=AT, rejection="vague"
    )
    apply(db, {first: rejected})
    apply(db, {first: edits.with_status(state_of(db, first), Status.ACTIVE, by="bob", at=AT)})
    now = state_of(db, first)
    assert (now.status, now.rejection, now.reviewed_by) == ("active", None, "bob")


def of_question(question: Question, before: State) -> State:
    """Return the state that makes a stored question this one."""
    judgments = {key: Judged(grade) for key, grade in question.expected.items()}
    return replace(
        before, text=question.text, kind=question.kind.value, category=question.category,
        tenant=question.tenant, language=question.language, source=question.source.value,
        must_pass=question.must_pass, external_id=question.external_id, notes=question.notes,
        judgments=judgments,
    )  # fmt: skip


@on_a_database
@given(changed=st.lists(any_question(), min_size=2, max_size=2))
def test_any_edit_is_written_as_asked_and_undone_without_a_trace(
    db: Database, changed: list[Question]
) -> None:
    execute(db, "DELETE FROM recallwatch.question")
    first, second = stored(db)
    before = states_of(db, first, second)
    asked = dict(zip((first, second), changed, strict=True))
    changes = {each: of_question(question, before[each]) for each, question in asked.items()}
    try:
        edit_id = apply(db, changes)
    except InputError:
        ids = {question.external_id for question in changed}
        assert len(ids) == 1
        assert None not in ids or content_hash(changed[0]) == content_hash(changed[1])
        return
    assert {each: state.question for each, state in states_of(db, first, second).items()} == asked
    assert edit_id is not None
    undo(db, edit_id)
    assert states_of(db, first, second) == before
