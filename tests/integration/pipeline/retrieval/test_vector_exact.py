"""Exact vector search, against numpy's brute force over the same vectors."""

from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.errors import CorpusError
from pipeline.retrieval.session import CorpusSession
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.vector import VectorRetriever
from pipeline.retrieval.vector_arrays import VectorArray
from pipeline.types import Failure, FloatMatrix
from tests.integration.pipeline.retrieval.corpora import (
    NAMES,
    Passage,
    clustered,
    fill,
    plan,
    questions,
    ranked,
    with_vectors,
)

Connection = psycopg.Connection[Any]

EXACT = VectorStrategy(exact=True)


def brute_force(passages: list[Passage], question: FloatMatrix, limit: int) -> dict[str, float]:
    """Return key -> cosine similarity of the nearest passages, nearest first, in float64."""
    stored = np.array([passage.vector for passage in passages], dtype=np.float64)
    asked = question.astype(np.float64)
    lengths = np.linalg.norm(stored, axis=1) * np.linalg.norm(asked)
    similarity = stored @ asked / lengths
    best = np.argsort(-similarity, kind="stable")[:limit]
    return {passages[n].key: float(similarity[n]) for n in best}


def exact_retriever(conn: Connection, passages: list[Passage]) -> VectorRetriever:
    return VectorRetriever(CorpusSession(conn, fill(conn, passages)), EXACT)


@pytest.mark.parametrize("dimensions", [2, 32])
def test_keys_and_scores_are_those_of_brute_force(conn: Connection, dimensions: int) -> None:
    passages = with_vectors(clustered(600, dimensions))
    asked = clustered(230, dimensions, seed=2)
    answers = ranked(exact_retriever(conn, passages).retrieve(questions(vectors=asked), 15))
    for question, answer in zip(asked, answers, strict=True):
        expected = brute_force(passages, question, 15)
        np.testing.assert_allclose(answer.scores, list(expected.values()), atol=2e-6)
        if dimensions == 32:
            assert answer.keys == list(expected)


@pytest.mark.parametrize("seqscan", ["on", "off"])
def test_an_index_is_never_used_even_where_the_server_is_set_to_avoid_scans(
    conn: Connection, seqscan: str
) -> None:
    passages = with_vectors(clustered(3000, 32))
    table = fill(conn, passages, hnsw=32)
    conn.execute(f"SET enable_seqscan = {seqscan}".encode())
    session = CorpusSession(conn, table)
    retriever = VectorRetriever(session, EXACT)
    asked = clustered(10, 32, seed=3)
    how = plan(session, retriever.statement(10), {"vectors": VectorArray(asked)})
    assert "Passages_vec" not in how
    answers = ranked(retriever.retrieve(questions(vectors=asked), 10))
    for question, answer in zip(asked, answers, strict=True):
        assert answer.keys == list(brute_force(passages, question, 10))


def test_ties_are_ordered_by_the_keys_bytes(conn: Connection) -> None:
    documents = ["é", "a", "B", "a-b", "Z", "_", "a b"]
    passages = [Passage(d, part, vector=[1, 0]) for d in documents for part in (10, 2)]
    passages += [Passage("first", 0, vector=[1, 0.1]), Passage("last", 0, vector=[-1, 0])]
    tied = sorted((p.key for p in passages[:-2]), key=str.encode)
    retriever = exact_retriever(conn, passages)
    asked = questions(vectors=np.array([[10, 1]], dtype=np.float32))
    for limit in range(1, len(passages) + 1):
        [answer] = ranked(retriever.retrieve(asked, limit))
        assert answer.keys == ["first:0", *tied, "last:0"][:limit]


def test_chunks_without_a_vector_or_with_one_of_length_zero_are_never_returned(
    conn: Connection,
) -> None:
    passages = [
        Passage("zero", vector=[0, 0]),
        Passage("none"),
        Passage("near", vector=[1, 0]),
        Passage("far", vector=[-1, 0]),
    ]
    asked = questions(vectors=np.array([[1, 0]], dtype=np.float32))
    [answer] = ranked(exact_retriever(conn, passages).retrieve(asked, 10))
    assert answer.keys == ["near:0", "far:0"]
    assert answer.scores == [1.0, -1.0]


def test_a_question_never_gets_another_tenants_chunk(conn: Connection) -> None:
    customers = ["a", "b", "c", None]
    passages = with_vectors(clustered(200, 4), customers)
    owner = {passage.key: passage.customer for passage in passages}
    retriever = exact_retriever(conn, passages)

    @settings(max_examples=25, deadline=None)
    @given(
        tenants=st.lists(st.sampled_from(["a", "b", "c", "unknown", None]), max_size=12),
        limit=st.integers(1, 80),
        seed=st.integers(0, 9),
    )
    def check(tenants: list[str | None], limit: int, seed: int) -> None:
        asked = clustered(len(tenants), 4, seed=seed)
        answers = ranked(retriever.retrieve(questions(vectors=asked, tenants=tenants), limit))
        for tenant, question, answer in zip(tenants, asked, answers, strict=True):
            searched = [p for p in passages if tenant is None or owner[p.key] == tenant]
            assert len(answer.keys) == min(limit, len(searched))
            assert set(answer.keys) <= {p.key for p in searched}
            if searched:
                best = list(brute_force(searched, question, limit).values())
                np.testing.assert_allclose(answer.scores, best, atol=2e-6)

    check()


def test_answers_come_in_the_order_of_the_questions_however_they_are_grouped(
    conn: Connection,
) -> None:
    passages = with_vectors(clustered(300, 16), ["a", "b", None])
    table = fill(conn, passages)
    asked = clustered(50, 16, seed=4)
    tenants = [["a", None, "b", None][n % 4] for n in range(50)]
    together, alone = (
        VectorRetriever(
            CorpusSession(conn, table), VectorStrategy(exact=True, questions_per_statement=size)
        ).retrieve(questions(vectors=asked, tenants=tenants), 7)
        for size in (1000, 1)
    )
    assert together == alone


def test_a_tenant_may_be_a_number(conn: Connection) -> None:
    fill(conn, with_vectors(clustered(20, 4), ["7", "8"]))
    conn.execute('ALTER TABLE "Passages" ALTER customer TYPE int USING customer::int')
    retriever = VectorRetriever(CorpusSession(conn, describe(conn, NAMES)), EXACT)
    asked = questions(vectors=clustered(2, 4), tenants=["7", "seven"])
    found, failed = retriever.retrieve(asked, 20)
    assert len(ranked([found])[0].keys) == 10
    assert isinstance(failed, Failure)
    assert 'invalid input syntax for type integer: "seven"' in failed.reason


def test_a_vector_without_a_direction_fails_its_own_question_only(conn: Connection) -> None:
    retriever = exact_retriever(conn, with_vectors(clustered(10, 3)))
    lost = [[0.0] * 3, [1, np.nan, 1], [np.inf, 1, 1], [1e-30] * 3, [1e30] * 3]
    asked = np.array([[1, 2, 3], *lost, [4, 5, 6]], dtype=np.float32)
    first, *failed, last = retriever.retrieve(questions(vectors=asked), 5)
    reason = "the question's vector has length zero, or holds NaN or infinity"
    assert failed == [Failure(reason)] * len(lost)
    assert [len(answer.keys) for answer in ranked([first, last])] == [5, 5]


def test_no_questions_get_no_answers(conn: Connection) -> None:
    retriever = exact_retriever(conn, with_vectors(clustered(10, 3)))
    assert retriever.retrieve(questions(vectors=np.empty((0, 3), dtype=np.float32)), 5) == []


def test_vectors_are_required(conn: Connection) -> None:
    retriever = exact_retriever(conn, with_vectors(clustered(10, 3)))
    with pytest.raises(ValueError, match="one vector a question"):
        retriever.retrieve(questions(texts=["?"]), 5)


def test_questions_of_other_dimensions_are_refused_naming_both(conn: Connection) -> None:
    retriever = exact_retriever(conn, with_vectors(clustered(10, 3)))
    with pytest.raises(
        CorpusError, match=r"have 4 dimensions, those in public.Passages.vec have 3"
    ):
        retriever.retrieve(questions(vectors=clustered(2, 4)), 5)


def test_chunks_of_several_dimensions_are_refused(conn: Connection) -> None:
    passages = [Passage("a", vector=[1, 0]), Passage("b", vector=[1, 0, 0])]
    retriever = exact_retriever(conn, passages)
    with pytest.raises(CorpusError, match="vectors of several lengths"):
        retriever.retrieve(questions(vectors=clustered(2, 2)), 5)


def test_a_corpus_without_vectors_is_refused_rather_than_scored(conn: Connection) -> None:
    retriever = exact_retriever(conn, [Passage("a")])
    with pytest.raises(CorpusError, match=r"no chunk has a vector in public.Passages.vec"):
        retriever.retrieve(questions(vectors=clustered(2, 2)), 5)


def test_a_tenant_asked_of_a_corpus_without_tenants_is_refused(conn: Connection) -> None:
    without = CorpusSettings.model_validate(NAMES.model_dump() | {"tenant": None})
    table = fill(conn, with_vectors(clustered(10, 3)), without)
    retriever = VectorRetriever(CorpusSession(conn, table), EXACT)
    with pytest.raises(CorpusError, match=r"tenant 'a', but public.Passages has no tenant column"):
        retriever.retrieve(questions(vectors=clustered(1, 3), tenants=["a"]), 5)
