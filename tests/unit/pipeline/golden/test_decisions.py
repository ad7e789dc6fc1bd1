"""Proposals to a spreadsheet and decisions back: nothing is lost, nothing wrong is taken."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden.decisions import (
    COLUMNS,
    LONGEST_CELL,
    Decided,
    Decision,
    Proposal,
    read_decisions,
    taken_over,
    write_proposals,
)
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.strategies import KEYS, TEXT, patiently
from tests.unit.pipeline.golden.strategies import questions as any_question

ASKED = Question("How do I reset it?", {"manual:3": 1, "faq:0": 2}, category="how")

Rows = list[dict[str, str]]


def proposal(question: Question = ASKED, number: int = 7, **fields: dict[str, str]) -> Proposal:
    return Proposal(number, "abc", question, fields.get("proposed", {}), fields.get("chunks", {}))


def table_of(*proposals: Proposal) -> Rows:
    """Return what a spreadsheet would show."""
    stream = io.StringIO(newline="")
    assert write_proposals(proposals, stream) == len(proposals)
    written = stream.getvalue()
    assert written.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(written[1:], newline="")))


def save(
    path: Path,
    rows: Rows,
    *,
    encoding: str = "utf-8-sig",
    delimiter: str = ",",
    first: str = "",
    newline: str = "\r\n",
) -> Path:
    """Save a table as a spreadsheet does."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter, lineterminator=newline)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((first + stream.getvalue()).encode(encoding, errors="replace"))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "proposals.csv"


def decided(path: Path) -> list[Decided]:
    found = list(read_decisions(path))
    return [each for each in found if not isinstance(each, InputError)]


def faults(path: Path) -> list[str]:
    return [str(each) for each in read_decisions(path) if isinstance(each, InputError)]


def edited(path: Path, **cells: str) -> Path:
    """Save one row with some of its cells edited."""
    [row] = table_of(proposal())
    return save(path, [row | cells])


@patiently
@given(asked=st.lists(any_question(), min_size=1, max_size=3))
def test_a_row_that_nobody_touched_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, asked: list[Question]
) -> None:
    rows = table_of(*(proposal(each, number) for number, each in enumerate(asked)))
    path = save(tmp_path_factory.mktemp("csv") / "a.csv", rows)
    back = decided(path)
    assert [each.id for each in back] == list(range(len(asked)))
    for each, question in zip(back, asked, strict=True):
        assert each.decision is None
        assert taken_over(question, each.question) == {}


@patiently
@given(keys=st.dictionaries(KEYS, TEXT, max_size=3), text=TEXT)
def test_no_cell_of_a_table_starts_a_formula(keys: dict[str, str], text: str) -> None:
    asked = Question("=" + text + "x", {}, kind=Kind.UNANSWERABLE, notes="@" + text)
    [row] = table_of(proposal(asked, proposed=keys, chunks=keys))
    assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@pytest.mark.parametrize("decision", Decision)
def test_a_decision_comes_back_with_its_row(path: Path, decision: Decision) -> None:
    edited(path, decision=f" {decision.value.upper()} ", reason=" too vague ")
    [row] = decided(path)
    assert (row.place, row.id, row.mark) == (f"{path}:2", 7, "abc")
    assert (row.decision, row.reason) == (decision, "too vague")


def test_the_edited_cells_come_back(path: Path) -> None:
    edited(
        path, question="How do I restart it?", expected='{"manual:3": 3, "a; b:0": 1}',
        category="procedural", tenant="acme", language="en", must_pass="WAHR", notes="=see log",
    )  # fmt: skip
    [row] = decided(path)
    assert taken_over(ASKED, row.question) == {
        "text": "How do I restart it?", "expected": {"manual:3": 3, "a; b:0": 1},
        "category": "procedural", "tenant": "acme", "language": "en", "must_pass": True,
        "notes": "=see log",
    }  # fmt: skip


def test_an_emptied_label_is_taken_away(path: Path) -> None:
    edited(path, category="")
    [row] = decided(path)
    assert taken_over(ASKED, row.question) == {"category": None}


def test_a_question_without_keys_is_unanswerable(path: Path) -> None:
    edited(path, expected="")
    [row] = decided(path)
    assert (row.question.kind, row.question.expected) == (Kind.UNANSWERABLE, {})


def test_line_ends_that_a_spreadsheet_rewrites_are_no_change(path: Path) -> None:
    asked = replace(ASKED, text="One\r\ntwo\rthree?", notes="a\r\nb")
    rows = table_of(proposal(asked))
    rows[0]["question"] = rows[0]["question"].replace("\r\n", "\n").replace("\r", "\n")
    rows[0]["notes"] = "a\nb"
    [row] = decided(save(path, rows))
    assert taken_over(asked, row.question) == {}


@pytest.mark.parametrize("key", ["12:3", "1:2:3", "7:0"])
def test_a_key_that_looks_like_a_time_of_day_is_not_written_as_one(path: Path, key: str) -> None:
    asked = replace(ASKED, expected={key: 1})
    rows = table_of(proposal(asked))
    assert rows[0]["expected"] == f"{key}=1"
    [row] = decided(save(path, rows))
    assert row.question.expected == {key: 1}


@pytest.mark.parametrize(("delimiter", "first"), [
    (",", ""), (";", ""), ("\t", ""), (";", "sep=;\r\n"), (",", "SEP=,\n"),
])  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_every_way_to_save_is_read(
    path: Path, delimiter: str, first: str, newline: str, encoding: str
) -> None:
    rows = table_of(proposal(replace(ASKED, text='Is "a; b",\n\nor c?')), proposal(number=8))
    save(path, rows, delimiter=delimiter, first=first, newline=newline, encoding=encoding)
    start = 2 + bool(first)
    found = [(each.place, each.id, each.question.text) for each in decided(path)]
    assert found == [
        (f"{path}:{start}", 7, 'Is "a; b",\n\nor c?'),
        (f"{path}:{start + 3} (row {start + 1})", 8, ASKED.text),
    ]


def test_columns_may_stand_in_any_order_and_rows_may_be_blank(path: Path) -> None:
    [row] = table_of(proposal())
    backwards = {name.upper(): row[name] for name in reversed(COLUMNS)}
    save(path, [dict.fromkeys(backwards, ""), backwards])
    assert [(each.place, each.id) for each in decided(path)] == [(f"{path}:3", 7)]


def test_a_file_saved_in_an_encoding_that_lost_characters_is_refused(path: Path) -> None:
    rows = table_of(proposal(replace(ASKED, text="Як це скинути?")))
    save(path, rows, encoding="cp1252")
    [fault] = faults(path)
    assert fault.startswith(f"{path}:2: mark is '?abc', not as it was exported: save the file as")


def test_a_file_that_is_not_utf_8_is_refused(path: Path) -> None:
    save(path, table_of(proposal(replace(ASKED, text="Où?"))), encoding="cp1252")
    with pytest.raises(InputError, match=r"proposals.csv:2: byte .* is not UTF-8"):
        list(read_decisions(path))


@pytest.mark.parametrize(("cells", "said"), [
    ({"decision": "yes"}, "decision is 'yes': accept, reject, change or nothing is needed"),
    ({"decision": "reject"}, "decision is reject: say why in the column reason"),
    ({"decision": "reject", "reason": "\u200b"}, "decision is reject: say why"),
    ({"id": "7.0"}, "id is '7.0': the number of a question is needed"),
    ({"id": ""}, "id is ''"),
    ({"mark": ""}, "mark is ''"),
    ({"question": " "}, "question is blank"),
    ({"question": "x" * 8_001}, "question is 8,001 characters long"),
    ({"expected": "a:0; a:0"}, "lists the key 'a:0' twice"),
    ({"expected": '{"a:0": 1.5}'}, "grade 1.5: an integer is needed"),
    ({"must_pass": "maybe"}, "must_pass is 'maybe': TRUE or FALSE is needed"),
    ({"category": "x" * 2_001}, "category is 2,001 bytes long"),
])  # fmt: skip
def test_a_wrong_cell_is_told_with_its_line(path: Path, cells: dict[str, str], said: str) -> None:
    [fault] = faults(edited(path, **cells))
    assert fault.startswith(f"{path}:2: ")
    assert said in fault


def test_faults_of_several_rows_are_all_told_and_the_others_read(path: Path) -> None:
    rows = table_of(proposal(), proposal(number=8), proposal(number=9))
    rows[0]["decision"], rows[2]["decision"] = "no", "maybe"
    save(path, rows)
    assert [each.id for each in decided(path)] == [8]
    assert [fault.partition(": ")[0] for fault in faults(path)] == [f"{path}:2", f"{path}:4"]


def test_a_row_that_is_cut_short_is_told(path: Path) -> None:
    edited(path)
    path.write_text(path.read_text() + "8,accept\n")
    assert faults(path) == [f"{path}:3: the row ends before the column reason"]


@pytest.mark.parametrize(("content", "said"), [
    ("", "proposals.csv:1: there is no column id"),
    ("id,decision\n", "proposals.csv:1: there is no column reason"),
    ("\0\0", "UTF-16, UTF-32 or a binary file"),
    ("version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
])  # fmt: skip
def test_what_is_no_such_table_is_refused(path: Path, content: str, said: str) -> None:
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        list(read_decisions(path))


def test_a_quote_that_is_never_closed_is_refused_where_it_opens(path: Path) -> None:
    edited(path)
    path.write_text(path.read_text() + '8,accept,"\n\n')
    with pytest.raises(InputError, match=r"proposals.csv:3: not a row of a CSV file"):
        list(read_decisions(path))


def test_a_row_shows_what_a_reviewer_decides_by() -> None:
    chunks = {"manual:3": "Hold the button.", "faq:0": "Ten seconds."}
    [row] = table_of(proposal(proposed={"faq:9": "near-duplicate"}, chunks=chunks))
    assert row["expected"] == "manual:3; faq:0=2"
    assert row["proposed_keys"] == "faq:9 (near-duplicate)"
    assert row["chunks"] == "[manual:3] Hold the button.\n\n[faq:0] Ten seconds."
    assert row["source"] == Source.MANUAL


@pytest.mark.parametrize("longest", [5_000, 10**6])
@pytest.mark.parametrize("how", [len, lambda text: len(text.encode("utf-16-le")) // 2])
def test_no_cell_is_longer_than_a_spreadsheet_holds(
    longest: int, how: Callable[[str], int]
) -> None:
    chunks = {f"d:{number}": "x" * longest for number in range(40)}
    [row] = table_of(proposal(chunks=chunks))
    assert how(row["chunks"]) <= LONGEST_CELL
    assert row["chunks"].startswith("[d:0] xxx")
