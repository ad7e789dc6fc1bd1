"""What a vector search is limited to: tenants, a condition of the owner's, a least score."""

from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.errors import CorpusError, PermanentError
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.exact import ExactVectorRetriever, KeepingExactRetriever
from pipeline.retrieval.kept_vectors import KeptVectors
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.vector import VectorRetriever
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

CHUNKS = 600
CUSTOMERS = ["large"] * 9 + ["small"]


@pytest.fixture
def session(conn: Connection) -> CorpusSession:
    """A corpus of 600 chunks, a tenth of them a small tenant's, behind an index."""
    passages = with_vectors(clustered(CHUNKS, 16), CUSTOMERS)
    return CorpusSession(conn, fill(conn, passages, hnsw=16), fingerprint="known", hashed=True)


WAYS = ["server", "server, exactly", "here", "kept"]


def retriever(way: str, session: CorpusSession, **settings: object) -> Retriever:
    strategy = VectorStrategy.model_validate({"ef_search": 1000} | settings)
    exact = strategy.model_copy(update={"exact": True})
    match way:
        case "server":
            return VectorRetriever(session, strategy)
        case "server, exactly":
            return VectorRetriever(session, exact)
        case "here":
            return ExactVectorRetriever(session, exact)
        case _:
            return KeepingExactRetriever(session, exact, KeptVectors())


def owners(session: CorpusSession) -> dict[str, str]:
    rows = session.conn.execute("""SELECT doc || ':' || "Part", customer FROM "Passages" """)
    return dict(rows.fetchall())


@pytest.mark.parametrize("way", WAYS)
def test_only_chunks_that_meet_the_condition_are_found(session: CorpusSession, way: str) -> None:
    where = """ "Part" = 4 AND c.doc LIKE 'doc-%' -- 100 % :)"""
    asked = questions(
        vectors=clustered(5, 16, seed=2), tenants=["large", "small", None, "large", None]
    )

    found = ranked(retriever(way, session, where=where).retrieve(asked, 20))

    owner = owners(session)
    for tenant, ranking in zip(asked.tenants, found, strict=True):
        assert {key.rpartition(":")[2] for key in ranking.keys} == {"4"}
        assert {owner[key] for key in ranking.keys} <= ({tenant} if tenant else set(CUSTOMERS))
    every = session.conn.execute("""SELECT count(*) FROM "Passages" WHERE "Part" = 4""").fetchone()
    [whole] = ranked(
        retriever(way, session, where=where).retrieve(questions(vectors=clustered(1, 16)), CHUNKS)
    )
    assert every == (len(whole.keys),)


@pytest.mark.parametrize("way", WAYS)
def test_a_question_is_searched_for_within_all_tenants_where_they_are_ignored(
    session: CorpusSession, way: str
) -> None:
    vectors = clustered(4, 16, seed=3)
    mine = questions(vectors=vectors, tenants=["small"] * 4)
    anybody = questions(vectors=vectors)

    ignoring = ranked(retriever(way, session, tenant="ignore").retrieve(mine, 30))

    assert ignoring == ranked(retriever(way, session).retrieve(anybody, 30))
    owner = owners(session)
    assert {owner[key] for each in ignoring for key in each.keys} == {"large", "small"}
    within = ranked(retriever(way, session).retrieve(mine, 30))
    assert {owner[key] for each in within for key in each.keys} == {"small"}


@pytest.mark.parametrize("way", WAYS)
def test_results_below_the_least_score_are_left_out(session: CorpusSession, way: str) -> None:
    asked = questions(vectors=clustered(6, 16, seed=4))
    whole = ranked(retriever(way, session).retrieve(asked, 50))
    least = float(np.median([score for each in whole for score in each.scores]))

    cut = ranked(retriever(way, session, min_score=least).retrieve(asked, 50))

    assert 0 < sum(len(each.keys) for each in cut) < sum(len(each.keys) for each in whole)
    for before, after in zip(whole, cut, strict=True):
        kept = [
            key for key, score in zip(before.keys, before.scores, strict=True) if score >= least
        ]
        assert list(after.keys) == kept


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("publshed", 'column "publshed" does not exist'),
        ("body", "argument of AND must be type boolean, not type text"),
        ("body =", 'syntax error at or near "\\)"'),
    ],
)
def test_a_condition_that_postgresql_refuses_is_the_corpus_owners_to_mend(
    session: CorpusSession, way: str, where: str, said: str
) -> None:
    asked = questions(vectors=clustered(1, 16))
    with pytest.raises(CorpusError, match=f"where {where}: .*{said}"):
        retriever(way, session, where=where).retrieve(asked, 5)


def test_a_condition_cannot_write(session: CorpusSession) -> None:
    session.conn.execute("""CREATE FUNCTION erase() RETURNS bool LANGUAGE sql AS
        'DELETE FROM "Passages" RETURNING true'""")
    asked = questions(vectors=clustered(1, 16))
    with pytest.raises(PermanentError, match="cannot execute DELETE in a read-only transaction"):
        retriever("server", session, where="erase()").retrieve(asked, 5)
    assert len(owners(session)) == CHUNKS


def test_small_tenants_are_searched_exactly_by_their_size(session: CorpusSession) -> None:
    strategy = VectorStrategy(ef_search=10, iterative_scan="off", exact_below=100)
    served = VectorRetriever(session, strategy)
    asked = clustered(20, 16, seed=5)
    session.conn.execute("SET enable_seqscan = off; SET enable_sort = off")

    def planned(tenant: str) -> str:
        return plan(
            session, served.statement(10, tenant=tenant), served.parameters(asked, tenant),
            served.planner_settings(10, tenant=tenant),
        )  # fmt: skip

    assert "Passages_vec" in planned("large")
    assert "Passages_vec" not in planned("small")
    mine = questions(vectors=asked, tenants=["small"] * 20)
    here = ranked(ExactVectorRetriever(session).retrieve(mine, 10))
    found = ranked(served.retrieve(mine, 10))
    assert [each.keys for each in found] == [each.keys for each in here]
    short = VectorRetriever(session, strategy.model_copy(update={"exact_below": 0}))
    assert max(len(each.keys) for each in ranked(short.retrieve(mine, 10))) < 10


def test_what_is_set_is_sent_for_the_statement_alone(session: CorpusSession) -> None:
    strategy = VectorStrategy(
        ef_search=77, iterative_scan="relaxed_order", max_scan_tuples=123, scan_mem_multiplier=2.5,
        probes=4, max_probes=9,
    )  # fmt: skip
    sent = VectorRetriever(session, strategy).planner_settings(5, tenant="small")
    assert sent == {
        "hnsw.ef_search": "77",
        "hnsw.iterative_scan": "relaxed_order",
        "ivfflat.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": "123",
        "hnsw.scan_mem_multiplier": "2.5",
        "ivfflat.probes": "4",
        "ivfflat.max_probes": "9",
    }
    names = [*sent]
    query = "SELECT array_agg(current_setting(name)) FROM unnest(%s::text[]) AS name"
    before = session.conn.execute(query, [names]).fetchone()
    asked = questions(vectors=clustered(1, 16), tenants=["small"])
    VectorRetriever(session, strategy).retrieve(asked, 5)
    assert session.conn.execute(query, [names]).fetchone() == before
    assert "hnsw.max_scan_tuples" not in VectorRetriever(
        session, VectorStrategy()
    ).planner_settings(5)


@pytest.mark.parametrize(("width", "rows"), [(40, 40), (100, 100)])
def test_an_ef_search_below_k_may_stay_as_it_is(
    session: CorpusSession, width: int, rows: int
) -> None:
    strategy = VectorStrategy(ef_search=width, raise_ef_search=False, iterative_scan="off")
    session.conn.execute("SET enable_seqscan = off; SET enable_sort = off")
    asked = questions(vectors=clustered(3, 16, seed=6))
    found = ranked(VectorRetriever(session, strategy).retrieve(asked, 100))
    assert [len(each.keys) for each in found] == [rows] * 3


def test_fewer_scanned_tuples_leave_a_tenant_short(session: CorpusSession) -> None:
    session.conn.execute("SET enable_seqscan = off; SET enable_sort = off")
    asked = questions(vectors=clustered(10, 16, seed=7), tenants=["small"] * 10)
    counts = [
        sum(
            len(each.keys)
            for each in ranked(
                VectorRetriever(
                    session, VectorStrategy(ef_search=10, max_scan_tuples=most)
                ).retrieve(asked, 30)
            )
        )
        for most in (20, 20_000)
    ]
    assert counts[0] < counts[1] == 300


def test_more_probes_of_an_ivfflat_index_find_more(conn: Connection) -> None:
    table = fill(conn, with_vectors(clustered(2000, 16)), hnsw=16)
    conn.execute("""DROP INDEX "Passages_vec";
        CREATE INDEX ON "Passages" USING ivfflat (vec vector_cosine_ops) WITH (lists = 40)""")
    conn.execute("SET enable_seqscan = off; SET enable_sort = off")
    asked = questions(vectors=clustered(30, 16, seed=8))
    session = CorpusSession(conn, table)
    exact = ranked(ExactVectorRetriever(session).retrieve(asked, 10))
    found = [
        sum(
            len({*one.keys} & {*other.keys})
            for one, other in zip(
                exact,
                ranked(VectorRetriever(session, VectorStrategy(probes=probes)).retrieve(asked, 10)),
                strict=True,
            )
        )
        for probes in (1, 40)
    ]
    assert found[0] < found[1] == 300


def test_a_tenant_of_a_corpus_without_tenants_is_refused_unless_ignored(conn: Connection) -> None:
    table = fill(conn, [Passage("a", vector=[1, 0])])
    without = replace(table, columns={r: c for r, c in table.columns.items() if r != "tenant"})
    session = CorpusSession(conn, without)
    asked = questions(vectors=np.array([[1, 0]], np.float32), tenants=["acme"])
    with pytest.raises(CorpusError, match="has no tenant column"):
        VectorRetriever(session, VectorStrategy()).retrieve(asked, 1)
    [found] = ranked(VectorRetriever(session, VectorStrategy(tenant="ignore")).retrieve(asked, 1))
    assert found.keys == ["a:0"]
