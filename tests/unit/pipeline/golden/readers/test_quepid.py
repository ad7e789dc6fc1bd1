"""Quepid's ratings, in the three headers that it writes and reads."""

import json
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.types import Question
from tests.unit.pipeline.golden.readers.conftest import Found, found_in

BASIC = "query,docid,rating\n"


def read(folder: Path, content: str) -> Found:
    path = folder / "ratings.csv"
    path.write_text(content)
    return found_in("quepid", path)


def test_the_ratings_of_a_query_are_put_together_wherever_they_stand(tmp_path: Path) -> None:
    found = read(tmp_path, BASIC + "star wars,11,3\nrocky,22,1\nstar wars,12,0\n")
    assert found.questions == [
        Question("star wars", {"11:0": 3, "12:0": 0}), Question("rocky", {"22:0": 1}),
    ]  # fmt: skip
    assert [record.place.rpartition(":")[2] for record in found.read] == ["2", "3"]


def test_the_header_that_quepid_imports_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, "Query Text,Doc ID,Rating\nrocky,22,1\n")
    assert found.questions == [Question("rocky", {"22:0": 1})]


def test_the_detailed_export_is_read(tmp_path: Path) -> None:
    header = "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,overview\n"
    found = read(tmp_path, header + 'OSC,Movies,7,rocky,22,1,"Rocky, II",2,text\n')
    assert found.questions == [Question("rocky", {"22:0": 2})]


def test_what_nobody_rated_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, BASIC + "rocky,22,1\nrocky,23,\nalien\n")
    assert found.questions == [Question("rocky", {"22:0": 1})]
    assert "1 rows have no rating and were left out" in found.notices
    assert "1 questions have no judgment and were left out" in found.notices


def test_quepids_guard_of_a_formula_is_taken_off(tmp_path: Path) -> None:
    assert read(tmp_path, BASIC + " =1+1,22,1\n").questions == [Question("=1+1", {"22:0": 1})]


def test_a_fractional_rating_is_refused_with_its_line(tmp_path: Path) -> None:
    [reason] = read(tmp_path, BASIC + "rocky,22,1\nrocky,23,0.5\n").reasons
    assert "ratings.csv:3: '23:0': the grade is '0.5': an integer is needed" in reason


def test_a_document_that_is_rated_twice_unlike_is_refused(tmp_path: Path) -> None:
    [reason] = read(tmp_path, BASIC + "rocky,22,1\nrocky,22,2\n").reasons
    assert "ratings.csv:3: '22:0' has grade 2 here and 1 at line 2: keep one" in reason


def test_a_file_without_ratings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Quepid's columns are query, docid and rating"):
        read(tmp_path, "query,docid\nrocky,22\n")


@pytest.mark.parametrize("row", ["rocky,23,1,x", 'rocky,"23"x,1'])
def test_a_row_that_is_no_rating_refuses_its_query(tmp_path: Path, row: str) -> None:
    found = read(tmp_path, f"{BASIC}rocky,22,1\nalien,7,1\n{row}\n")
    assert [each.question.text for each in found.read] == ["alien"]
    assert [each.place.rpartition(":")[2] for each in found.refused] == ["4"]
    assert json.loads(found.refused[0].raw)["question"] == "rocky"


def test_a_delimiter_in_a_query_does_not_hide_which_query_it_is(tmp_path: Path) -> None:
    found = read(tmp_path, f'{BASIC}"rocky, II",22,1\nalien,7,1\nrocky, II,23,1\n')
    assert [each.question.text for each in found.read] == ["alien"]
    assert len(found.refused) == 1


def test_a_fault_of_a_query_that_nothing_else_names_is_refused_alone(tmp_path: Path) -> None:
    found = read(tmp_path, f"{BASIC}alien,7,1\nrocky, II,23,1\n")
    assert [each.question.text for each in found.read] == ["alien"]
    assert "ratings.csv:3: the row holds 4 cells, the header 3" in found.reasons[0]


def test_a_quotation_mark_that_takes_other_ratings_in_refuses_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ratings\.csv:2: .*3 lines were taken for one row"):
        read(tmp_path, f'{BASIC}"rocky,22,1\nalien,7,1\nalien,8,1\n')


def test_a_refused_query_can_be_imported_once_it_is_corrected(tmp_path: Path) -> None:
    [refused] = read(tmp_path, BASIC + "rocky,22,1\nrocky,23,0.5\n").refused
    again = tmp_path / "again.jsonl"
    again.write_text(refused.raw.replace("0.5", "0"))
    assert found_in("jsonl", again).questions == [Question("rocky", {"22:0": 1, "23:0": 0})]


def test_queries_without_a_relevant_document_are_said(tmp_path: Path) -> None:
    notices = read(tmp_path, BASIC + "rocky,22,0\nalien,7,1\n").notices
    assert "1 questions have judgments, but none of a relevant" in "".join(notices)
