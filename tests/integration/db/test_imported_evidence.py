"""What an import does to evidence, to reviews, and to questions that look like its own."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from db import edits, golden
from db.golden_import import ImportReport, import_questions
from db.session import Database
from pipeline.types import EditAction, Question, Status
from tests.integration.db.building import SET, execute, fetch, import_set, together

A = Question("How do I reset it?", {"manual:3": 2, "faq:1": 1}, evidence={"manual:3": "Press."})
NAMED = Question("What does it weigh?", {"specs:0": 1}, external_id="b")


def evidence_of(db: Database) -> dict[str, str | None]:
    """Return the text that each key was judged on."""
    rows = fetch(
        db,
        "SELECT key, e.text FROM recallwatch.judgment j"
        " LEFT JOIN recallwatch.evidence e ON e.hash = j.evidence_hash",
    )
    return dict(rows)


def judgments(db: Database) -> dict[str, tuple[Any, ...]]:
    rows = fetch(db, "SELECT key, judged_by, judged_at FROM recallwatch.judgment")
    return {key: tuple(rest) for key, *rest in rows}


def reject(db: Database, *texts: str) -> None:
    execute(
        db,
        "UPDATE recallwatch.question SET status = 'rejected', rejection = 'vague',"
        " reviewed_by = 'ann' WHERE text = ANY(:texts)",
        {"texts": list(texts)},
    )


def statuses(db: Database) -> dict[str, str]:
    return dict(fetch(db, "SELECT text, status FROM recallwatch.question"))


def test_evidence_is_stored_once_under_its_sha_256(db: Database) -> None:
    text = "Préss\u200b ⏻."
    other = Question("Why?", {"faq:2": 1}, evidence={"faq:2": text})

    import_set(db, [replace(A, evidence={"manual:3": text}), other])

    assert fetch(db, "SELECT hash, text FROM recallwatch.evidence") == [
        (hashlib.sha256(text.encode()).hexdigest(), text)
    ]
    assert evidence_of(db) == {"manual:3": text, "faq:1": None, "faq:2": text}


def test_a_question_is_read_back_with_its_evidence(db: Database) -> None:
    import_set(db, [A, NAMED])

    with db.begin() as session:
        found = list(golden.questions(session, SET, evidence=True))
        without = list(golden.questions(session, SET))
        one = golden.question(session, found[1].id)

    assert [each.question for each in found] == [NAMED, A]
    assert [each.question for each in without] == [NAMED, replace(A, evidence={})]
    assert one.question == A


def test_an_import_without_evidence_leaves_what_is_known(db: Database) -> None:
    import_set(db, [A])

    import_set(db, [replace(A, evidence={}, category="factual")])

    assert evidence_of(db)["manual:3"] == "Press."


def test_evidence_alone_is_taken_up_by_a_question_that_has_not_changed(db: Database) -> None:
    import_set(db, [replace(A, evidence={}), NAMED])

    report = import_set(db, [A, replace(NAMED, evidence={"specs:0": "2 kg"})])

    assert report == ImportReport(added=0, changed=0, unchanged=2, retired=0)
    assert evidence_of(db) == {"manual:3": "Press.", "faq:1": None, "specs:0": "2 kg"}


def test_new_evidence_takes_the_place_of_the_old(db: Database) -> None:
    import_set(db, [A])

    import_set(db, [replace(A, evidence={"manual:3": "Hold.", "faq:1": "Press."})])

    assert evidence_of(db) == {"manual:3": "Hold.", "faq:1": "Press."}


@pytest.mark.parametrize(
    ("brought", "left"), [({}, None), ({"a:0": "what it says now"}, "what it says now")]
)
def test_another_grade_is_not_one_of_the_old_evidence(
    db: Database, brought: dict[str, str], left: str | None
) -> None:
    known = {"a:0": "old", "b:0": "kept"}
    import_set(db, [Question("q", {"a:0": 1, "b:0": 1}, external_id="q", evidence=known)])

    import_set(db, [Question("q", {"a:0": 2, "b:0": 1}, external_id="q", evidence=brought)])

    assert evidence_of(db) == {"a:0": left, "b:0": "kept"}


def test_who_judged_and_when_changes_with_the_judgment_alone(db: Database) -> None:
    def import_by(person: str, question: Question) -> None:
        with db.begin() as session:
            import_questions(session, SET, [question], by=person)

    known = replace(A, external_id="a")
    import_by("ann", known)
    before = judgments(db)
    import_by("bob", replace(known, expected={"manual:3": 2, "faq:1": 3, "new:0": 1}, notes="x"))
    after = judgments(db)

    assert {key: by for key, (by, _) in before.items()} == {"manual:3": "ann", "faq:1": "ann"}
    assert after["manual:3"] == before["manual:3"]
    assert (after["faq:1"][0], after["new:0"][0]) == ("bob", "bob")
    assert after["faq:1"][1] > before["faq:1"][1]


def test_two_imports_of_the_same_evidence_at_once_both_end(db: Database) -> None:
    many = [
        Question(f"Is it {n}?", {f"d{n}:0": 1}, evidence={f"d{n}:0": f"text {n % 50}"})
        for n in range(300)
    ]
    back = list(reversed(many))

    together(lambda: import_set(db, many, "one"), lambda: import_set(db, back, "two"))

    assert fetch(db, "SELECT count(*) FROM recallwatch.evidence") == [50]


def test_a_rejected_question_stays_rejected_and_is_counted(db: Database) -> None:
    import_set(db, [A, NAMED])
    reject(db, A.text, NAMED.text)

    report = import_set(
        db, [A, replace(NAMED, text="How heavy is it?"), Question("New?", {"a:0": 1})]
    )

    assert report == ImportReport(added=1, changed=0, unchanged=0, retired=0, rejected=2)
    assert statuses(db) == {A.text: "rejected", NAMED.text: "rejected", "New?": "active"}


def test_a_rejected_question_comes_back_when_that_is_asked_for(db: Database) -> None:
    import_set(db, [A, NAMED])
    reject(db, A.text, NAMED.text)

    with db.begin() as session:
        report = import_questions(session, SET, [A, NAMED], reactivate=True)

    assert report == ImportReport(added=0, changed=2, unchanged=0, retired=0, reactivated=2)
    assert set(statuses(db).values()) == {"active"}
    assert fetch(db, "SELECT DISTINCT rejection FROM recallwatch.question") == [None]


def test_the_rejected_of_another_set_are_nobodys_business(db: Database) -> None:
    import_set(db, [A], "other")
    reject(db, A.text)

    assert import_set(db, [A]) == ImportReport(added=1, changed=0, unchanged=0, retired=0)


def test_another_spelling_of_a_text_takes_the_place_of_the_stored_one(db: Database) -> None:
    import_set(db, [Question("Ol\u00e1, mundo?", {"a:0": 1})])

    report = import_set(db, [Question("Ola\u0301,  mundo?\u200b", {"a:0": 1})])

    assert report == ImportReport(added=1, changed=0, unchanged=0, retired=1)


def test_a_stored_question_with_an_id_and_the_same_text_stays_and_is_counted(db: Database) -> None:
    import_set(db, [NAMED])

    report = import_set(db, [replace(NAMED, external_id=None, expected={"specs:9": 1})])

    assert report == ImportReport(added=1, changed=0, unchanged=0, retired=0, beside=1)


def test_a_proposed_question_becomes_active_with_the_file_that_holds_it(db: Database) -> None:
    import_set(db, [A])
    execute(db, "UPDATE recallwatch.question SET status = 'proposed'")

    assert import_set(db, [A]).changed == 1
    assert statuses(db) == {A.text: "active"}


def test_a_rejection_by_review_is_seen_by_the_next_import(db: Database) -> None:
    import_set(db, [A])
    with db.begin() as session:
        [(question_id, state)] = edits.states(
            session, fetch(db, "SELECT id FROM recallwatch.question")
        ).items()
        rejected = replace(state, status=Status.REJECTED, rejection="vague")
        edits.apply(session, SET, EditAction.REJECT, {question_id: rejected}, by="ann")

    assert import_set(db, [A]).rejected == 1
