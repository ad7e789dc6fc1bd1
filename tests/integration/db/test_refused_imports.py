"""A golden set that is refused at its last line leaves the database as it was."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from db import golden
from db.golden_import import import_questions
from db.session import Database
from pipeline.errors import InputError
from pipeline.golden.formats import ReadOptions
from pipeline.golden.jsonl import read
from pipeline.golden.staging import staged
from pipeline.types import Question
from tests.integration.db.building import import_set

GOOD = "".join(
    json.dumps({"question": f"Is it {n}?", "expected": {f"a:{n}": 1}}) + "\n" for n in range(1200)
).encode()

HARD = {
    "cut short": b'{"question": "Is it',
    "NUL": b'{"question": "a\\u0000b", "expected": {"a:0": 1}}',
    "half a surrogate pair": b'{"question": "\\ud800", "expected": {"a:0": 1}}',
    "nested too deeply": b'{"a":' * 5000,
    "a huge integer": b'{"question": "a", "expected": {"a:0": ' + b"9" * 5000 + b"}}",
    "a huge grade": b'{"question": "a", "expected": {"a:0": 99999999999}}',
    "a key twice": b'{"question": "a", "expected": {"a:0": 1, "a:0": 2}}',
    "no number": b'{"question": "a", "expected": {"a:0": NaN}}',
    "infinite": b'{"question": "a", "expected": {"a:0": 1e400}}',
    "Latin-1": b'{"question": "caf\xe9", "expected": {"a:0": 1}}',
    "a long question": json.dumps({"question": "a" * 8001, "expected": {"a:0": 1}}).encode(),
    "many keys": json.dumps(
        {"question": "a", "expected": [f"a:{n}" for n in range(10_001)]}
    ).encode(),
    "a long key": json.dumps({"question": "a", "expected": {"a" * 2001 + ":0": 1}}).encode(),
    "a long line": b" " * (16 * 2**20 + 1),
}


@pytest.fixture
def stored(db: Database) -> list[Any]:
    """Give all rows of a set that is there already."""
    import_set(db, [Question("Is it 3?", {"b:0": 1}), Question("Older?", {"b:1": 1})], "mine")
    return rows(db)


def rows(db: Database) -> list[Any]:
    with db.begin() as session:
        return [
            row
            for table in ("question", "judgment", "golden_version", "golden_item")
            for row in session.execute(
                text(f"SELECT t::text FROM recallwatch.{table} AS t ORDER BY 1")  # noqa: S608 - ours
            ).scalars()
        ]


def refusal(db: Database, file: Path) -> str:
    records = read(str(file), options=ReadOptions())
    with (
        pytest.raises(InputError) as caught,
        staged(str(file), records) as plan,
        db.begin() as session,
    ):
        import_questions(session, "mine", plan.questions(), replace=True)
    return str(caught.value)


@pytest.mark.parametrize("name", HARD)
def test_a_hard_last_line_is_refused_and_nothing_of_the_file_is_kept(
    db: Database, stored: list[Any], tmp_path: Path, name: str
) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_bytes(GOOD + HARD[name])
    assert refusal(db, file).startswith(f"{file}:1201: ")
    assert rows(db) == stored


def test_a_packed_file_that_is_cut_short_is_refused_and_nothing_of_it_is_kept(
    db: Database, stored: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "golden.jsonl.gz"
    file.write_bytes(gzip.compress(GOOD)[:-20])
    assert "cut short or damaged" in refusal(db, file)
    assert rows(db) == stored


def test_a_set_of_too_many_questions_gets_no_version(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_set(db, [Question(f"Is it {n}?", {"a:0": 1}) for n in range(4)], "large")
    monkeypatch.setattr("pipeline.golden.duplicates.MAX_QUESTIONS", 3)
    said = "golden set 'large': holds more than 3 questions"
    with pytest.raises(InputError, match=said), db.begin() as session:
        golden.snapshot(session, "large")
