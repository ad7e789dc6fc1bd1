"""Vector search through an HNSW index: that it is used, as deep as asked, and stays the same."""

from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.vector import VectorRetriever
from pipeline.retrieval.vector_arrays import VectorArray
from tests.integration.pipeline.retrieval.corpora import (
    Passage,
    clustered,
    fill,
    plan,
    questions,
    ranked,
    with_vectors,
)

Connection = psycopg.Connection[Any]

CUSTOMERS = ["large"] * 7 + ["small", None, None]


@pytest.fixture
def session(conn: Connection) -> CorpusSession:
    """A corpus of 4,000 chunks behind an HNSW index; two tenants."""
    passages = with_vectors(clustered(4000, 16), CUSTOMERS)
    return CorpusSession(conn, fill(conn, passages, hnsw=16))


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (10, 100), (40, 250)])
def test_the_index_serves_the_order_inside_the_lateral_join(
    session: CorpusSession, limit: int, count: int
) -> None:
    retriever = VectorRetriever(session, VectorStrategy())
    parameters = {"vectors": VectorArray(clustered(count, 16))}
    text = plan(session, retriever.statement(limit), parameters, retriever.planner_settings(limit))
    assert 'Index Scan using "Passages_vec"' in text
    assert "Order By: (vec <=> question.vector)" in text
    assert "Seq Scan" not in text


def test_answers_come_from_the_index_as_a_plain_search_gets_them(session: CorpusSession) -> None:
    """The oracle: pgvector's documented query, one question at a time."""
    asked = clustered(60, 16, seed=5)
    retriever = VectorRetriever(session, VectorStrategy(ef_search=12))
    answers = ranked(retriever.retrieve(questions(vectors=asked), 10))
    session.conn.execute("SET hnsw.ef_search = 12")
    session.conn.execute("SET enable_seqscan = off")
    for question, answer in zip(asked, answers, strict=True):
        literal = str(question.tolist())
        rows = session.conn.execute(
            """SELECT doc || ':' || "Part", 1 - (vec <=> %s::vector) FROM "Passages"
               ORDER BY vec <=> %s::vector LIMIT 10""",
            [literal, literal],
        ).fetchall()
        assert answer.keys == [key for key, _ in rows]
        assert answer.scores == [score for _, score in rows]


@pytest.mark.parametrize(("ef_search", "limit"), [(40, 100), (1, 30), (40, 1000)])
def test_ef_search_is_raised_to_the_limit_so_that_no_row_is_missing(
    session: CorpusSession, ef_search: int, limit: int
) -> None:
    retriever = VectorRetriever(session, VectorStrategy(ef_search=ef_search))
    answers = ranked(retriever.retrieve(questions(vectors=clustered(5, 16, seed=6)), limit))
    assert [len(answer.keys) for answer in answers] == [limit] * 5


def test_ef_search_counts_from_a_connections_first_search_on(
    database: str, session: CorpusSession
) -> None:
    """The server loads pgvector, and with it its settings, when it first meets a vector."""
    with psycopg.connect(database, autocommit=True) as fresh:
        retriever = VectorRetriever(CorpusSession(fresh, session.table), VectorStrategy())
        answers = ranked(retriever.retrieve(questions(vectors=clustered(5, 16, seed=6)), 300))
    assert [len(answer.keys) for answer in answers] == [300] * 5


def test_a_limit_above_the_largest_ef_search_is_filled_by_scanning_on(
    session: CorpusSession,
) -> None:
    retriever = VectorRetriever(session, VectorStrategy())
    assert retriever.planner_settings(1500)["hnsw.ef_search"] == "1000"
    answers = ranked(retriever.retrieve(questions(vectors=clustered(2, 16, seed=6)), 1500))
    assert [len(answer.keys) for answer in answers] == [1500, 1500]


def test_a_higher_ef_search_finds_more(session: CorpusSession) -> None:
    asked = questions(vectors=clustered(100, 16, seed=7))
    exact, low, high = (
        ranked(VectorRetriever(session, strategy).retrieve(asked, 10))
        for strategy in (
            VectorStrategy(exact=True),
            VectorStrategy(ef_search=1),
            VectorStrategy(ef_search=200),
        )
    )
    found = [
        sum(len(set(a.keys) & set(b.keys)) for a, b in zip(exact, served, strict=True))
        for served in (low, high)
    ]
    assert found[0] < found[1] <= 1000
    assert found[1] > 950


@pytest.mark.parametrize("iterative_scan", ["off", "strict_order", "relaxed_order"])
def test_iterative_scan_fills_the_rankings_in_order_within_a_small_tenant(
    session: CorpusSession, iterative_scan: str
) -> None:
    strategy = VectorStrategy.model_validate({"ef_search": 40, "iterative_scan": iterative_scan})
    retriever = VectorRetriever(session, strategy)
    asked = questions(vectors=clustered(40, 16, seed=8), tenants=["small"] * 40)
    session.conn.execute("SET enable_seqscan = off")
    answers = ranked(retriever.retrieve(asked, 100))
    counts = [len(answer.keys) for answer in answers]
    assert all(answer.scores == sorted(answer.scores, reverse=True) for answer in answers)
    if iterative_scan == "off":
        assert max(counts) < 100
    else:
        assert counts == [100] * 40


def test_an_iterative_scan_is_asked_for_within_a_tenant_only(session: CorpusSession) -> None:
    retriever = VectorRetriever(session, VectorStrategy(iterative_scan="strict_order"))
    assert retriever.planner_settings(40)["hnsw.iterative_scan"] == "off"
    assert retriever.planner_settings(40, tenant="a")["hnsw.iterative_scan"] == "strict_order"


def test_a_tenants_question_never_gets_anothers_chunk(session: CorpusSession) -> None:
    rows = session.conn.execute("""SELECT doc || ':' || "Part", customer FROM "Passages" """)
    owner = dict(rows.fetchall())
    session.conn.execute("SET enable_seqscan = off")
    for iterative_scan in ("off", "strict_order", "relaxed_order"):
        strategy = VectorStrategy.model_validate({"iterative_scan": iterative_scan})
        tenants = ["small", "large", "unknown"] * 20
        asked = questions(vectors=clustered(60, 16, seed=9), tenants=tenants)
        answers = ranked(VectorRetriever(session, strategy).retrieve(asked, 25))
        for tenant, answer in zip(tenants, answers, strict=True):
            assert {owner[key] for key in answer.keys} <= {tenant}


def test_equal_vectors_are_ordered_by_key_also_where_the_limit_cuts_them(conn: Connection) -> None:
    vectors = clustered(3000, 8)
    passages = with_vectors(vectors)
    same = [Passage(f"copy-{n}", vector=vectors[0] * 2) for n in range(25)]
    table = fill(conn, [*passages, *same], hnsw=8)
    retriever = VectorRetriever(CorpusSession(conn, table), VectorStrategy(ef_search=40))
    expected = sorted(["doc-0:0", *(passage.key for passage in same)], key=str.encode)
    for limit in (1, 7, 12, 26):
        [answer] = ranked(retriever.retrieve(questions(vectors=vectors[:1]), limit))
        assert answer.keys == expected[:limit]


def test_chunks_without_a_vector_or_with_one_of_length_zero_are_never_returned(
    conn: Connection,
) -> None:
    passages = with_vectors(clustered(2000, 8))
    odd = [Passage("none", n) for n in range(5)]
    odd += [Passage("zero", n, vector=np.zeros(8, dtype=np.float32)) for n in range(5)]
    table = fill(conn, [*passages, *odd], hnsw=8)
    retriever = VectorRetriever(CorpusSession(conn, table), VectorStrategy())
    answers = ranked(retriever.retrieve(questions(vectors=clustered(20, 8, seed=3)), 40))
    assert all(key.startswith("doc-") for answer in answers for key in answer.keys)


def test_the_servers_settings_are_as_before_after_a_search(session: CorpusSession) -> None:
    retriever = VectorRetriever(session, VectorStrategy(ef_search=77))
    retriever.retrieve(questions(vectors=clustered(1, 16)), 5)
    for name, value in [
        ("hnsw.ef_search", "40"),
        ("hnsw.iterative_scan", "off"),
        ("statement_timeout", "0"),
        ("transaction_read_only", "off"),
    ]:
        row = session.conn.execute("SELECT current_setting(%s)", [name]).fetchone()
        assert row == (value,)
