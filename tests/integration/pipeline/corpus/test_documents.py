"""Whole documents as their chunks in order, each tenant's for itself."""

from typing import Any

import psycopg
import pytest

from pipeline.corpus.documents import ChunkedDocument, draw_documents, read_documents
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]


@pytest.fixture
def corpus(conn: Conn, model: FakeModel) -> Conn:
    chunks = [Chunk("long", n, f"part {n}") for n in reversed(range(12))]
    chunks += [Chunk(f"short{n}", 0, f"text {n}", "acme") for n in range(8)]
    load(conn, chunks, model, model="m", dimensions=8)
    return conn


def read(conn: Conn, *ids: str, **settings: str) -> list[ChunkedDocument]:
    return list(read_documents(conn, describe(conn, CorpusSettings(**settings)), ids))  # type: ignore[arg-type]


def test_a_document_s_chunks_come_in_order(corpus: Conn) -> None:
    (document,) = read(corpus, "long")

    assert document == ChunkedDocument("long", None, [f"part {n}" for n in range(12)])


def test_numbers_written_as_text_are_in_order_too(corpus: Conn) -> None:
    corpus.execute(
        "CREATE TABLE other AS SELECT document_id, chunk_index::text AS chunk_index, content,"
        " embedding FROM recallwatch_corpus.chunks"
    )
    (document,) = read(corpus, "long", table="other")

    assert document.chunks == [f"part {n}" for n in range(12)]


def test_only_the_documents_that_are_there_come(corpus: Conn) -> None:
    found = read(corpus, "short1", "short0", "gone", tenant="tenant")

    assert [(each.document_id, each.tenant) for each in found] == [
        ("short0", "acme"), ("short1", "acme"),
    ]  # fmt: skip


def test_tenants_that_share_an_id_have_a_document_each(corpus: Conn) -> None:
    corpus.execute(
        "CREATE TABLE other AS SELECT 'one' AS document_id, n AS chunk_index, t || n AS content,"
        " t AS tenant, '[1]'::vector AS embedding"
        " FROM generate_series(0, 1) n, unnest(ARRAY['b', 'a', NULL]) t"
    )
    found = read(corpus, "one", table="other", tenant="tenant")

    assert [(each.tenant, each.chunks) for each in found] == [
        ("a", ["a0", "a1"]), ("b", ["b0", "b1"]), (None, ["", ""]),
    ]  # fmt: skip


def test_a_seed_draws_the_same_documents_and_more_of_them_hold_fewer(corpus: Conn) -> None:
    table = describe(corpus, CorpusSettings())
    drawn = draw_documents(corpus, table, limit=4, seed=1)

    assert drawn == draw_documents(corpus, table, limit=9, seed=1)[:4]
    assert drawn != draw_documents(corpus, table, limit=4, seed=2)
    assert len(draw_documents(corpus, table, limit=None, seed=1)) == 9
