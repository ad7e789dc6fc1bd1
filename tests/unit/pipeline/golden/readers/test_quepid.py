"""Quepid's ratings, in the three headers that it writes and reads."""

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
