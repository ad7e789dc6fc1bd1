"""Exact search by numpy, against the same search by the server."""

from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.errors import CorpusError, PermanentError, TransientError
from pipeline.retrieval import exact
from pipeline.retrieval.build import Resources, build
from pipeline.retrieval.exact import ExactVectorRetriever
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import FulltextStrategy, HybridStrategy, Strategy, VectorStrategy
from pipeline.retrieval.tree import tree_of
from pipeline.retrieval.vector import VectorRetriever
from pipeline.types import Failure, QueryBatch, Ranking
from tests.integration.pipeline.retrieval.corpora import (
    NAMES,
    Passage,
    clustered,
    fill,
    questions,
    ranked,
    with_vectors,
)

Connection = psycopg.Connection[Any]

BY_SERVER = VectorStrategy(exact=True)


def assert_same(here: list[Ranking | Failure], there: list[Ranking | Failure]) -> None:
    """Check that two searches found the same; the server's similarities are in float32."""
    assert len(here) == len(there)
    for one, other in zip(here, there, strict=True):
        assert isinstance(one, Ranking), one
        assert isinstance(other, Ranking), other
        assert one.keys == other.keys
        np.testing.assert_allclose(one.scores, other.scores, atol=2e-6)


def both(
    session: CorpusSession, batch: QueryBatch, limit: int
) -> tuple[list[Ranking | Failure], list[Ranking | Failure]]:
    """Return what exact search finds here, and what the server finds without its index."""
    return (
        ExactVectorRetriever(session).retrieve(batch, limit),
        VectorRetriever(session, BY_SERVER).retrieve(batch, limit),
    )


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_it_finds_what_the_server_finds_whatever_index_there_is(
    conn: Connection, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "BLOCK", 256)
    session = CorpusSession(conn, fill(conn, with_vectors(clustered(1500, 32)), hnsw=32))

    here, there = both(session, questions(vectors=clustered(60, 32, seed=2)), limit)

    assert [len(each.keys) for each in ranked(here)] == [limit] * 60
    assert_same(here, there)


def test_it_finds_what_the_server_finds_within_tenants_and_without(conn: Connection) -> None:
    passages = with_vectors(clustered(400, 16), ["a", "b", "c's", None])
    session = CorpusSession(conn, fill(conn, passages))

    @settings(max_examples=25, deadline=None)
    @given(
        tenants=st.lists(st.sampled_from(["a", "b", "c's", "unknown", None]), max_size=12),
        limit=st.integers(1, 120),
        seed=st.integers(0, 9),
    )
    def check(tenants: list[str | None], limit: int, seed: int) -> None:
        asked = clustered(len(tenants), 16, seed=seed)
        assert_same(*both(session, questions(vectors=asked, tenants=tenants), limit))

    check()


# Whole numbers and doublings: their products are exact in float32, so the server's ties are true.
EXACT_IN_FLOAT32 = st.tuples(st.sampled_from([0, 1, 2, 4]), st.sampled_from([0, 1, 2, 4])).filter(
    any
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    vectors=st.lists(EXACT_IN_FLOAT32, min_size=1, max_size=60),
    asked=st.lists(EXACT_IN_FLOAT32, min_size=1, max_size=4),
    limit=st.integers(1, 20),
)
def test_ties_are_ordered_as_the_server_orders_them(
    conn: Connection, vectors: list[tuple[int, int]], asked: list[tuple[int, int]], limit: int
) -> None:
    documents = ["é", "a", "B", "a-b", "Z", "_", "a b"]
    conn.execute('DROP TABLE IF EXISTS "Passages"')
    table = fill(
        conn, [Passage(documents[n % 7], n, vector=vector) for n, vector in enumerate(vectors)]
    )

    batch = questions(vectors=np.array(asked, np.float32))
    here, there = both(CorpusSession(conn, table), batch, limit)

    assert [each.keys for each in ranked(here)] == [each.keys for each in ranked(there)]
    assert_same(here, there)


def test_another_order_on_disk_changes_nothing(conn: Connection) -> None:
    vectors = clustered(3000, 64)
    vectors[1:400] = vectors[0] + clustered(399, 64, seed=3) * np.float32(1e-6)
    session = CorpusSession(conn, fill(conn, with_vectors(vectors), hnsw=64))
    batch = questions(vectors=np.concatenate([vectors[:5] * 3, clustered(20, 64, seed=4)]))
    before = ExactVectorRetriever(session).retrieve(batch, 30)

    conn.execute('CREATE INDEX shuffled ON "Passages" (md5(doc || "Part"))')
    conn.execute('CLUSTER "Passages" USING shuffled')
    conn.execute('REINDEX TABLE "Passages"')

    assert ExactVectorRetriever(session).retrieve(batch, 30) == before


STRATEGIES: dict[str, Strategy] = {
    "near": VectorStrategy(ef_search=1),
    "words": FulltextStrategy(max_document_frequency=0.05, min_frequent=0),
    "mixed": HybridStrategy(arms={"near": 2.0, "words": 0.5}, rrf_k=20, depth=25),
}


def test_a_hybrid_is_fused_from_its_arms_as_served_with_exact_vectors(conn: Connection) -> None:
    rng = np.random.default_rng(3)
    vectors, words = clustered(3000, 16), rng.integers(0, 400, size=(3000, 8))
    passages = [
        Passage(f"doc-{n // 5}", n % 5, " ".join(f"word{w}" for w in words[n]), vector=vector)
        for n, vector in enumerate(vectors)
    ]
    session = CorpusSession(conn, fill(conn, passages, hnsw=16))
    batch = questions(
        vectors=clustered(30, 16, seed=4),
        texts=[" ".join(f"word{w}" for w in rng.integers(0, 400, size=5)) for _ in range(30)],
    )
    by_server = STRATEGIES | {"near": BY_SERVER}

    served, found, expected = (
        build(tree_of("mixed", strategies), Resources(session, exact=exact)).retrieve(batch, 10)
        for strategies, exact in ((STRATEGIES, False), (STRATEGIES, True), (by_server, False))
    )

    assert_same(found, expected)
    assert [answer.keys for answer in ranked(served)] != [answer.keys for answer in ranked(found)]


def test_a_hybrids_full_text_arm_is_searched_as_ever(conn: Connection) -> None:
    session = CorpusSession(conn, fill(conn, [Passage("a", body="word", vector=[1, 0])]))
    batch = questions(vectors=np.ones((2, 2), np.float32), texts=["word", "a\0b"])

    answer, failed = build(tree_of("mixed", STRATEGIES), Resources(session, exact=True)).retrieve(
        batch, 5
    )

    assert len(ranked([answer])[0].keys) == 1
    assert isinstance(failed, Failure)
    assert failed.reason.startswith("words: ")


def test_chunks_without_a_vector_or_with_one_of_length_zero_are_never_returned(
    conn: Connection,
) -> None:
    passages = [
        Passage("zero", vector=[0, 0]),
        Passage("none"),
        Passage("near", vector=[1, 0]),
        Passage("far", vector=[-1, 0]),
    ]
    session = CorpusSession(conn, fill(conn, passages))
    asked = questions(vectors=np.array([[1, 0]], dtype=np.float32))

    [answer] = ranked(ExactVectorRetriever(session).retrieve(asked, 9))

    assert (answer.keys, answer.scores) == (["near:0", "far:0"], [1.0, -1.0])
    assert_same(*both(session, asked, 9))


def test_chunks_whose_length_single_precision_cannot_square_are_left_out(conn: Connection) -> None:
    """The server's distances of such vectors mean nothing: 0 for any direction, 1 or NaN."""
    passages = [Passage("a", vector=[1e-30, 1e-30]), Passage("b", vector=[3e30, 0])]
    session = CorpusSession(conn, fill(conn, [*passages, Passage("c", vector=[1, 1])]))
    asked = questions(vectors=np.array([[1, 0]], dtype=np.float32))

    [answer] = ranked(ExactVectorRetriever(session).retrieve(asked, 9))

    assert answer.keys == ["c:0"]


def test_what_cannot_be_asked_fails_its_own_question_only(conn: Connection) -> None:
    fill(conn, with_vectors(clustered(20, 3), ["7", "8"]))
    conn.execute('ALTER TABLE "Passages" ALTER customer TYPE int USING customer::int')
    session = CorpusSession(conn, describe(conn, NAMES))
    vectors = np.array([[1, 2, 3], [0, 0, 0], [1, np.nan, 1], [4, 5, 6], [7, 8, 9]], np.float32)
    batch = questions(vectors=vectors, tenants=["7", None, None, "seven", "07"])

    found = ExactVectorRetriever(session).retrieve(batch, 20)

    by_server = VectorRetriever(session, BY_SERVER).retrieve(batch, 20)
    assert found[1:4] == by_server[1:4]
    assert all(isinstance(answer, Failure) for answer in found[1:4])
    assert_same([found[0], found[4]], [by_server[0], by_server[4]])
    assert len(ranked(found[4:])[0].keys) == 10


def test_no_questions_get_no_answers(conn: Connection) -> None:
    session = CorpusSession(conn, fill(conn, with_vectors(clustered(10, 3))))
    nothing = questions(vectors=np.empty((0, 3), dtype=np.float32))
    assert ExactVectorRetriever(session).retrieve(nothing, 5) == []


def test_a_reading_that_takes_too_long_is_given_up(conn: Connection) -> None:
    table = fill(conn, with_vectors(clustered(100, 3)))
    conn.execute(
        """CREATE VIEW slow AS SELECT doc, "Part", vec FROM "Passages"
           WHERE pg_sleep(0.01) IS NOT NULL"""
    )
    view = replace(table, name="slow")
    session = CorpusSession(conn, view, statement_timeout=0.05)

    with pytest.raises(PermanentError, match=r"not done in 0\.05 seconds: the database is slow"):
        ExactVectorRetriever(session).retrieve(questions(vectors=clustered(3, 3)), 5)

    assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_lost_connection_is_transient(conn: Connection, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as own:
        session = CorpusSession(own, fill(conn, with_vectors(clustered(100, 3))))
        conn.execute("SELECT pg_terminate_backend(%s)", [own.info.backend_pid])

        with pytest.raises(TransientError, match=r"could not read the vectors of public\.Passages"):
            ExactVectorRetriever(session).retrieve(questions(vectors=clustered(3, 3)), 5)


def test_an_interruption_leaves_the_connection_usable(
    conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = CorpusSession(conn, fill(conn, with_vectors(clustered(3000, 16))))
    retriever, asked = ExactVectorRetriever(session), questions(vectors=clustered(3, 16))
    expected = retriever.retrieve(asked, 5)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(exact, "BLOCK", 10)
        interrupted.setattr("pipeline.retrieval.exact.Nearest.offer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            retriever.retrieve(asked, 5)

    assert retriever.retrieve(asked, 5) == expected


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_chunks_of_several_dimensions_are_refused(conn: Connection) -> None:
    passages = [Passage("a", vector=[1, 0]), Passage("b", vector=[1, 0, 0])]
    session = CorpusSession(conn, fill(conn, passages))
    with pytest.raises(CorpusError, match="vectors of several lengths"):
        ExactVectorRetriever(session).retrieve(questions(vectors=clustered(2, 2)), 5)


def test_questions_of_other_dimensions_are_refused_naming_both(conn: Connection) -> None:
    session = CorpusSession(conn, fill(conn, with_vectors(clustered(10, 3))))
    with pytest.raises(CorpusError, match=r"have 4 dimensions, those in .* have 3"):
        ExactVectorRetriever(session).retrieve(questions(vectors=clustered(2, 4)), 5)


def test_a_tenant_asked_of_a_corpus_without_tenants_is_refused(conn: Connection) -> None:
    without = CorpusSettings.model_validate(NAMES.model_dump() | {"tenant": None})
    session = CorpusSession(conn, fill(conn, with_vectors(clustered(10, 3)), without))
    with pytest.raises(CorpusError, match="has no tenant column"):
        ExactVectorRetriever(session).retrieve(questions(vectors=clustered(1, 3), tenants=["a"]), 5)


def test_a_column_with_an_odd_name_is_read(conn: Connection) -> None:
    quoted = 'a "b"'
    fill(conn, with_vectors(clustered(10, 3)))
    renaming = sql.SQL('ALTER TABLE "Passages" RENAME vec TO {}').format(sql.Identifier(quoted))
    conn.execute(renaming)
    names = CorpusSettings.model_validate(NAMES.model_dump() | {"embedding": quoted})
    session = CorpusSession(conn, describe(conn, names))

    [answer] = ranked(ExactVectorRetriever(session).retrieve(questions(vectors=clustered(1, 3)), 5))

    assert len(answer.keys) == 5
