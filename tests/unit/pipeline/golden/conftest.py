"""A golden file of good and bad lines, and what reading it says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.jsonl import read_questions
from pipeline.types import Question

GOOD_LINE = b'{"question": "What is a tuple?", "expected": ["tuple.html:0"]}'

ReadLine = Callable[[object], Question]
Refusal = Callable[[object], str]


def _as_bytes(line: object) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line).encode()


@pytest.fixture
def golden_file(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


@pytest.fixture
def read_line(golden_file: Path) -> ReadLine:
    """Read a file of one line: its bytes, or a value to be written as JSON."""

    def read(line: object) -> Question:
        golden_file.write_bytes(_as_bytes(line) + b"\n")
        [(number, question)] = read_questions(golden_file)
        assert number == 1
        return question

    return read


@pytest.fixture
def refusal(golden_file: Path) -> Refusal:
    """Put a line after a good one and return the reason for which line 2 is refused."""

    def read(line: object) -> str:
        golden_file.write_bytes(GOOD_LINE + b"\n" + _as_bytes(line) + b"\n" + GOOD_LINE)
        numbered = read_questions(golden_file)
        assert next(numbered)[0] == 1
        with pytest.raises(InputError) as caught:
            next(numbered)
        message = str(caught.value)
        place = f"{golden_file}:2: "
        assert message.startswith(place)
        assert len(message.splitlines()) == 1
        return message.removeprefix(place)

    return read
