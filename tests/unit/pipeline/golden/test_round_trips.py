"""What is exported is imported as it was, in every format, for what the format can hold."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.jsonl import write_questions
from pipeline.golden.writers import beir, csv_table, trec
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


@pytest.mark.parametrize("writer", [beir, trec])
def test_two_questions_that_would_share_an_id_are_refused(writer: object, tmp_path: Path) -> None:
    golden = [(1, Question("Who?", {"a:0": 1}, external_id="2")), (2, Question("Why?", {"a:0": 1}))]
    with pytest.raises(Exception, match="two questions would have the id '2'"):
        writer.write(golden, tmp_path)  # type: ignore[attr-defined]  # a module with write()


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
