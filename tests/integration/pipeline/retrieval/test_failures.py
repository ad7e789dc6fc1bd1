"""What a retriever raises when the database does not play along, and what it leaves behind."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pipeline.corpus.table import CorpusTable
from pipeline.errors import CorpusError, RecallwatchError, TransientError
from pipeline.retrieval import session as session_module
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import BUILT_IN, FulltextStrategy, Strategy, VectorStrategy
from pipeline.retrieval.tree import StrategyTree, tree_of
from pipeline.types import Failure, QueryBatch
from tests.integration.pipeline.retrieval.corpora import (
    Passage,
    clustered,
    fill,
    questions,
    ranked,
)

Connection = psycopg.Connection[Any]

EACH = pytest.mark.parametrize("name", ["vector", "fulltext"])


def batch(count: int = 3) -> QueryBatch:
    asked = questions(vectors=clustered(count, 4), texts=["some words"] * count)
    return QueryBatch(asked.texts, asked.tenants, asked.languages, asked.vectors)


@pytest.fixture
def table(conn: Connection) -> CorpusTable:
    vectors = clustered(10, 4)
    return fill(conn, [Passage("a", n, "some words", "x", v) for n, v in enumerate(vectors)])


def ask(conn: Connection, table: CorpusTable, name: str) -> list[Any]:
    session = CorpusSession(conn, table, text_config="english")
    return build(tree_of(name, BUILT_IN), Resources(session)).retrieve(batch(), 5)


@EACH
def test_a_lost_connection_is_transient_and_names_the_database_without_the_password(
    database: str, table: CorpusTable, name: str
) -> None:
    secret = make_conninfo(database, password="swordfish")
    with psycopg.connect(secret, autocommit=True) as own:
        retriever = build(tree_of(name, BUILT_IN), Resources(CorpusSession(own, table)))
        assert len(ranked(retriever.retrieve(batch(), 5))) == 3
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [own.info.backend_pid])
        with pytest.raises(TransientError) as lost:
            retriever.retrieve(batch(), 5)
        with pytest.raises(TransientError) as closed:
            retriever.retrieve(batch(), 5)
    for raised in (lost, closed):
        text = str(raised.value)
        assert "could not search public.Passages in database t_" in text
        assert "swordfish" not in text
        assert "\n" not in text


@EACH
def test_a_connection_that_is_closed_before_a_retriever_is_built_is_transient(
    database: str, table: CorpusTable, name: str
) -> None:
    own = psycopg.connect(database, autocommit=True)
    own.close()
    with pytest.raises(TransientError, match="connection is closed"):
        ask(own, table, name)


@EACH
def test_a_table_that_is_gone_is_the_corpus_owners_to_mend(
    conn: Connection, table: CorpusTable, name: str
) -> None:
    conn.execute('DROP TABLE "Passages"')
    with pytest.raises(CorpusError, match=r'relation "public.Passages" does not exist'):
        ask(conn, table, name)


@EACH
def test_a_column_that_is_gone_is_named(conn: Connection, table: CorpusTable, name: str) -> None:
    conn.execute('ALTER TABLE "Passages" RENAME doc TO document')
    with pytest.raises(CorpusError, match=r"column c\.doc does not exist"):
        ask(conn, table, name)


@EACH
def test_a_role_that_may_not_read_the_corpus_is_told_so(
    database: str, conn: Connection, table: CorpusTable, name: str
) -> None:
    conn.execute("CREATE ROLE recallwatch_test_reader")
    try:
        with psycopg.connect(database, autocommit=True) as own:
            own.execute("SET ROLE recallwatch_test_reader")
            with pytest.raises(CorpusError, match="permission denied for table Passages"):
                ask(own, table, name)
    finally:
        conn.execute("DROP ROLE recallwatch_test_reader")


def restricted(conn: Connection, table: CorpusTable, condition: str) -> CorpusTable:
    """Make a view of the chunks for which a condition holds."""
    view = f'CREATE VIEW seen AS SELECT * FROM "Passages" WHERE {condition}'  # noqa: S608 - ours
    conn.execute(view.encode())
    return replace(table, name="seen")


@EACH
def test_searches_run_in_a_read_only_transaction(
    conn: Connection, table: CorpusTable, name: str
) -> None:
    view = restricted(conn, table, "current_setting('transaction_read_only')::bool")
    assert [len(answer.keys) for answer in ranked(ask(conn, view, name))] == [5, 5, 5]


@pytest.mark.parametrize("strategy", [VectorStrategy(), FulltextStrategy(max_document_frequency=1)])
def test_a_search_that_takes_too_long_is_its_own_questions_failure(
    conn: Connection, table: CorpusTable, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_LEAST_TIMEOUT", 0.2)
    conn.execute("""UPDATE "Passages" SET customer = 'slow' WHERE "Part" = 9""")
    view = restricted(conn, table, "customer <> 'slow' OR pg_sleep(30) IS NOT NULL")
    session = CorpusSession(conn, view, text_config="english", statement_timeout=0.2)
    asked = batch()
    tenants = QueryBatch(asked.texts, ["x", "slow", "x"], asked.languages, asked.vectors)
    first, slow, last = build(StrategyTree("slow", strategy), Resources(session)).retrieve(
        tenants, 5
    )
    assert slow == Failure("the search ran into its time limit")
    assert [len(answer.keys) for answer in ranked([first, last])] == [5, 5]


def test_a_database_that_is_slow_for_all_ends_the_batch_as_transient(
    conn: Connection, table: CorpusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_LEAST_TIMEOUT", 0.02)
    view = restricted(conn, table, "pg_sleep(30) IS NOT NULL")
    session = CorpusSession(conn, view, statement_timeout=0.02)
    retriever = build(StrategyTree("vector", VectorStrategy()), Resources(session))
    with pytest.raises(TransientError, match="look for a missing index"):
        retriever.retrieve(batch(64), 5)


def test_counting_words_that_takes_too_long_is_transient(
    conn: Connection, table: CorpusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_LEAST_TIMEOUT", 0.02)
    view = restricted(conn, table, "pg_sleep(30) IS NOT NULL")
    session = CorpusSession(conn, view, text_config="english", statement_timeout=0.02)
    with pytest.raises(TransientError, match="statement timeout"):
        build(
            StrategyTree("fulltext", FulltextStrategy(min_frequent=0)), Resources(session)
        ).retrieve(batch(), 5)


@EACH
def test_after_an_error_the_connection_serves_the_next_batch(
    conn: Connection, table: CorpusTable, name: str
) -> None:
    conn.execute('ALTER TABLE "Passages" RENAME doc TO document')
    with pytest.raises(RecallwatchError):
        ask(conn, table, name)
    conn.execute('ALTER TABLE "Passages" RENAME document TO doc')
    assert [len(answer.keys) for answer in ranked(ask(conn, table, name))] == [5, 5, 5]
