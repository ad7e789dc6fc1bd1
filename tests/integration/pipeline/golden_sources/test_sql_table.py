"""Golden sets in a table of somebody's database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from pipeline.errors import InputError
from pipeline.golden.formats import ReadOptions, guess
from pipeline.golden.jsonl import read as read_lines
from pipeline.golden.staging import staged
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


@pytest.mark.parametrize(("kind", "yes", "no"), [
    ("boolean", "true", "false"), ("integer", "1", "0"), ("text", "' Yes'", "'f'"),
    ("text", "'true'", "'0'"), ("numeric", "1", "0"),
])  # fmt: skip
def test_active_may_have_any_type_that_says_yes_and_no(
    database: str, kind: LiteralString, yes: LiteralString, no: LiteralString
) -> None:
    rows = sql.SQL("""CREATE TABLE rag_eval_queries
        (question text, expected_keys jsonb, active {kind});
        INSERT INTO rag_eval_queries VALUES ('Who?', '["a:0"]', {yes}),
        ('Old?', '["a:0"]', {no}), ('Older?', '["a:0"]', NULL)""")
    with psycopg.connect(database) as connection:
        connection.execute(rows.format(kind=sql.SQL(kind), yes=sql.SQL(yes), no=sql.SQL(no)))
    found = found_in(database)
    assert [question.text for question in found.questions] == ["Who?"]
    assert found.notices == ["2 rows are not active and were left out"]


def test_what_active_cannot_say_refuses_its_row(database: str, fill: Fill) -> None:
    fill("""CREATE TABLE rag_eval_queries (question text, expected_keys jsonb, active text,
        must_pass integer); INSERT INTO rag_eval_queries VALUES
        ('Who?', '["a:0"]', 'perhaps', 0), ('Why?', '["a:0"]', 'yes', 1),
        ('When?', '["a:0"]', 'yes', 7), ('Old?', 'null', 'no', 7)""")
    found = found_in(database)
    assert [each.question.must_pass for each in found.read] == [True]
    assert [reason.partition(": ")[2] for reason in found.reasons] == [
        "row 1: active is 'perhaps': TRUE or FALSE is needed",
        "row 3: must_pass is '7': TRUE or FALSE is needed",
    ]
    assert "active" not in json.loads(found.refused[0].raw)


def test_a_table_without_an_active_row_says_so(database: str, fill: Fill) -> None:
    fill(ISSUE)
    fill("INSERT INTO rag_eval_queries VALUES ('Old?', '[\"a:0\"]', NULL, false)")
    with (
        pytest.raises(InputError, match=r"holds no question; .*; 1 rows are not active"),
        staged("db", read(database, options=ReadOptions())),
    ):
        pass


def test_a_refused_row_can_be_imported_once_it_is_corrected(
    database: str, fill: Fill, tmp_path: Path
) -> None:
    fill("""CREATE TABLE rag_eval_queries (question text, expected_keys text, source text);
        INSERT INTO rag_eval_queries VALUES ('Who?', 'MED-10; guide:3=2', 'gpt'),
        ('Why?', '["MED-10"]', 'gpt'), ('When?', 'x', 'gpt')""")
    file = tmp_path / "refused.jsonl"
    file.write_text("".join(each.raw for each in found_in(database).refused).replace("gpt", "log"))
    assert [question.expected for question in found_in_file(file).questions] == [
        {"MED-10:0": 1, "guide:3": 2}, {"MED-10:0": 1}, {"x:0": 1},
    ]  # fmt: skip


def found_in_file(path: Path) -> Found:
    return Found(list(read_lines(str(path), options=ReadOptions())))


def test_a_list_that_names_one_chunk_twice_keeps_its_keys(database: str, fill: Fill) -> None:
    fill(ISSUE)
    fill("INSERT INTO rag_eval_queries VALUES ('Who?', '[\"a\", \"a:0\"]', 'log', true)")
    [refused] = found_in(database).refused
    assert json.loads(refused.raw)["expected"] == ["a:0", "a:0"]


def test_a_person_may_say_the_source_of_all(database: str, fill: Fill) -> None:
    fill(ISSUE)
    fill("INSERT INTO rag_eval_queries VALUES ('Who?', '[\"a:0\"]', 'gpt-4', true)")
    [reason] = found_in(database).reasons
    assert "source is 'gpt-4'" in reason
    assert "golden import --source" in reason
    [question] = found_in(database, ReadOptions(origin=Source.SYNTHETIC)).questions
    assert question.source is Source.SYNTHETIC


@pytest.mark.parametrize("scheme", ["postgres", "postgresql+psycopg", "POSTGRESQL"])
def test_a_database_may_be_named_as_sqlalchemy_does(database: str, fill: Fill, scheme: str) -> None:
    fill(ISSUE)
    fill("INSERT INTO rag_eval_queries VALUES ('Who?', '[\"a:0\"]', 'log', true)")
    assert len(found_in(f"{scheme}://{database.partition('://')[2]}").questions) == 1


def test_what_is_no_url_is_refused_without_its_password() -> None:
    with pytest.raises(InputError, match="a database is named by its URL") as caught:
        found_in("host=localhost password='canary 9'")
    assert "canary" not in str(caught.value)


def test_names_of_columns_cannot_reach_a_terminal(database: str, fill: Fill) -> None:
    fill("""CREATE TABLE rag_eval_queries
        (question text, expected_keys jsonb, U&"a\\001B[31m\\000Ab" int);
        INSERT INTO rag_eval_queries VALUES ('Who?', '["a:0"]', 1)""")
    assert "columns that were not read: 'a\\x1b[31m\\nb'" in found_in(database).notices


def test_a_number_of_too_many_digits_is_told(database: str, fill: Fill) -> None:
    fill("""CREATE TABLE rag_eval_queries AS SELECT 'Who?' AS question,
        ('{"a:0": 1' || repeat('0', 5000) || '}')::jsonb AS expected_keys""")
    with pytest.raises(InputError, match="table rag_eval_queries cannot be read"):
        found_in(database)
