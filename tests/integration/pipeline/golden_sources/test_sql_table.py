"""Golden sets in a table of somebody's database."""

from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import ReadOptions, guess
from pipeline.golden_sources.sql_table import read
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.readers.conftest import Found

ISSUE = """
CREATE TABLE rag_eval_queries
    (question text, expected_keys jsonb, source text, active boolean, created_at date);
"""

Fill = Callable[[LiteralString], None]


@pytest.fixture
def fill(database: str) -> Fill:
    """Run statements in the database."""

    def run(statements: LiteralString) -> None:
        with psycopg.connect(database) as connection:
            connection.execute(statements)

    return run


def found_in(url: str, options: ReadOptions | None = None) -> Found:
    return Found(list(read(url, options=options or ReadOptions())))


def test_the_usual_table_is_read(database: str, fill: Fill) -> None:
    fill(
        ISSUE
        + """INSERT INTO rag_eval_queries VALUES
        ('Who?', '["a:0", "guide"]', 'manual', true), ('Why?', '{"a:0": 2}', 'Synthetic', true),
        ('Old?', '["a:0"]', 'log', false), ('Older?', '["a:0"]', 'log', NULL)"""
    )
    assert guess(database) == "sql"
    found = found_in(database)
    assert found.questions == [
        Question("Who?", {"a:0": 1, "guide:0": 1}),
        Question("Why?", {"a:0": 2}, source=Source.SYNTHETIC),
    ]
    assert "columns that were not read: created_at" in found.notices
    assert "2 rows are not active and were left out" in found.notices
    assert any("1 ids have no chunk index" in each for each in found.notices)


def test_all_fields_may_have_columns_and_the_id_is_the_external_one(
    database: str, fill: Fill
) -> None:
    fill("""CREATE SCHEMA mine; CREATE TABLE mine.golden (id bigint, question text,
        expected text[], category text, tenant text, must_pass boolean, kind text, notes text);
        INSERT INTO mine.golden VALUES
        (9007199254740993, 'Second?', '{b:0}', 'factual', 'acme', true, NULL, NULL),
        (2, 'First?', '{}', NULL, NULL, NULL, 'unanswerable', 'n')""")
    assert found_in(database, ReadOptions(table="mine.golden")).questions == [
        Question("First?", {}, kind=Kind.UNANSWERABLE, external_id="2", notes="n"),
        Question("Second?", {"b:0": 1}, category="factual", tenant="acme", must_pass=True,
                 external_id="9007199254740993"),
    ]  # fmt: skip


def test_a_row_that_cannot_be_used_is_refused_with_its_place(database: str, fill: Fill) -> None:
    fill(
        ISSUE
        + """INSERT INTO rag_eval_queries VALUES
        ('Who?', '["a:0"]', 'manual', true), (' ', '["a:0"]', NULL, true),
        ('Empty?', '[]', NULL, true), ('Null?', NULL, NULL, true),
        ('Half?', '{"a:0": 1.5}', NULL, true), ('Twice?', '["a", "a:0"]', NULL, true),
        ('Whence?', '["a:0"]', 'gpt', true)"""
    )
    found = found_in(database)
    assert [each.question.text for each in found.read] == ["Who?"]
    assert [reason.split(":")[1].strip() for reason in found.reasons] == [
        f"row {number}" for number in range(2, 8)
    ]
    reasons = "\n".join(found.reasons)
    for part in ("question is blank", "has the grade 1.5", "lists the key 'a:0' twice",
                 "source is 'gpt'", "rag_eval_queries: row 4: no key is expected"):  # fmt: skip
        assert part in reasons


def test_many_rows_come_in_their_order(database: str, fill: Fill) -> None:
    fill("""CREATE TABLE rag_eval_queries AS
        SELECT n AS id, 'Is it ' || n AS question, jsonb_build_array('a:' || n) AS expected_keys
        FROM generate_series(2500, 1, -1) n""")
    texts = [question.text for question in found_in(database).questions]
    assert texts == [f"Is it {n}" for n in range(1, 2501)]


@pytest.mark.parametrize(("table", "reason"), [
    ("absent", "the database holds no table absent: name another with --table"),
    ("bare", "table bare has no column expected: it has question"),
    ('"; DROP TABLE bare; --', "the database holds no table"),
])  # fmt: skip
def test_a_table_that_cannot_be_read_is_refused(
    database: str, fill: Fill, table: str, reason: str
) -> None:
    fill("CREATE TABLE bare (question text)")
    with pytest.raises(InputError, match=reason):
        found_in(database, ReadOptions(table=table))


def test_a_database_that_is_not_there_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="table rag_eval_queries cannot be read") as caught:
        found_in(f"postgresql://me:canary-9@/x?host={tmp_path}")
    assert "canary-9" not in str(caught.value)
    with pytest.raises(InputError, match="the database URL") as caught:
        found_in("postgresql://me:canary-9@a,b/x")
    assert "canary-9" not in str(caught.value)


def test_nothing_can_be_written_by_the_way(database: str, fill: Fill) -> None:
    fill("""CREATE TABLE rag_eval_queries (question text, expected_keys jsonb, hits int);
        CREATE FUNCTION counted() RETURNS text LANGUAGE sql AS
            'UPDATE rag_eval_queries SET hits = hits + 1 RETURNING question';
        INSERT INTO rag_eval_queries VALUES ('Who?', '["a:0"]', 0);
        CREATE VIEW sly AS SELECT counted() AS question, expected_keys FROM rag_eval_queries""")
    with pytest.raises(InputError, match="read-only transaction"):
        found_in(database, ReadOptions(table="sly"))
