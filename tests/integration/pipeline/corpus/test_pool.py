"""Chunks to try things on: the judged ones and a sample of the others, the same one by a seed."""

from typing import Any, LiteralString

import numpy as np
import psycopg
import pytest
from psycopg import sql

from pipeline.corpus.loading import load
from pipeline.corpus.pool import PoolChunk, count_chunks, draw_pool
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.errors import CorpusError
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]
N = 40


@pytest.fixture
def corpus(conn: Conn, model: FakeModel) -> Conn:
    """Load forty chunks, half of them a tenant's."""
    chunks = [Chunk(f"d{n // 4}", n % 4, f"text {n}", "acme" if n % 2 else None) for n in range(N)]
    load(conn, chunks, model, model="m", dimensions=8)
    return conn


def draw(
    conn: Conn,
    *judged: str,
    others: int | None = 5,
    seed: int = 1,
    with_vectors: bool = False,
    settings: CorpusSettings | None = None,
) -> list[PoolChunk]:
    table = describe(conn, settings or CorpusSettings(tenant="tenant"))
    return list(draw_pool(
        conn, table, judged, others=others, seed=seed, with_vectors=with_vectors
    ))  # fmt: skip


def keys(pool: list[PoolChunk]) -> set[str]:
    return {each.key for each in pool}


def test_judged_chunks_are_in_it_whatever_the_seed_draws(corpus: Conn) -> None:
    for seed in range(5):
        pool = draw(corpus, "d0:0", "d9:3", "gone:1", seed=seed)

        assert keys(pool) >= {"d0:0", "d9:3"}
        assert len(pool) == len(keys(pool)) == 7


def test_a_seed_draws_the_same_chunks_and_another_seed_others(corpus: Conn) -> None:
    assert keys(draw(corpus, "d0:0")) == keys(draw(corpus, "d0:0"))
    assert keys(draw(corpus, "d0:0")) != keys(draw(corpus, "d0:0", seed=2))


def test_a_larger_sample_holds_the_smaller_one(corpus: Conn) -> None:
    assert keys(draw(corpus, others=5)) < keys(draw(corpus, others=9))


def test_all_are_drawn_where_no_number_is_given(corpus: Conn) -> None:
    pool = draw(corpus, "d0:0", others=None)

    assert (
        len(pool)
        == len(keys(pool))
        == N
        == count_chunks(corpus, describe(corpus, CorpusSettings()))
    )


def test_chunks_come_with_text_and_tenant_and_with_a_vector_where_asked(
    corpus: Conn, model: FakeModel
) -> None:
    (plain,) = draw(corpus, "d1:1", others=0)
    (whole,) = draw(corpus, "d1:1", others=0, with_vectors=True)

    assert (plain.key, plain.tenant, plain.text, plain.vector) == ("d1:1", "acme", "text 5", None)
    assert whole.vector is not None
    np.testing.assert_array_equal(whole.vector, model.vector("text 5"))


def test_without_a_tenant_column_chunks_are_nobody_s(corpus: Conn) -> None:
    corpus.execute("CREATE TABLE other AS TABLE recallwatch_corpus.chunks")
    (chunk,) = draw(corpus, "d1:1", others=0, settings=CorpusSettings(table="other"))

    assert chunk.tenant is None


@pytest.mark.parametrize("kind", ["halfvec(8)", "sparsevec(8)"])
def test_halves_and_sparse_vectors_come_as_numbers(
    corpus: Conn, model: FakeModel, kind: LiteralString
) -> None:
    corpus.execute("CREATE TABLE other AS TABLE recallwatch_corpus.chunks")
    change = "ALTER TABLE other ALTER embedding TYPE {kind} USING embedding::vector(8)::{kind}"
    corpus.execute(sql.SQL(change).format(kind=sql.SQL(kind)))

    (chunk,) = draw(
        corpus, "d1:1", others=0, with_vectors=True, settings=CorpusSettings(table="other")
    )

    assert chunk.vector is not None
    np.testing.assert_allclose(chunk.vector, model.vector("text 5"), rtol=2e-3)


def test_bits_are_refused(corpus: Conn) -> None:
    corpus.execute(
        "CREATE TABLE other AS SELECT document_id, chunk_index, content,"
        " binary_quantize(embedding)::bit(8) AS embedding FROM recallwatch_corpus.chunks"
    )
    settings = CorpusSettings(table="other")

    with pytest.raises(CorpusError, match="are bits, which cannot be compared"):
        draw(corpus, with_vectors=True, settings=settings)


def test_a_chunk_that_was_not_embedded_has_no_vector(corpus: Conn) -> None:
    corpus.execute("UPDATE recallwatch_corpus.chunks SET embedding = NULL WHERE chunk_index = 1")

    (chunk,) = draw(corpus, "d1:1", others=0, with_vectors=True)

    assert chunk.vector is None
