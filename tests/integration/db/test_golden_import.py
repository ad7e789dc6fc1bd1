import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db import golden
from db.golden_import import ImportReport, import_questions
from db.session import Database
from pipeline.errors import InputError
from pipeline.golden.duplicates import Conflicts
from pipeline.golden.fingerprint import content_hash
from pipeline.golden.formats import ReadOptions
from pipeline.golden.jsonl import read, read_questions, write_questions
from pipeline.golden.staging import staged
from pipeline.types import Kind, Question, Source, Status
from tests.integration.db.building import (
    SET,
    execute,
    fetch,
    import_set,
    on_a_database,
    questions,
    together,
)
from tests.unit.pipeline.golden.strategies import questions as any_question

A = Question(text="How do I reset it?", expected={"manual:3": 2, "faq:1": 1})
B = Question(text="What does it weigh?", expected={"specs:0": 1})


def active(db: Database, set_name: str = SET) -> list[Question]:
    with db.begin() as session:
        return [each.question for each in golden.questions(session, set_name, evidence=True)]


def active_texts(db: Database, set_name: str = SET) -> set[str]:
    return {question.text for question in active(db, set_name)}


def statuses(db: Database) -> dict[str, str]:
    """Return the status of each question by its text and, where it has one, its external id."""
    rows = fetch(db, "SELECT concat_ws(' ', text, external_id), status FROM recallwatch.question")
    return dict(rows)


def test_new_questions_are_added_as_they_are(db: Database) -> None:
    full = Question(
        text="Full?",
        expected={"https://a.example:8080/b:0": 3, "d:1": 0},
        category="factual",
        tenant="acme",
        language="pt-BR",
        source=Source.SYNTHETIC,
        must_pass=True,
        external_id="17",
        notes="seen in the log",
    )
    none = Question(text="Who is the king?", expected={}, kind=Kind.UNANSWERABLE)

    report = import_set(db, [A, full, none])

    assert report == ImportReport(added=3, changed=0, unchanged=0, retired=0)
    assert active(db) == [full, A, none]


def test_importing_the_same_again_changes_nothing(db: Database) -> None:
    import_set(db, [A, B])
    before = fetch(db, "SELECT * FROM recallwatch.question ORDER BY id")

    report = import_set(db, [B, A])

    assert report == ImportReport(added=0, changed=0, unchanged=2, retired=0)
    assert fetch(db, "SELECT * FROM recallwatch.question ORDER BY id") == before


def test_a_question_is_known_again_by_its_external_id_whatever_else_changed(db: Database) -> None:
    import_set(db, [replace(A, external_id="a"), B])
    [first_id] = fetch(db, "SELECT id FROM recallwatch.question WHERE external_id = 'a'")
    changed = Question(text="How is it reset?", expected={"manual:9": 1}, external_id="a")

    report = import_set(db, [changed])

    assert report == ImportReport(added=0, changed=1, unchanged=0, retired=0)
    assert fetch(db, "SELECT id FROM recallwatch.question WHERE external_id = 'a'") == [first_id]
    assert active(db) == [changed, B]


def test_a_question_without_an_id_is_known_again_by_its_content(db: Database) -> None:
    import_set(db, [A])

    report = import_set(db, [replace(A, category="factual", must_pass=True)])

    assert report == ImportReport(added=0, changed=1, unchanged=0, retired=0)
    assert active(db) == [replace(A, category="factual", must_pass=True)]


def test_changed_notes_are_a_change(db: Database) -> None:
    import_set(db, [A])

    assert import_set(db, [replace(A, notes="checked")]).changed == 1
    assert active(db) == [replace(A, notes="checked")]


def test_a_corrected_answer_retires_the_question_it_corrects(db: Database) -> None:
    import_set(db, [A, B])
    corrected = replace(A, expected={"manual:4": 1})

    report = import_set(db, [corrected])

    assert report == ImportReport(added=1, changed=0, unchanged=0, retired=1)
    assert active(db) == [B, corrected]


def test_one_text_asked_in_two_ways_in_one_file_is_kept_twice(db: Database) -> None:
    again = replace(A, expected={"other:0": 1})

    import_set(db, [A, again])
    report = import_set(db, [A, again])

    assert report == ImportReport(added=0, changed=0, unchanged=2, retired=0)
    assert active(db) == [A, again]


def test_the_same_text_of_another_tenant_is_left_alone(db: Database) -> None:
    ours = replace(A, tenant="acme")
    import_set(db, [A, ours])

    import_set(db, [replace(ours, expected={"manual:5": 1})])

    assert active(db) == [A, replace(ours, expected={"manual:5": 1})]


def test_questions_that_are_given_ids_later_are_not_counted_twice(db: Database) -> None:
    import_set(db, [A, B])

    report = import_set(db, [replace(A, external_id="a"), replace(B, external_id="b")])

    assert report == ImportReport(added=2, changed=0, unchanged=0, retired=2)
    assert active(db) == [replace(A, external_id="a"), replace(B, external_id="b")]


def test_a_file_says_nothing_of_texts_it_does_not_hold(db: Database) -> None:
    import_set(db, [A, replace(B, external_id="b")])

    report = import_set(db, questions(1))

    assert report.retired == 0
    assert active_texts(db) == {A.text, B.text, "question 0"}


def test_replace_retires_what_the_file_does_not_hold(db: Database) -> None:
    c = Question(text="Where is it made?", expected={"about:0": 1}, external_id="c")
    d = Question(text="Is it blue?", expected={"specs:1": 1}, external_id="d")
    import_set(db, [A, B, c, d])
    kept = replace(c, expected={"about:1": 1})

    report = import_set(db, [A, kept], replace=True)

    assert report == ImportReport(added=0, changed=1, unchanged=1, retired=2)
    assert active(db) == [kept, A]
    assert statuses(db)["Is it blue? d"] == Status.RETIRED


def test_a_retired_question_comes_back_when_a_file_holds_it_again(db: Database) -> None:
    import_set(db, [A, replace(B, external_id="b")])
    import_set(db, questions(1), replace=True)

    report = import_set(db, [A, replace(B, external_id="b")])

    assert report == ImportReport(added=0, changed=2, unchanged=0, retired=0)
    assert active_texts(db) == {A.text, B.text, "question 0"}


def test_judgments_are_replaced_with_the_question_they_belong_to(db: Database) -> None:
    import_set(db, [replace(A, external_id="a"), B])

    import_set(db, [replace(A, external_id="a", expected={"manual:3": 1, "new:0": 3})])

    assert active(db) == [replace(A, external_id="a", expected={"manual:3": 1, "new:0": 3}), B]
    assert fetch(db, "SELECT count(*) FROM recallwatch.judgment") == [3]


def test_sets_do_not_touch_each_other(db: Database) -> None:
    import_set(db, [A, replace(B, external_id="b")], "one")

    import_set(db, [replace(A, expected={"x:0": 1}), replace(B, external_id="b")], "two")
    import_set(db, questions(1), "two", replace=True)

    assert active(db, "one") == [replace(B, external_id="b"), A]


def test_an_error_half_way_imports_nothing(db: Database) -> None:
    def file() -> Iterator[Question]:
        yield replace(A, expected={"manual:4": 1})
        yield B
        raise InputError("golden.jsonl:3: question is blank")

    import_set(db, [A])
    before = fetch(db, "SELECT * FROM recallwatch.question")

    with pytest.raises(InputError, match=r"^golden\.jsonl:3: question is blank$"):
        import_set(db, file(), replace=True)

    assert fetch(db, "SELECT * FROM recallwatch.question") == before
    assert active(db) == [A]


def test_two_imports_at_once_leave_one_question_of_each(db: Database) -> None:
    many = questions(200)

    reports = together(*[lambda: import_set(db, many)] * 3)

    assert sorted(report.added for report in reports) == [0, 0, 200]
    assert active(db) == many


def test_a_large_set_is_imported_again_in_time_that_grows_with_it_only(own_db: Database) -> None:
    many = questions(5000)
    import_set(own_db, many)

    # Where every pair was compared a statement took six seconds, and at 50,000 six minutes.
    execute(own_db, f"ALTER DATABASE {own_db.url.database} SET statement_timeout = '2s'")
    own_db.close()
    corrected = [replace(question, expected={"x:0": 1}) for question in many]

    assert import_set(own_db, corrected).retired == 5000
    assert import_set(own_db, corrected).unchanged == 5000


@on_a_database
@given(drawn=st.lists(any_question(evidence=True), max_size=5))
def test_what_is_exported_imports_as_the_same_set(
    db: Database, tmp_path: Path, drawn: list[Question]
) -> None:
    kept = list({q.external_id or content_hash(q): q for q in drawn}.values())
    kept.sort(key=lambda q: q.external_id is None)
    name, copy = uuid4().hex, uuid4().hex
    import_set(db, kept, name)

    stream = io.BytesIO()
    write_questions(active(db, name), stream)
    (tmp_path / "export.jsonl").write_bytes(stream.getvalue())
    back = [q for _, q in read_questions(tmp_path / "export.jsonl")] if kept else []
    import_set(db, back, copy)

    assert back == kept
    assert active(db, copy) == active(db, name) == kept
    assert import_set(db, back, name).unchanged == len(kept)


@pytest.fixture
def labelled(db: Database) -> Database:
    import_set(
        db,
        [
            replace(A, category="how", tenant="acme"),
            replace(B, category="how"),
            Question(text="Why?", expected={}, kind=Kind.UNANSWERABLE, category="why"),
            Question(text="When?", expected={"d:0": 1}, external_id="gone"),
        ],
    )
    execute(db, "UPDATE recallwatch.question SET status = 'retired' WHERE external_id = 'gone'")
    return db


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, [A.text, B.text, "Why?"]),
        ({"status": None}, ["When?", A.text, B.text, "Why?"]),
        ({"status": Status.RETIRED}, ["When?"]),
        ({"category": "how"}, [A.text, B.text]),
        ({"category": "how", "tenant": "acme"}, [A.text]),
        ({"tenant": "nobody"}, []),
        ({"limit": 2}, [A.text, B.text]),
    ],
)
def test_questions_are_listed_by_filters_in_the_order_they_came(
    labelled: Database, filters: dict[str, object], found: list[str]
) -> None:
    with labelled.begin() as session:
        listed = list(golden.questions(session, SET, **filters))  # type: ignore[arg-type]  # drawn from the table above

    assert [each.question.text for each in listed] == found


def test_one_question_is_shown_with_its_status(labelled: Database) -> None:
    [gone] = fetch(labelled, "SELECT id FROM recallwatch.question WHERE external_id = 'gone'")

    with labelled.begin() as session:
        shown = golden.question(session, gone)

    assert (shown.id, shown.status) == (gone, Status.RETIRED)
    assert shown.question == Question(text="When?", expected={"d:0": 1}, external_id="gone")


def test_an_unknown_question_is_an_input_error(db: Database) -> None:
    with db.begin() as session, pytest.raises(InputError, match="no question 99"):
        golden.question(session, 99)


def test_sets_are_counted_each_for_itself(labelled: Database) -> None:
    import_set(labelled, questions(2), "another")

    with labelled.begin() as session:
        golden.snapshot(session, SET)
        another, default = golden.sets(session)

    counts = (default.active, default.unanswerable, default.other, default.judgments)
    assert counts == (3, 1, 1, 3)
    assert (default.versions, another.versions) == (1, 0)
    assert (another.set_name, another.active, another.judgments) == ("another", 2, 2)


def reject(db: Database, name: str) -> None:
    execute(
        db,
        "UPDATE recallwatch.question SET status = 'rejected', rejection = 'no'"
        " WHERE coalesce(external_id, text) = :name",
        {"name": name},
    )


def reactivated(db: Database, *some: Question) -> ImportReport:
    with db.begin() as session:
        return import_questions(session, SET, some, reactivate=True)


@pytest.mark.parametrize(
    "again",
    [
        A,
        replace(A, text="\u200bHow do  I reset it? "),
        replace(A, expected={"other:0": 1}),
        replace(A, external_id="a"),
        replace(A, language="en"),
    ],
    ids=["the same", "another spelling", "other keys", "an id", "a language"],
)
def test_what_a_reviewer_rejected_does_not_come_back_in_any_form(
    db: Database, again: Question
) -> None:
    import_set(db, [A, B])
    reject(db, A.text)

    report = import_set(db, [B, again])

    assert report == ImportReport(added=0, changed=0, unchanged=1, retired=0, rejected=1)
    assert active(db) == [B]
    assert reactivated(db, again).rejected == 0
    assert again in active(db)


def test_a_rejected_question_is_known_by_its_id_and_text_in_its_own_tenant_alone(
    db: Database,
) -> None:
    import_set(db, [replace(A, external_id="a", tenant="acme"), B])
    reject(db, "a")
    changed = Question("Another text?", {"x:0": 1}, external_id="a")

    assert import_set(db, [changed, replace(A, tenant="acme")]).rejected == 2
    assert import_set(db, [A]).added == 1
    assert active(db) == [B, A]


def test_a_question_that_is_active_beside_a_rejected_one_is_brought_up_to_date(
    db: Database,
) -> None:
    ours = replace(A, external_id="a")
    import_set(db, [ours])
    import_set(db, [A])
    reject(db, A.text)

    report = import_set(db, [replace(ours, category="how"), A])

    assert (report.changed, report.rejected, report.retired) == (1, 1, 0)
    assert active(db) == [replace(ours, category="how")]


def test_what_stays_rejected_retires_no_other_question_of_its_text(db: Database) -> None:
    again = replace(A, expected={"other:0": 1})
    import_set(db, [A, again])
    execute(
        db,
        "UPDATE recallwatch.question SET status = 'rejected' WHERE content_hash = :hash",
        {"hash": content_hash(A)},
    )

    assert import_set(db, [A]) == ImportReport(
        added=0, changed=0, unchanged=0, retired=0, rejected=1
    )
    assert active(db) == [again]


def test_a_proposed_question_that_a_file_holds_is_active_and_counted(db: Database) -> None:
    import_set(db, [A, B, replace(A, external_id="a")])
    execute(db, "UPDATE recallwatch.question SET status = 'proposed' WHERE text = :text",
            {"text": A.text})  # fmt: skip

    report = import_set(db, [A, B, replace(A, external_id="a")])

    assert (report.changed, report.unchanged, report.accepted) == (2, 1, 2)
    assert len(active(db)) == 3


def test_no_correction_of_a_refused_line_retires_what_was_imported(
    db: Database, tmp_path: Path
) -> None:
    lines = [
        '{"question": "Who?", "expected": {"a:0": 1}}',
        '{"question": "Who?", "expected": {"b:0": null}}',
        '{"question": "Why?", "expected": {"a:0": 1}}',
        '{"question": "When?", "expected": {"a:0": null}, "external_id": "w"}',
        '{"question": "When?", "expected": {"a:0": 1}}',
    ]
    taken = _import_text(db, tmp_path, lines)
    assert active_texts(db) == {"Why?"}
    refused = [line for line in lines if line not in taken]

    report = _import_text(db, tmp_path, [line.replace("null", "1") for line in refused])

    assert len(report) == 4
    assert active_texts(db) == {"Who?", "Why?", "When?"}
    assert fetch(db, "SELECT count(*) FROM recallwatch.question WHERE status = 'retired'") == [0]


def _import_text(db: Database, folder: Path, lines: list[str]) -> list[str]:
    """Import what can be of these lines, both of two that contradict, and return what was."""
    file = folder / "golden.jsonl"
    file.write_text("\n".join(lines))
    records = read(str(file), options=ReadOptions())
    with staged(str(file), records, skip_bad=True, conflicts=Conflicts.KEEP_BOTH) as plan:
        import_set(db, plan.questions())
        refused = {record.raw.strip() for record in plan.refusals()}
    return [line for line in lines if line not in refused]
