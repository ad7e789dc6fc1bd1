"""An import on its way: what was read, refused, flagged and said."""

import sqlite3
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden import duplicates
from pipeline.golden.formats import Header, Notice, Read, Record, Refused
from pipeline.golden.staging import staged
from pipeline.types import Kind, Question
from tests.unit.pipeline.golden.strategies import patiently, questions

FILE = "golden.csv"
WHO = Question(text="Who?", expected={"a:0": 1})
GOOD = Read(f"{FILE}:2", WHO, "Who?,a:0\n")
BAD = Refused(f"{FILE}:3", "question is blank", ",caf\udce9\n")


def test_the_first_refused_record_refuses_all() -> None:
    with (
        pytest.raises(InputError, match=r"^golden\.csv:3: question is blank$"),
        staged(FILE, [GOOD, BAD]),
    ):
        pass


def test_bad_records_are_skipped_and_given_back_as_they_were() -> None:
    records: list[Record] = [Header("question,expected\n"), BAD, GOOD]
    with staged(FILE, records, skip_bad=True) as plan:
        assert list(plan.questions()) == [WHO]
        assert list(plan.refusals()) == [BAD]
        assert (plan.kept, plan.refused, plan.header) == (1, 1, "question,expected\n")


def test_contradictions_are_given_back_with_what_stood_there() -> None:
    other = Read(f"{FILE}:9", replace(WHO, expected={"b:0": 1}), "Who?,b:0\n")
    with staged(FILE, [GOOD, other], skip_bad=True) as plan:
        assert [(refused.place, refused.raw) for refused in plan.refusals()] == [
            (GOOD.place, GOOD.raw),
            (other.place, other.raw),
        ]
        assert (plan.kept, plan.refused) == (0, 2)


@pytest.mark.parametrize("records", [[], [Header("question\n")], [Notice("read as UTF-8")]])
def test_a_source_without_a_record_is_refused(records: list[Record]) -> None:
    with (
        pytest.raises(
            InputError, match=r"^golden\.csv: holds no question(; read as UTF-8)?$"
        ) as no,
        staged(FILE, records, skip_bad=True),
    ):
        pass
    assert all(each.text in str(no.value) for each in records if isinstance(each, Notice))


def test_what_a_reader_has_to_say_is_among_the_warnings() -> None:
    with staged(FILE, [Notice("read as Windows-1252"), GOOD]) as plan:
        assert plan.warnings() == ["golden.csv: read as Windows-1252"]


@pytest.mark.parametrize("odd", ["W\u200bho?", "\ufeffWho?", "Who\u200d?"], ids=ascii)
def test_invisible_characters_are_kept_and_flagged(odd: str) -> None:
    with staged(FILE, [GOOD, Read(f"{FILE}:7", Question(odd, {"b:0": 1}), "")],
                conflicts=duplicates.Conflicts.KEEP_BOTH) as plan:  # fmt: skip
        assert [question.text for question in plan.questions()] == ["Who?", odd]
        assert plan.warnings()[-1] == (
            "golden.csv: questions with zero-width characters or byte order marks (kept): 1 (at 7)"
        )


def test_letters_that_are_not_composed_are_kept_and_flagged_in_text_and_key() -> None:
    golden = [Question("Ola\u0301?", {"a:0": 1}), Question("Where?", {"cafe\u0301:0": 1})]
    records = [Read(f"{FILE}:{line}", question, "") for line, question in enumerate(golden, 1)]
    with staged(FILE, records) as plan:
        assert list(plan.questions()) == golden
        assert plan.warnings() == [
            "golden.csv: questions not in Unicode's form NFC (kept): 2 (at 1, 2)"
        ]


def test_questions_without_an_answer_are_counted() -> None:
    nothing = Read(f"{FILE}:3", Question("Why?", {}, kind=Kind.UNANSWERABLE), "")
    with staged(FILE, [GOOD, nothing]) as plan:
        assert len(list(plan.questions())) == 2
        assert plan.unanswerable == 1


@patiently
@given(golden=st.lists(questions(evidence=True), min_size=1, max_size=4, unique_by=repr))
def test_a_question_comes_out_as_it_went_in(golden: list[Question]) -> None:
    distinct = [
        replace(question, external_id=str(number)) for number, question in enumerate(golden)
    ]
    with staged(FILE, [Read(FILE, question, "") for question in distinct]) as plan:
        assert list(plan.questions()) == distinct


def test_a_place_and_a_reason_are_one_line_that_a_terminal_may_show() -> None:
    hostile = Refused("t: id a\n\x1b[31mb\udce9", "no\r\nfield \x1b[2Jx\u2028y", "{}\n")
    with staged(FILE, [GOOD, hostile], skip_bad=True) as plan:
        [refused] = plan.refusals()
        assert (refused.place, refused.reason) == ("t: id a [31mb", "no field [2Jx y")
    with pytest.raises(InputError) as caught, staged(FILE, [hostile]):
        pass
    assert str(caught.value) == "t: id a [31mb: no field [2Jx y"


@pytest.mark.parametrize(("raw", "marked"), [("Who?,x\n", False), ("Où?,x\n", True)])
def test_a_table_that_a_spreadsheet_would_misread_begins_with_a_byte_order_mark(
    raw: str, *, marked: bool
) -> None:
    bad = Refused(f"{FILE}:3", "no key is expected", raw)
    with staged(FILE, [Header("question,expected\n"), GOOD, bad], skip_bad=True) as plan:
        head = plan.head_of_refused()
    assert head == ("\ufeff" if marked else "") + "question,expected\n"
    with staged(FILE, [GOOD, bad], skip_bad=True) as plan:
        assert plan.head_of_refused() == ""  # lines of JSON


UNREADABLE = Refused(f"{FILE}:9", "the grade is 'x'", "Who?,b:0=x\n", text=" W\u200bho?")


@pytest.mark.parametrize("conflicts", duplicates.Conflicts)
def test_what_would_be_retired_by_the_correction_of_a_refused_line_is_refused_with_it(
    conflicts: duplicates.Conflicts,
) -> None:
    other = Read(f"{FILE}:4", Question("Why?", {"a:0": 1}), "Why?,a:0\n")
    records: list[Record] = [GOOD, UNREADABLE, other]
    with staged(FILE, records, skip_bad=True, conflicts=conflicts) as plan:
        assert [question.text for question in plan.questions()] == ["Why?"]
        assert [refused.place for refused in plan.refusals()] == [GOOD.place, UNREADABLE.place]
        assert next(plan.refusals()).reason == (
            f"the question 'Who?' stands refused at {FILE}:9 too: correct that, and import both"
            " together"
        )
        assert (plan.kept, plan.refused) == (1, 2)


def test_a_line_of_another_tenant_or_with_an_id_of_its_own_stands_beside_a_refused_one() -> None:
    named = Read(f"{FILE}:4", replace(WHO, external_id="q1"), "")
    theirs = Read(f"{FILE}:5", replace(WHO, tenant="acme"), "")
    with staged(FILE, [named, theirs, UNREADABLE], skip_bad=True) as plan:
        assert (plan.kept, plan.refused) == (2, 1)


def test_a_line_whose_id_stands_refused_elsewhere_is_refused_too() -> None:
    named = Read(f"{FILE}:4", Question("Why?", {"a:0": 1}, external_id="q1"), "")
    unreadable = replace(UNREADABLE, external_id="q1")
    with staged(FILE, [unreadable, named], skip_bad=True) as plan:
        assert (plan.kept, plan.refused) == (0, 2)


def test_a_line_beside_a_contradiction_between_ids_is_refused_with_it() -> None:
    # To correct the two with an id would retire the one without.
    two = [replace(WHO, external_id="q1"), Question("Why?", {"a:0": 1}, external_id="q1")]
    other = replace(WHO, expected={"b:0": 1})
    records = [Read(f"{FILE}:{n}", each, "") for n, each in enumerate([*two, other])]
    with staged(FILE, records, skip_bad=True, conflicts=duplicates.Conflicts.KEEP_BOTH) as plan:
        assert (plan.kept, plan.refused) == (0, 3)


def test_what_is_refused_alone_names_the_fault_and_not_what_follows_from_it() -> None:
    two = [replace(WHO, external_id="q1"), Question("Why?", {"a:0": 1}, external_id="q1")]
    with (
        pytest.raises(InputError, match=r"external_id 'q1' stands at"),
        staged(FILE, [Read(f"{FILE}:{n}", each, "") for n, each in enumerate([WHO, *two])]),
    ):
        pass


def test_a_set_has_a_limited_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "MAX_QUESTIONS", 3)
    records = [Read(FILE, replace(WHO, text=f"Who is {n}?"), "") for n in range(4)]
    with staged(FILE, records[:3]) as plan:
        assert plan.kept == 3
    with (
        pytest.raises(InputError, match=r"^golden\.csv: holds more than 3 questions: split it"),
        staged(FILE, records),
    ):
        pass


def test_a_full_disk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> sqlite3.Connection:
        connection = sqlite3.Connection("", isolation_level=None)
        connection.execute("PRAGMA max_page_count = 8")
        return connection

    monkeypatch.setattr(sqlite3, "connect", full)
    long = [Read(FILE, replace(WHO, text=f"{n}" * 7_000), "") for n in range(1, 9)]
    with (
        pytest.raises(InputError, match=r"^golden\.csv: the scratch file.*TMPDIR"),
        staged(FILE, long),
    ):
        pass


def test_a_large_import_takes_flat_memory() -> None:
    count = 6_000

    def records() -> Iterator[Record]:
        for number in range(count):
            # A third repeats, and a third contradicts.
            text, key = f"Who is {number // 3}?", f"d{number % 3 // 2}:0"
            yield Read(f"{FILE}:{number}", Question(text, {key: 1}), "x" * 200)

    tracemalloc.start()
    try:
        with staged(FILE, records(), skip_bad=True) as plan:
            assert sum(1 for _ in plan.refusals()) == plan.refused == 2 * count // 3
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000
