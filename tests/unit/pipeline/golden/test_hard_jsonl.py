"""Files that people really have: each imports right, or is refused with line and reason."""

import gzip
import json
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import Read, ReadOptions, Record, Refused
from pipeline.golden.jsonl import read
from pipeline.types import Source
from tests.unit.pipeline.golden.conftest import GOOD_LINE


def records(file: Path) -> list[Record]:
    return list(read(str(file), options=ReadOptions()))


def only(file: Path, **fields: object) -> Record:
    """Read a file of one question with these fields."""
    file.write_text(json.dumps({"question": "Who?", "expected": ["a:0"]} | fields))
    [record] = records(file)
    return record


def taken(file: Path, **fields: object) -> Read:
    record = only(file, **fields)
    assert isinstance(record, Read), record
    return record


def reason(file: Path, **fields: object) -> str:
    record = only(file, **fields)
    assert isinstance(record, Refused), record
    return record.reason


def test_what_is_read_knows_its_place_and_its_line(golden_file: Path) -> None:
    golden_file.write_bytes(b"\n" + GOOD_LINE + b"\r\n")
    [record] = records(golden_file)
    assert isinstance(record, Read)
    assert (record.place, record.raw) == (f"{golden_file}:2", GOOD_LINE.decode() + "\r\n")


def test_a_bad_line_does_not_hide_the_lines_behind_it(golden_file: Path) -> None:
    bad = [b'{"question": "caf\xe9"}', b"{", b"[]", b'{"question": "Who?\\u0000"}']
    golden_file.write_bytes(b"\n".join([GOOD_LINE, *bad, GOOD_LINE]))
    found = records(golden_file)
    assert [isinstance(each, Refused) for each in found] == [False, *[True] * 4, False]
    refused = [each for each in found if isinstance(each, Refused)]
    assert [each.place for each in refused] == [f"{golden_file}:{line}" for line in range(2, 6)]
    assert [each.raw.encode(errors="surrogateescape").rstrip() for each in refused] == bad


@pytest.mark.parametrize(
    "key",
    [
        "a b c:0", "a,b:0", "a#b:0", "a::b:0", "::0", "https://a.example:80/b?c=d,e#f:7",
        "9007199254740993:0", "0:0", 'Straße 1; "x"\t|y:3',
    ],
)  # fmt: skip
def test_a_key_is_taken_as_it_is(golden_file: Path, key: str) -> None:
    assert taken(golden_file, expected=[key]).question.expected == {key: 1}


@pytest.mark.parametrize("key", ["a", "a:", ":0", " :0", "a:-1", "a:01", "a:1.0", "a:b", "", None])
def test_what_is_no_key_is_refused(golden_file: Path, key: object) -> None:
    assert "expected key" in reason(golden_file, expected=[key])


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        (9007199254740993, "9007199254740993"), (10**30, str(10**30)), (0, "0"), ("0", "0"),
        ("a b,c#d::e", "a b,c#d::e"), ("https://a.example/b", "https://a.example/b"),
    ],
)  # fmt: skip
def test_an_id_is_taken_digit_by_digit(golden_file: Path, stated: object, name: str) -> None:
    assert taken(golden_file, external_id=stated).question.external_id == name


@pytest.mark.parametrize("stated", [1.0, 9.007199254740993e15, True, [], " ", ""])
def test_what_is_no_id_is_refused(golden_file: Path, stated: object) -> None:
    assert reason(golden_file, external_id=stated).startswith("external_id is ")


def test_0_may_be_the_id_of_question_and_document(golden_file: Path) -> None:
    question = taken(golden_file, external_id="0", expected=["0:0"]).question
    assert (question.external_id, question.expected) == ("0", {"0:0": 1})


@pytest.mark.parametrize(
    "text", ["\ufeffWho?", "W\u200bho?", "Ola\u0301?", " Who?\u00a0", "x" * 8_000]
)
def test_a_text_is_kept_character_by_character(golden_file: Path, text: str) -> None:
    assert taken(golden_file, question=text).question.text == text


@pytest.mark.parametrize("text", ["", " \t", "\ufeff\u200b", "\u00a0"])
def test_a_blank_question_is_refused(golden_file: Path, text: str) -> None:
    assert reason(golden_file, question=text) == "question is blank"


def test_a_question_of_more_than_8000_characters_is_refused(golden_file: Path) -> None:
    assert reason(golden_file, question="x" * 8_001).startswith("question is 8,001 characters long")


@pytest.mark.parametrize("grade", [None, 0.5, "1", True, [1], 1e300])
def test_a_grade_that_is_no_integer_is_refused(golden_file: Path, grade: object) -> None:
    said = reason(golden_file, expected={"a:0": grade})
    assert "an integer is needed" in said or "a grade outside of" in said


def test_a_grade_may_be_written_as_tables_of_numbers_do(golden_file: Path) -> None:
    question = taken(golden_file, expected={"a:0": 2.0, "b:0": -0.0}).question
    assert question.expected == {"a:0": 2, "b:0": 0}
    assert all(type(grade) is int for grade in question.expected.values())


@pytest.mark.parametrize("grade", [-1, 0])
def test_a_grade_below_1_says_judged_and_not_relevant(golden_file: Path, grade: int) -> None:
    expected = {"a:0": grade, "b:0": 2}
    assert taken(golden_file, expected=expected).question.expected == expected


@pytest.mark.parametrize("kind", [{}, {"kind": "answerable"}])
def test_an_empty_list_is_refused_for_a_question_with_an_answer(
    golden_file: Path, kind: dict[str, str]
) -> None:
    assert "kind is unanswerable" in reason(golden_file, expected=[], **kind)


def test_an_empty_list_is_taken_for_an_unanswerable_question(golden_file: Path) -> None:
    assert taken(golden_file, expected=[], kind="unanswerable").question.expected == {}


def test_a_git_lfs_pointer_named_json_is_told(tmp_path: Path) -> None:
    pointer = tmp_path / "golden.json"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(
        InputError, match=r"golden\.json:1: this is a Git LFS pointer.*git lfs pull"
    ):
        records(pointer)


def test_a_gzip_file_named_jsonl_is_read(golden_file: Path) -> None:
    golden_file.write_bytes(gzip.compress(GOOD_LINE + b"\n" + GOOD_LINE))
    assert [each.place for each in records(golden_file) if isinstance(each, Read)] == [
        f"{golden_file}:1",
        f"{golden_file}:2",
    ]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\t", gzip.compress(b"", mtime=0)])
def test_an_empty_file_holds_no_record(golden_file: Path, content: bytes) -> None:
    golden_file.write_bytes(content)
    assert records(golden_file) == []


@pytest.mark.parametrize(
    "content", [GOOD_LINE.decode().encode("utf-16"), b"PK\x03\x04\x00\x00", b"\x89PNG\0"]
)
def test_another_kind_of_file_is_told_at_once(golden_file: Path, content: bytes) -> None:
    golden_file.write_bytes(content)
    with pytest.raises(InputError, match="UTF-16, UTF-32 or a binary file"):
        records(golden_file)


def test_lines_of_old_macs_are_lines(golden_file: Path) -> None:
    golden_file.write_bytes(b"\r".join([GOOD_LINE, b"{", GOOD_LINE]))
    places = [each.place for each in records(golden_file) if isinstance(each, Read | Refused)]
    assert places == [f"{golden_file}:{line}" for line in (1, 2, 3)]


def test_what_is_refused_says_which_question_it_is(golden_file: Path) -> None:
    record = only(golden_file, question="Who?", tenant="acme", external_id=7, expected=[])
    assert isinstance(record, Refused)
    assert (record.text, record.tenant, record.external_id) == ("Who?", "acme", "7")


def test_a_person_may_say_the_source_of_all(golden_file: Path) -> None:
    golden_file.write_text('{"question": "Who?", "expected": ["a:0"], "source": "gpt-4"}')
    [refused] = records(golden_file)
    assert isinstance(refused, Refused)
    assert "one of manual, synthetic, log; golden import --source says one" in refused.reason
    [record] = read(str(golden_file), options=ReadOptions(origin=Source.SYNTHETIC))
    assert isinstance(record, Read)
    assert record.question.source is Source.SYNTHETIC


def test_options_of_other_formats_are_refused(golden_file: Path) -> None:
    golden_file.write_bytes(GOOD_LINE)
    with pytest.raises(InputError, match="--qrels"):
        list(read(str(golden_file), options=ReadOptions(qrels=Path("qrels.tsv"))))
