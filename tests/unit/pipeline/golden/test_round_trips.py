"""What is exported is imported as it was, in every format, for what the format can hold."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden.duplicates import Conflicts
from pipeline.golden.formats import ReadOptions, reader
from pipeline.golden.jsonl import write_questions
from pipeline.golden.staging import staged
from pipeline.golden.writers import beir, csv_table, trec
from pipeline.text import normalised
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.readers.conftest import found_in
from tests.unit.pipeline.golden.strategies import patiently, questions


def _as_a_spreadsheet_holds(question: Question) -> Question:
    """A cell is empty or it is not: empty notes are none."""
    return replace(question, notes=question.notes or None)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one folder that every example of a property overwrites."""
    return tmp_path_factory.mktemp("golden")


GOLDEN = st.lists(questions(evidence=True), min_size=1, max_size=4)


@patiently
@given(golden=GOLDEN)
def test_jsonl_holds_all_of_a_question(scratch: Path, golden: list[Question]) -> None:
    path = scratch / "golden.jsonl"
    with path.open("wb") as stream:
        write_questions(golden, stream)
    assert found_in("jsonl", path).questions == golden


@patiently
@given(golden=GOLDEN, delimiter=st.sampled_from(",;\t"))
def test_csv_holds_all_of_a_question(scratch: Path, golden: list[Question], delimiter: str) -> None:
    path = scratch / "golden.csv"
    with path.open("wb") as stream:
        csv_table.write(golden, stream, delimiter=delimiter)
    assert found_in("csv", path).questions == [_as_a_spreadsheet_holds(each) for each in golden]


@patiently
@given(
    golden=st.lists(questions(evidence=True), min_size=1, max_size=4, unique_by=lambda q: q.text)
)
def test_beir_holds_all_of_a_question(scratch: Path, golden: list[Question]) -> None:
    golden = [replace(each, external_id=each.external_id and f"{n}{each.external_id}")
              for n, each in enumerate(golden, start=1)]  # fmt: skip
    assert beir.write(list(enumerate(golden, start=100)), scratch) == []
    assert found_in("beir", scratch).questions == golden


@patiently
@given(golden=GOLDEN)
def test_trec_holds_ids_texts_and_grades_and_leaves_no_question_out_in_silence(
    scratch: Path, golden: list[Question]
) -> None:
    golden = [replace(each, external_id=f"{each.external_id or ''}{n}")
              for n, each in enumerate(golden)]  # fmt: skip
    warnings = trec.write(list(enumerate(golden)), scratch)
    left_out = sum(int(each.split()[1]) for each in warnings if "were left out" in each)
    if left_out == len(golden):
        return
    back = found_in("trec", scratch).questions
    kept = {each.external_id: each for each in golden}
    assert len(back) == len(golden) - left_out
    for question in back:
        whole = kept[question.external_id]
        assert question == Question(
            whole.text, whole.expected, kind=whole.kind, external_id=whole.external_id
        )


def test_trec_holds_usual_questions_whole(tmp_path: Path) -> None:
    golden = [
        Question("How do I reset it?", {"manual, 2nd.html:3": 2, "https://a.example/#b:0": 0},
                 external_id="q 1"),
        Question("Who?", {"0:0": 1}, external_id="0"),
    ]  # fmt: skip
    [warning] = trec.write(list(enumerate(golden)), tmp_path)
    assert "1 questions have blanks" in warning
    assert found_in("trec", tmp_path).questions == golden


def test_what_trec_has_no_place_for_is_counted(tmp_path: Path) -> None:
    golden = [
        Question("Who?", {"a:0": 1}, category="factual", notes="n", source=Source.LOG),
        Question("Which?", {"a:0": 1}, category="factual"),
        Question("Why?", {}, kind=Kind.UNANSWERABLE),
        Question("When\nand where?", {"a:0": 1}),
        Question("What?", {"a:0": 1}, external_id="#1"),
    ]
    warnings = trec.write(list(enumerate(golden, start=1)), tmp_path)
    mark = "the id begins with #, < or a byte order mark, which have another meaning there"
    assert sorted(each.partition(":")[2].strip() for each in warnings[:3]) == [
        f"1 questions were left out: {mark}",
        "1 questions were left out: the id or text holds a tab, a line break, or a blank at an end",
        "1 questions were left out: they have no judgment",
    ]
    assert "category (2)" in warnings[3]
    assert "source (1)" in warnings[3]
    assert (tmp_path / "topics.tsv").read_text() == "1\tWho?\n2\tWhich?\n"
    assert (tmp_path / "qrels.txt").read_text() == "1\t0\ta:0\t1\n2\t0\ta:0\t1\n"


NUMBERED = [(1, Question("Who?", {"a:0": 1}, external_id="2")), (2, Question("Why?", {"a:0": 1}))]


def test_beir_holds_a_question_whose_number_is_anothers_id(tmp_path: Path) -> None:
    assert beir.write(NUMBERED, tmp_path, taken={"2"}) == []
    assert found_in("beir", tmp_path).questions == [question for _, question in NUMBERED]


def test_trec_says_of_a_question_whose_number_is_anothers_id(tmp_path: Path) -> None:
    [warning] = trec.write(NUMBERED, tmp_path, taken={"2"})
    assert "1 questions without an external id have a number that is the external id" in warning
    found = found_in("trec", tmp_path).questions
    assert [(each.external_id, each.text) for each in found] == [("2", "Who?"), ("2_", "Why?")]


@pytest.mark.parametrize("writer", [beir, trec])
def test_an_export_that_fails_leaves_nothing(writer: ModuleType, tmp_path: Path) -> None:
    def breaking() -> Iterator[tuple[int, Question]]:
        yield NUMBERED[0]
        raise InputError("the database went away")

    with pytest.raises(InputError):
        writer.write(breaking(), tmp_path / "golden")
    assert not list(tmp_path.iterdir())


KEPT_BOTH = st.lists(
    st.builds(
        replace,
        questions(),
        text=st.sampled_from(["Who?", "Why?", "Who\u200b?"]),
        tenant=st.sampled_from([None, "acme"]),
    ),
    min_size=1,
    max_size=5,
    unique_by=(
        # What says the same as another question is one question to any import.
        lambda q: (normalised(q.text), q.tenant, tuple(sorted(q.expected.items()))),
        lambda q: q.external_id or object(),
    ),
)


@patiently
@given(golden=KEPT_BOTH)
def test_what_was_imported_with_keep_both_comes_back_with_it(
    scratch: Path, golden: list[Question]
) -> None:
    with (scratch / "both.jsonl").open("wb") as stream:
        write_questions(golden, stream)
    with (scratch / "both.csv").open("wb") as stream:
        csv_table.write(golden, stream)
    beir.write(list(enumerate(golden)), scratch / "both", taken=_ids(golden))
    for name, file in (("jsonl", "both.jsonl"), ("csv", "both.csv"), ("beir", "both")):
        source = scratch / file
        records = reader(name)(str(source), options=ReadOptions())
        with staged(str(source), records, conflicts=Conflicts.KEEP_BOTH) as plan:
            back = list(plan.questions())
        expected = map(_as_a_spreadsheet_holds, golden) if name == "csv" else golden
        assert back == list(expected)


def _ids(golden: list[Question]) -> set[str]:
    return {each.external_id for each in golden if each.external_id is not None}


def test_a_spreadsheet_runs_no_cell_of_an_export(tmp_path: Path) -> None:
    hostile = Question(
        "=cmd|' /C calc'!A0", {"@key:0": 1}, category="+1", notes="-2", tenant="\t=1"
    )
    stream = BytesIO()
    csv_table.write([hostile], stream)
    row = stream.getvalue().decode("utf-8-sig").splitlines()[1]
    assert row.startswith("'=cmd|' /C calc'!A0,'@key:0,")
    path = tmp_path / "golden.csv"
    path.write_bytes(stream.getvalue())
    assert found_in("csv", path).questions == [hostile]


def test_an_export_for_a_spreadsheet_begins_with_a_byte_order_mark_and_names() -> None:
    stream = BytesIO()
    csv_table.write([Question("Onde?", {"a:0": 1, "b:0": 2}, must_pass=True)], stream)
    lines = stream.getvalue().split(b"\r\n")
    assert lines[0].startswith(b"\xef\xbb\xbfquestion,expected,kind,category")
    assert lines[1].decode() == "Onde?,a:0; b:0=2,,,,,,TRUE,,,"


def test_a_cell_that_excel_would_cut_is_warned_of() -> None:
    long = Question("Who?", {"a:0": 1}, notes="x" * 40_000)
    [warning] = csv_table.write([long, Question("Why?", {"a:0": 1})], BytesIO())
    assert warning.startswith("1 rows hold a cell that Excel cuts")


@pytest.mark.parametrize("writer", [beir, trec])
def test_memory_does_not_grow_with_the_questions(writer: ModuleType, tmp_path: Path) -> None:
    def peak(count: int) -> int:
        numbered = (
            (n, Question(f"Is it {n}?", {f"a:{n}": 1}, external_id=f"q{n}" if n % 2 else None))
            for n in range(count)
        )
        tracemalloc.start()
        writer.write(numbered, tmp_path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(6_000) < peak(600) * 1.3
