import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from pgvector import Vector
from pgvector.psycopg import register_vector

from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import CorpusFingerprint, fingerprint, show, tenant_sizes
from pipeline.corpus.table import CorpusTable, describe
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]

CHUNKS = [
    Chunk("a", 0, "Blue whales.", tenant="acme", language="en"),
    Chunk("a", 1, "Baleias azuis.", tenant="acme", language="pt"),
    Chunk("b", 0, "\n \t", tenant="zeta"),
    Chunk("https://c.example/d", 0, "Whales sing."),
]


@pytest.fixture
def managed(conn: Conn, model: FakeModel) -> CorpusTable:
    load(conn, CHUNKS, model, model="fake", dimensions=8)
    return describe(conn, CorpusSettings())


@pytest.fixture
def own(vector_conn: Conn) -> CorpusTable:
    vector_conn.execute("""
        CREATE TABLE docs (document_id uuid, chunk_index int, content text, embedding vector)""")
    return describe(vector_conn, CorpusSettings(table="docs"))


def test_show_counts_what_was_loaded(conn: Conn, managed: CorpusTable) -> None:
    summary = show(conn, managed)

    assert summary.table == "recallwatch_corpus.chunks"
    assert (summary.chunks, summary.documents) == (4, 3)
    assert summary.tenants == {"acme": 2, "zeta": 1, None: 1}
    assert summary.languages == {None: 2, "en": 1, "pt": 1}
    assert summary.dimensions == {8: 3}
    assert summary.models == {"fake": 3}
    assert (summary.missing_embeddings, summary.blank_contents) == (1, 1)
    assert summary.text_search == "text_search"
    assert summary.size > 0
    assert tenant_sizes(conn, managed) == summary.tenants


def test_show_lists_the_indexes_and_the_one_that_serves_cosine(
    conn: Conn, managed: CorpusTable
) -> None:
    summary = show(conn, managed)

    methods = {index.keys: (index.method, index.operator_class) for index in summary.indexes}
    assert methods == {
        "document_id, chunk_index": ("btree", "text_ops"),
        "embedding": ("hnsw", "vector_cosine_ops"),
        "text_search": ("gin", "tsvector_ops"),
        "tenant": ("btree", "text_ops"),
    }
    assert all(index.valid and not index.partial and index.size > 0 for index in summary.indexes)
    assert summary.vector_index == "chunks_embedding"


def test_a_table_of_ones_own_has_no_tenants_languages_or_models(
    vector_conn: Conn, own: CorpusTable
) -> None:
    vector_conn.execute("""
        INSERT INTO docs VALUES (gen_random_uuid(), 0, 'one', '[1,2]'),
            (gen_random_uuid(), 0, NULL, '[1,2,3]'), (gen_random_uuid(), 0, 'three', NULL)""")

    summary = show(vector_conn, own)

    assert (summary.chunks, summary.documents) == (3, 3)
    assert (summary.tenants, summary.languages, summary.models) == ({}, {}, {})
    assert summary.dimensions == {2: 1, 3: 1}
    assert (summary.missing_embeddings, summary.blank_contents) == (1, 1)
    assert (summary.indexes, summary.vector_index, summary.text_search) == ((), None, None)
    assert tenant_sizes(vector_conn, own) == {}


@pytest.mark.parametrize(
    ("definition", "distance"),
    [
        ("USING hnsw (embedding vector_cosine_ops)", "cosine"),
        ("USING ivfflat (embedding vector_cosine_ops) WITH (lists = 1)", "cosine"),
        ("USING hnsw (embedding vector_l2_ops)", "l2"),
        ("USING hnsw (embedding vector_cosine_ops) WHERE chunk_index = 0", None),
        ("USING hnsw ((embedding::halfvec(2)) halfvec_ip_ops)", "ip"),
        ("USING hnsw ((binary_quantize(embedding)::bit(2)) bit_jaccard_ops)", "jaccard"),
        ("USING hnsw (other vector_cosine_ops)", None),
        ("USING hnsw ((other::halfvec(2)) halfvec_cosine_ops)", None),
        ("USING btree (chunk_index)", None),
    ],
)
def test_only_a_whole_index_of_the_embedding_serves_and_by_its_distance(
    vector_conn: Conn, own: CorpusTable, definition: str, distance: str | None
) -> None:
    vector_conn.execute("""
        ALTER TABLE docs ALTER embedding TYPE vector(2), ADD other vector(2)""")
    vector_conn.execute(b"CREATE INDEX found ON docs " + definition.encode())

    summary = show(vector_conn, own)
    assert summary.vector_index == ("found" if distance else None)
    assert {each.name: each.distance for each in summary.indexes}["found"] == distance


def test_an_invalid_index_does_not_serve(vector_conn: Conn, own: CorpusTable) -> None:
    vector_conn.execute("""
        ALTER TABLE docs ALTER embedding TYPE vector(2);
        CREATE INDEX broken ON docs USING hnsw (embedding vector_cosine_ops);
        UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'broken'::regclass""")

    summary = show(vector_conn, own)

    assert summary.vector_index is None
    assert [index.valid for index in summary.indexes] == [False]


def test_a_partitioned_table_is_counted_and_measured_with_its_parts(vector_conn: Conn) -> None:
    vector_conn.execute("""
        CREATE TABLE parts (document_id text, chunk_index int, content text, embedding vector(2),
            tenant text) PARTITION BY LIST (tenant);
        CREATE TABLE parts_acme PARTITION OF parts FOR VALUES IN ('acme');
        CREATE INDEX cosine ON parts USING hnsw (embedding vector_cosine_ops);
        INSERT INTO parts VALUES ('a', 0, 'x', '[1,2]', 'acme')""")
    table = describe(vector_conn, CorpusSettings(table="parts", tenant="tenant"))

    summary = show(vector_conn, table)

    assert summary.chunks == 1
    assert summary.vector_index == "cosine"
    assert summary.size > summary.indexes[0].size > 0


def test_a_fingerprint_survives_json(conn: Conn, managed: CorpusTable) -> None:
    taken = fingerprint(conn, managed)

    assert (taken.chunks, taken.embedded, taken.dimension) == (4, 3, 8)
    assert CorpusFingerprint.from_json(json.loads(json.dumps(taken.to_json()))) == taken


def test_the_order_of_loading_does_not_matter(
    conn: Conn, managed: CorpusTable, model: FakeModel
) -> None:
    before = fingerprint(conn, managed)

    load(conn, reversed(CHUNKS), model, model="fake", dimensions=8, replace=True)

    after = fingerprint(conn, managed)
    assert after.index != before.index, "the table was written anew, and its index too"
    assert replace(after, index=None) == replace(before, index=None)


def test_a_changed_text_changes_texts_alone(conn: Conn, managed: CorpusTable) -> None:
    before = fingerprint(conn, managed)

    conn.execute("UPDATE recallwatch_corpus.chunks SET content = 'x' WHERE document_id = 'b'")

    after = fingerprint(conn, managed)
    assert after.texts != before.texts
    assert after.vectors == before.vectors


def test_exchanged_vectors_change_vectors_alone(conn: Conn, managed: CorpusTable) -> None:
    before = fingerprint(conn, managed)

    conn.execute("""
        UPDATE recallwatch_corpus.chunks AS mine SET embedding = other.embedding
        FROM recallwatch_corpus.chunks AS other WHERE mine.document_id = 'a'
        AND other.document_id = 'a' AND other.chunk_index = 1 - mine.chunk_index""")

    after = fingerprint(conn, managed)
    assert after.texts == before.texts
    assert after.vectors != before.vectors


def test_the_last_bit_of_one_number_changes_vectors(vector_conn: Conn, own: CorpusTable) -> None:
    register_vector(vector_conn)
    insert = "INSERT INTO docs VALUES ('6fa459ea-ee8a-3ca4-894e-db77e160355e', 0, 'x', %s)"
    vector_conn.execute(insert, [Vector([1.0, 2.0])])
    before = fingerprint(vector_conn, own)

    vector_conn.execute("UPDATE docs SET embedding = %s", [Vector([1.0, 2.0 + 2**-22])])

    assert fingerprint(vector_conn, own).vectors != before.vectors


def test_a_moved_chunk_changes_texts(vector_conn: Conn, own: CorpusTable) -> None:
    vector_conn.execute("INSERT INTO docs VALUES (gen_random_uuid(), 0, 'x', NULL)")
    before = fingerprint(vector_conn, own)

    vector_conn.execute("UPDATE docs SET chunk_index = 1")

    assert fingerprint(vector_conn, own).texts != before.texts


def test_a_corpus_above_the_limit_is_counted_only(conn: Conn, managed: CorpusTable) -> None:
    taken = fingerprint(conn, managed, exact_up_to=3)

    assert (taken.chunks, taken.texts, taken.vectors) == (4, None, None)
    assert fingerprint(conn, managed, exact_up_to=4).texts is not None


def test_an_empty_corpus_has_a_fingerprint(vector_conn: Conn, own: CorpusTable) -> None:
    taken = fingerprint(vector_conn, own)

    assert taken == CorpusFingerprint(0, 0, None, texts="0" * 16, vectors="0" * 16)
    assert show(vector_conn, own).chunks == 0
