import gzip
import json
import re
import tracemalloc
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.golden.jsonl import read_questions, write_questions
from pipeline.golden.record import FIELDS
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.conftest import GOOD_LINE, ReadLine, Refusal
from tests.unit.pipeline.golden.strategies import TEXT, patiently, questions


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one file that every example of a property overwrites."""
    return tmp_path_factory.mktemp("golden") / "scratch.jsonl"


def written(golden: list[Question]) -> bytes:
    stream = BytesIO()
    write_questions(golden, stream)
    return stream.getvalue()


@patiently
@given(golden=st.lists(questions(evidence=True), min_size=1, max_size=4), packed=st.booleans())
def test_what_is_written_is_read_back_equal(
    scratch: Path, golden: list[Question], packed: bool
) -> None:
    content = written(golden)
    assert content.count(b"\n") == len(golden)
    scratch.write_bytes(gzip.compress(content) if packed else content)
    assert list(read_questions(scratch)) == list(enumerate(golden, start=1))


def test_the_order_of_the_expected_keys_is_written_and_read_back(golden_file: Path) -> None:
    expected = {"b:0": 1, "a:0": 2, "c:0": 1}
    golden_file.write_bytes(written([Question(text="Who?", expected=expected)]))
    [(_, question)] = read_questions(golden_file)
    assert list(question.expected) == ["b:0", "a:0", "c:0"]


def test_fields_at_their_defaults_are_not_written() -> None:
    plain = Question(text="Onde está?", expected={"a:0": 1})
    assert written([plain]).decode() == '{"question": "Onde está?", "expected": {"a:0": 1}}\n'


def test_every_other_field_is_written_under_its_name() -> None:
    full = Question(
        text="Who?",
        expected={"a:0": 0},
        kind=Kind.UNANSWERABLE,
        category="factual",
        tenant="acme",
        language="en",
        source=Source.LOG,
        must_pass=True,
        external_id="17",
        notes="",
        evidence={"a:0": "Not me."},
    )
    assert json.loads(written([full])) == {
        "question": "Who?",
        "expected": {"a:0": 0},
        "kind": "unanswerable",
        "category": "factual",
        "tenant": "acme",
        "language": "en",
        "source": "log",
        "must_pass": True,
        "external_id": "17",
        "notes": "",
        "evidence": {"a:0": "Not me."},
    }


def test_nothing_is_written_for_no_question() -> None:
    assert written([]) == b""


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"\xef\xbb\xbf\n", gzip.compress(b"\n", mtime=0)]
)
def test_a_file_without_a_question_is_refused(golden_file: Path, content: bytes) -> None:
    golden_file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(read_questions(golden_file))
    assert str(caught.value) == f"{golden_file}: holds no question"


@pytest.mark.parametrize(
    "content",
    [
        GOOD_LINE,
        b"\xef\xbb\xbf" + GOOD_LINE + b"\n",
        GOOD_LINE + b"\r\n",
        b"  \t" + GOOD_LINE + b"  \n\n",
        gzip.compress(GOOD_LINE, mtime=0),
    ],
    ids=["no newline", "byte order mark", "windows", "blanks", "gzip"],
)
def test_a_question_is_read_from_any_ordinary_file(golden_file: Path, content: bytes) -> None:
    golden_file.write_bytes(content)
    question = Question(text="What is a tuple?", expected={"tuple.html:0": 1})
    assert list(read_questions(golden_file)) == [(1, question)]


def test_blank_lines_count_in_the_line_numbers(golden_file: Path) -> None:
    golden_file.write_bytes(b"\n" + GOOD_LINE + b"\n\n" + GOOD_LINE + b"\n\n{]\n")
    numbered = read_questions(golden_file)
    assert [next(numbered)[0], next(numbered)[0]] == [2, 4]
    with pytest.raises(InputError, match=f"{re.escape(str(golden_file))}:6: invalid JSON"):
        next(numbered)


@pytest.mark.parametrize(
    ("line", "column", "fault"),
    [
        (b'{"question": "Who?" "expected": {}}', 21, "Expecting ',' delimiter"),
        (b'   {"question": }', 17, "Expecting value"),
        (b'{"question": "Who?"', 20, "Expecting ',' delimiter"),
        (b'{"question": "Who?"} {}', 22, "Extra data"),
        (b"{'question': 'Who?'}", 2, "Expecting property name enclosed in double quotes"),
        (b'{"question": "a\tb"}', 16, "Invalid control character at"),
        ('{"question": "é" x'.encode(), 18, "Expecting ',' delimiter"),
        (b"question,expected", 1, "Expecting value"),
        (b"\xef\xbb\xbf{}", 1, "Expecting value"),
    ],
)
def test_invalid_json_is_refused_with_its_column(
    refusal: Refusal, line: bytes, column: int, fault: str
) -> None:
    assert refusal(line) == (
        f"invalid JSON at column {column}: {fault} (each line is one JSON object)"
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"[]", "an array"),
        (b'"Who?"', "'Who?'"),
        (b"null", "null"),
        (b"17", "17"),
        (b"true", "true"),
    ],
)
def test_a_line_that_is_not_an_object_is_refused(refusal: Refusal, line: bytes, shown: str) -> None:
    assert refusal(line) == f"the line is {shown}: each line is one JSON object"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"question": "Who?", "expected": {"a:0": 1, "b:0": 1, "a:0": 2}}', "a:0"),
        (b'{"question": "Who?", "question": "Who?", "expected": {}}', "question"),
        (b'{"question": "Who?", "expected": {"a:0": 1, "\\u0061:0": 1}}', "a:0"),
    ],
)
def test_a_name_that_stands_twice_in_one_object_is_refused(
    refusal: Refusal, line: bytes, name: str
) -> None:
    assert refusal(line) == f"'{name}' stands twice in one object: keep one"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_json_does_not_have_is_refused(refusal: Refusal, constant: str) -> None:
    line = f'{{"question": "Who?", "expected": {{"a:0": {constant}}}}}'.encode()
    assert refusal(line) == f"{constant} is not JSON: write a number"


def test_a_number_that_overflows_to_infinity_is_refused_as_a_grade(refusal: Refusal) -> None:
    line = b'{"question": "Who?", "expected": {"a:0": 1e999}}'
    assert refusal(line).startswith("expected key 'a:0' has the grade Infinity: an integer")


def test_a_number_of_endless_digits_is_refused(refusal: Refusal) -> None:
    line = b'{"question": "Who?", "expected": {"a:0": ' + b"9" * 5_000 + b"}}"
    assert refusal(line) == "the JSON holds a number with too many digits"


def test_json_nested_without_end_is_refused(refusal: Refusal) -> None:
    assert refusal(b'{"question": ' + b"[" * 200_000) == "the JSON is nested too deeply"


def test_an_escaped_surrogate_pair_is_one_character(read_line: ReadLine) -> None:
    line = b'{"question": "\\ud83d\\ude00?", "expected": {}}'
    assert read_line(line).text == "\U0001f600?"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=6).map(
    lambda fields: {"question": "Who?", "expected": {}} | fields
)
LINES = (
    st.binary(max_size=40)
    | (JSON_VALUES | OBJECTS).map(json.dumps).map(str.encode)
    | questions().map(lambda question: written([question]))
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw bytes a file may hold: noise, nearly golden lines, cut, packed, or packed and cut."""
    content = b"\n".join(draw(st.lists(LINES, max_size=4)))
    packed = gzip.compress(content) if draw(st.booleans()) else content
    return packed[: draw(st.integers(0, len(packed)))] if draw(st.booleans()) else packed


@settings(patiently, max_examples=200)
@given(content=files())
def test_any_file_gives_questions_or_a_refusal_in_one_line(scratch: Path, content: bytes) -> None:
    scratch.write_bytes(content)
    try:
        numbered = list(read_questions(scratch))
    except InputError as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        assert re.match(rf"{re.escape(str(scratch))}(:\d+)?: \S", message)
    else:
        assert numbered
        scratch.write_bytes(written([question for _, question in numbered]))
        assert [question for _, question in read_questions(scratch)] == [
            question for _, question in numbered
        ]


def test_reading_a_large_file_takes_flat_memory(golden_file: Path) -> None:
    count = 10_000
    with gzip.open(golden_file, "wb", compresslevel=1) as file:
        for number in range(count):
            line = {"question": f"What is the number {number}?", "expected": [f"d{number}:0"]}
            file.write(json.dumps(line).encode() + b"\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_questions(golden_file)) == count
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000
