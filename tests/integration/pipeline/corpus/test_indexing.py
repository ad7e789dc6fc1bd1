"""The index that serves cosine searches: found, told from another build of it, and rebuilt."""

from typing import Any

import numpy as np
import pytest
from pgvector.psycopg import register_vector

from pipeline.corpus.indexing import VectorIndex, rebuild, vector_index
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import fingerprint
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError, TransientError
from tests.integration.pipeline.corpus.conftest import Conn, FakeModel


@pytest.fixture
def managed(conn: Conn, model: FakeModel) -> CorpusTable:
    load(conn, [Chunk("a", 0, "one"), Chunk("a", 1, "two")], model, model="fake", dimensions=8)
    return describe(conn, CorpusSettings())


@pytest.fixture
def own(vector_conn: Conn) -> CorpusTable:
    """Give a user's own table, whose names need quoting, without an index."""
    vector_conn.execute("""
        CREATE SCHEMA "My app";
        CREATE TABLE "My app"."Docs" (document_id text, chunk_index int, content text,
            "Vector" vector(2), tenant text);
        INSERT INTO "My app"."Docs" VALUES ('a', 0, 'one', '[1,2]', 'x'),
            ('a', 1, 'two', NULL, 'x')""")
    return describe(vector_conn, CorpusSettings(table="My app.Docs", embedding="Vector"))


def found(conn: Conn, table: CorpusTable) -> VectorIndex:
    index = vector_index(conn, table)
    assert index is not None
    return index


def test_the_managed_tables_index_is_named_with_its_definition_and_file(
    conn: Conn, managed: CorpusTable
) -> None:
    index = found(conn, managed)

    assert (index.name, index.method) == ("chunks_embedding", "hnsw")
    assert index.definition == (
        "CREATE INDEX chunks_embedding ON recallwatch_corpus.chunks"
        " USING hnsw (embedding vector_cosine_ops)"
    )
    row = conn.execute("SELECT pg_relation_filenode('recallwatch_corpus.chunks_embedding')")
    assert row.fetchone() == (int(index.file),)
    assert fingerprint(conn, managed).index == index.to_json()


def test_a_table_without_such_an_index_has_none(vector_conn: Conn, own: CorpusTable) -> None:
    vector_conn.execute('CREATE INDEX ON "My app"."Docs" USING hnsw ("Vector" vector_l2_ops)')

    assert vector_index(vector_conn, own) is None
    assert fingerprint(vector_conn, own).index is None


def test_of_several_the_first_by_name_is_taken(vector_conn: Conn, own: CorpusTable) -> None:
    vector_conn.execute("""
        CREATE INDEX b ON "My app"."Docs" USING hnsw ("Vector" vector_cosine_ops);
        CREATE INDEX a ON "My app"."Docs" USING ivfflat ("Vector" vector_cosine_ops)
            WITH (lists = 1)""")

    assert (found(vector_conn, own).name, found(vector_conn, own).method) == ("a", "ivfflat")


def test_behind_a_view_it_is_the_tables_index(vector_conn: Conn, own: CorpusTable) -> None:
    vector_conn.execute("""
        CREATE INDEX behind ON "My app"."Docs" USING hnsw ("Vector" vector_cosine_ops);
        CREATE VIEW live AS SELECT * FROM "My app"."Docs" WHERE tenant = 'x';
        CREATE VIEW again AS SELECT * FROM live""")
    of_table = found(vector_conn, own)

    for name in ("live", "again"):
        view = describe(vector_conn, CorpusSettings(table=name, embedding="Vector"))
        assert found(vector_conn, view) == of_table
    rebuild(vector_conn, view, of_table)
    assert found(vector_conn, view).file != of_table.file


def test_inserting_and_vacuuming_leave_the_file_and_rebuilding_gives_another(
    vector_conn: Conn, own: CorpusTable
) -> None:
    vector_conn.execute("""
        CREATE INDEX "The index" ON "My app"."Docs" USING hnsw ("Vector" vector_cosine_ops)""")
    first = found(vector_conn, own)
    vector_conn.execute("""INSERT INTO "My app"."Docs" VALUES ('b', 0, 'three', '[2,1]')""")
    vector_conn.execute("""DELETE FROM "My app"."Docs" WHERE document_id = 'a'""")
    vector_conn.execute("""VACUUM "My app"."Docs" """)
    assert found(vector_conn, own) == first

    rebuild(vector_conn, own, first)

    second = found(vector_conn, own)
    assert second.file != first.file
    assert (second.name, second.definition) == (first.name, first.definition)
    for statement in (
        'REINDEX TABLE "My app"."Docs"',
        'REINDEX TABLE CONCURRENTLY "My app"."Docs"',
    ):
        before = found(vector_conn, own).file
        vector_conn.execute(statement.encode())
        assert found(vector_conn, own).file != before


def test_an_index_is_made_anew_with_the_servers_settings_left_as_they_were(
    conn: Conn, managed: CorpusTable
) -> None:
    conn.execute("SET statement_timeout = '7s'; SET maintenance_work_mem = '1MB'")

    rebuild(conn, managed, found(conn, managed))

    row = conn.execute(
        "SELECT current_setting('statement_timeout'), current_setting('maintenance_work_mem')"
    )
    assert row.fetchone() == ("7s", "1MB")


def test_a_partitioned_tables_index_is_rebuilt_in_every_partition(vector_conn: Conn) -> None:
    vector_conn.execute("""
        CREATE TABLE parts (document_id text, chunk_index int, content text, embedding vector(2),
            tenant text) PARTITION BY LIST (tenant);
        CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
        CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
        CREATE INDEX cosine ON parts USING hnsw (embedding vector_cosine_ops)""")
    table = describe(vector_conn, CorpusSettings(table="parts", tenant="tenant"))
    before = found(vector_conn, table).file.split()

    rebuild(vector_conn, table, found(vector_conn, table))

    after = found(vector_conn, table).file.split()
    assert len(before) == len(after) == 2
    assert not {*before} & {*after}


def test_another_build_of_the_same_index_serves_other_rankings(vector_conn: Conn) -> None:
    """The reason for all this: HNSW draws the levels of its graph at random."""
    register_vector(vector_conn)
    vectors = np.random.default_rng(0).normal(size=(3000, 32)).astype(np.float32)
    vector_conn.execute("""
        CREATE TABLE noisy (document_id text, chunk_index int, content text, embedding vector(32));
        SET maintenance_work_mem = '64MB'""")
    with vector_conn.cursor() as cursor, cursor.copy("COPY noisy FROM STDIN") as copy:
        for number, vector in enumerate(vectors):
            copy.write_row(("d", number, "x", "[" + ",".join(map(str, vector)) + "]"))
    vector_conn.execute("""
        CREATE INDEX noise ON noisy USING hnsw (embedding vector_cosine_ops)
            WITH (m = 4, ef_construction = 8); ANALYZE noisy""")
    table = describe(vector_conn, CorpusSettings(table="noisy"))

    def served() -> list[Any]:
        vector_conn.execute("SET hnsw.ef_search = 5; SET enable_seqscan = off")
        order = "ORDER BY embedding <=> %s LIMIT 5"
        query = f"SELECT array(SELECT chunk_index FROM noisy {order})"  # noqa: S608 - our own text
        return [vector_conn.execute(query.encode(), [each]).fetchone() for each in vectors[:100]]

    first, again = served(), served()
    rebuild(vector_conn, table, found(vector_conn, table))

    assert first == again
    assert served() != first


def test_who_does_not_own_the_index_cannot_rebuild_it(conn: Conn, managed: CorpusTable) -> None:
    index = found(conn, managed)
    conn.execute("""
        DROP ROLE IF EXISTS index_reader; CREATE ROLE index_reader;
        GRANT USAGE ON SCHEMA recallwatch_corpus TO index_reader;
        GRANT SELECT ON recallwatch_corpus.chunks TO index_reader""")
    try:
        conn.execute("SET ROLE index_reader")
        with pytest.raises(CorpusError, match="permission denied for index chunks_embedding"):
            rebuild(conn, managed, index)
    finally:
        conn.execute("RESET ROLE; DROP OWNED BY index_reader; DROP ROLE index_reader")


def test_a_server_that_is_gone_is_told_as_such(conn: Conn, managed: CorpusTable) -> None:
    index = found(conn, managed)
    conn.close()

    with pytest.raises(TransientError, match="could not rebuild the vector index"):
        rebuild(conn, managed, index)
