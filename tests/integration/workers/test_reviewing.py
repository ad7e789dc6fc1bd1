"""A person's way through proposed questions: every decision is stored, and can be taken back."""

import hashlib
from collections.abc import Sequence

import pytest

from db import edits, golden, reviews
from db.edits import State
from db.reviews import Filter, Item
from db.session import Database
from pipeline.errors import InputError
from pipeline.types import Kind, Question, Source, Status
from tests.integration.db.building import SET, execute, fetch, import_set
from workers.reviewing import Review

CONTENTS = {"d0:0": "zero", "other:1": "one"}


@pytest.fixture
def url(emptied_url: str) -> str:
    return emptied_url


def proposed(db: Database, n: int = 3) -> list[int]:
    """Store n proposed questions and return their ids."""
    import_set(db, [
        Question(f"question {i}", {f"d{i}:0": 1}, source=Source.SYNTHETIC, category="how")
        for i in range(n)
    ])  # fmt: skip
    execute(db, "UPDATE recallwatch.question SET status = 'proposed'")
    return waiting(db)


def waiting(db: Database, wanted: Filter | None = None) -> list[int]:
    with db.begin() as session:
        return reviews.waiting(session, SET, wanted or Filter())


def review_of(db: Database, ids: Sequence[int], by: str | None = "ann") -> Review:
    return Review(db, SET, ids, by=by)


def present(review: Review) -> Item:
    item = review.current()
    assert item is not None
    return item


def state_of(db: Database, question_id: int) -> State:
    with db.begin() as session:
        return edits.states(session, [question_id])[question_id]


def statuses(db: Database) -> list[str]:
    return fetch(db, "SELECT status FROM recallwatch.question ORDER BY id")


def test_an_accepted_question_is_active_and_says_who_and_when(db: Database) -> None:
    first, second, _ = ids = proposed(db)
    review = review_of(db, ids)
    review.accept(present(review))
    state = state_of(db, first)
    assert (state.status, state.reviewed_by, state.rejection) == ("active", "ann", None)
    assert state.reviewed_at is not None
    assert present(review).id == second
    with db.begin() as session:
        assert [each.id for each in golden.questions(session, SET)] == [first]


def test_a_rejected_question_keeps_the_reason(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.reject(present(review), "  too vague ")
    state = state_of(db, first)
    assert (state.status, state.rejection, state.reviewed_by) == ("rejected", "too vague", "ann")


def test_a_question_is_not_rejected_without_a_reason(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    with pytest.raises(InputError, match="the reason is blank"):
        review.reject(present(review), " \u200b")
    assert present(review).id == first


def test_a_skipped_question_waits_for_another_time(db: Database) -> None:
    ids = proposed(db)
    review = review_of(db, ids)
    review.skip()
    assert present(review).id == ids[1]
    assert waiting(db) == ids


def test_each_decision_is_stored_at_once_so_another_review_goes_on(db: Database) -> None:
    first, second, third = proposed(db)
    interrupted = review_of(db, [first, second, third])
    interrupted.accept(present(interrupted))
    interrupted.reword(present(interrupted), "Reworded?")
    assert waiting(db) == [second, third]
    assert present(review_of(db, waiting(db))).state.text == "Reworded?"


def test_a_question_that_was_decided_by_somebody_else_is_passed_over(db: Database) -> None:
    first, second, third = proposed(db)
    ann, bob = review_of(db, [first, second, third]), review_of(db, [first, second, third], "bob")
    bob.accept(present(bob))
    bob.reject(present(bob), "no")
    assert present(ann).id == third


def test_two_people_at_one_question_do_not_overwrite_each_other(db: Database) -> None:
    first, *_ = ids = proposed(db)
    ann, bob = review_of(db, ids), review_of(db, ids, "bob")
    shown = present(ann)
    bob.reword(present(bob), "Bob's words?")
    with pytest.raises(InputError, match="has been changed meanwhile"):
        ann.accept(shown)
    assert (present(ann).id, present(ann).state.text) == (first, "Bob's words?")


def test_a_question_gets_another_text_and_waits_on(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.reword(present(review), "Other words?")
    assert (present(review).id, state_of(db, first).text) == (first, "Other words?")


@pytest.mark.parametrize(("text", "said"), [
    (" ", "the question is blank"), ("x" * 8_001, "longer than 8,000"),
])  # fmt: skip
def test_a_text_that_cannot_be_is_refused(db: Database, text: str, said: str) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    with pytest.raises(InputError, match=said):
        review.reword(present(review), text)
    assert state_of(db, first).text == "question 0"


def test_a_category_is_given_and_taken_away(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.categorise(present(review), " why ")
    assert state_of(db, first).category == "why"
    review.categorise(present(review), "")
    assert state_of(db, first).category is None


def test_a_key_is_added_with_the_text_that_it_was_judged_on(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.toggle(present(review), "other:1", CONTENTS)
    judged = state_of(db, first).judgments
    assert {key: (each.grade, each.judged_by) for key, each in judged.items()} == {
        "d0:0": (1, None), "other:1": (1, "ann"),
    }  # fmt: skip
    texts = fetch(db, "SELECT text FROM recallwatch.evidence JOIN recallwatch.judgment"
                      " ON evidence_hash = hash WHERE key = 'other:1'")  # fmt: skip
    assert texts == ["one"]
    review.toggle(present(review), "other:1", CONTENTS)
    assert state_of(db, first).judgments == {"d0:0": judged["d0:0"]}


@pytest.mark.parametrize("grade", [1, 2])
def test_a_grade_is_given_to_the_text_on_the_screen(db: Database, grade: int) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    execute(db, "INSERT INTO recallwatch.evidence VALUES ('h', 'an older text')")
    execute(db, "UPDATE recallwatch.judgment SET evidence_hash = 'h'")

    review.grade(present(review), "d0:0", grade, CONTENTS)

    judged = state_of(db, first).judgments["d0:0"]
    assert (judged.grade, judged.judged_by) == (grade, "ann")
    assert judged.evidence_hash == hashlib.sha256(b"zero").hexdigest()


def test_a_question_without_keys_is_unanswerable_until_it_has_one(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.toggle(present(review), "d0:0", CONTENTS)
    assert state_of(db, first).kind == Kind.UNANSWERABLE
    review.grade(present(review), "other:1", 2, CONTENTS)
    assert state_of(db, first).kind == Kind.ANSWERABLE
    review.grade(present(review), "other:1", 0, CONTENTS)
    assert state_of(db, first).kind == Kind.UNANSWERABLE


@pytest.mark.parametrize(("key", "said"), [
    ("gone:0", "no chunk gone:0 is in the corpus"), ("gone", "has no colon"),
])  # fmt: skip
def test_a_key_that_is_no_chunk_is_refused(db: Database, key: str, said: str) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    with pytest.raises(InputError, match=said):
        review.toggle(present(review), key, CONTENTS)
    with pytest.raises(InputError, match=said):
        review.grade(present(review), key, 2, CONTENTS)
    assert list(state_of(db, first).judgments) == ["d0:0"]


def test_a_dead_key_can_be_taken_away_or_graded(db: Database) -> None:
    first, *_ = ids = proposed(db)
    review = review_of(db, ids)
    review.grade(present(review), "d0:0", 3, {})
    assert state_of(db, first).judgments["d0:0"].grade == 3
    review.toggle(present(review), "d0:0", {})
    assert state_of(db, first).judgments == {}


def test_undo_shows_the_question_as_it_was_and_goes_back_step_by_step(db: Database) -> None:
    first, second, third = ids = proposed(db)
    before = state_of(db, first)
    review = review_of(db, ids)
    review.categorise(present(review), "why")
    review.accept(present(review))
    review.skip()
    assert present(review).id == third

    assert review.undo() == f"undone: accept of question {first}"
    assert (present(review).id, present(review).state.category) == (first, "why")
    review.undo()
    assert present(review).state == before
    with pytest.raises(InputError, match="nothing to undo"):
        review.undo()
    review.accept(present(review))
    assert present(review).id == second


def test_what_was_decided_before_an_interruption_is_undone_after_it(db: Database) -> None:
    first, second, third = ids = proposed(db)
    interrupted = review_of(db, ids)
    interrupted.reject(present(interrupted), "no")

    review = review_of(db, waiting(db))
    assert review.place == (1, 2)
    review.undo()

    assert present(review).id == first
    assert waiting(db) == [first, second, third]


def test_what_an_undo_takes_back_is_told_where_another_review_decided_it(db: Database) -> None:
    first, second, _ = ids = proposed(db)
    interrupted = review_of(db, ids)
    interrupted.accept(present(interrupted))
    assert interrupted.earlier() is None

    review = review_of(db, waiting(db))
    assert review.earlier() == f"accept of question {first}"
    review.accept(present(review))
    assert review.earlier() is None
    review.undo()
    assert (present(review).id, review.earlier()) == (second, f"accept of question {first}")
    review.undo()
    assert review.earlier() is None


def test_nobody_undoes_what_somebody_else_decided(db: Database) -> None:
    ids = proposed(db)
    ann, bob = review_of(db, ids), review_of(db, ids, "bob")
    ann.accept(present(ann))
    with pytest.raises(InputError, match="nothing to undo"):
        bob.undo()
    assert statuses(db)[0] == "active"


def test_accounts_without_a_name_undo_their_own(db: Database) -> None:
    ids = proposed(db)
    review = review_of(db, ids, None)
    review.accept(present(review))
    review.undo()
    assert waiting(db) == ids


def test_active_questions_are_reviewed_again_and_stay_active(db: Database) -> None:
    first, *_ = proposed(db)
    execute(db, "UPDATE recallwatch.question SET status = 'active'")
    ids = waiting(db, Filter(Status.ACTIVE))
    review = review_of(db, ids)
    review.accept(present(review))
    assert (state_of(db, first).status, state_of(db, first).reviewed_by) == ("active", "ann")
    assert present(review).id == ids[1]


def test_a_question_that_is_deleted_meanwhile_is_passed_over(db: Database) -> None:
    ids = proposed(db)
    review = review_of(db, ids)
    execute(db, "DELETE FROM recallwatch.question WHERE id = :id", {"id": ids[0]})
    assert present(review).id == ids[1]


def test_the_questions_to_review_are_chosen(db: Database) -> None:
    first, second, third = proposed(db)
    execute(db, "UPDATE recallwatch.question SET category = 'why', tenant = 'acme', source = 'log',"
                """ provenance = '{"generation": 7}' WHERE id = :id""", {"id": second})  # fmt: skip
    for wanted in (
        Filter(category="why"), Filter(tenant="acme"), Filter(source="log"), Filter(generation=7),
    ):  # fmt: skip
        assert waiting(db, wanted) == [second]
    assert waiting(db, Filter(category="how")) == [first, third]
    assert waiting(db, Filter(category="why", tenant="globex")) == []


def test_proposed_keys_are_shown_until_they_are_expected(db: Database) -> None:
    first, *_ = ids = proposed(db)
    execute(
        db,
        "INSERT INTO recallwatch.proposed_key VALUES (:id, 'other:1', 'near-duplicate', 0.97),"
        " (:id, 'x:0', 'ranks above the source', NULL), (:id, 'y:0', 'z', 0.98)",
        {"id": first},
    )
    review = review_of(db, ids)
    assert [each.key for each in present(review).proposed] == ["y:0", "other:1", "x:0"]
    review.toggle(present(review), "other:1", CONTENTS)
    assert [each.key for each in present(review).proposed] == ["y:0", "x:0"]


def test_what_was_done_is_counted(db: Database) -> None:
    ids = proposed(db)
    review = review_of(db, ids)
    review.accept(present(review))
    review.undo()
    review.reject(present(review), "no")
    review.skip()
    assert dict(review.done) == {"accepted": 1, "undone": 1, "rejected": 1, "skipped": 1}
