from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pipeline.corpus import managed
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.errors import CorpusError, InputError, TransientError
from tests.integration.pipeline.corpus.conftest import CHUNKS, FakeModel, load_all, rows

Conn = psycopg.Connection[Any]


def test_other_dimensions_are_refused_with_what_to_do(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    with pytest.raises(CorpusError, match=r"8 dimensions, these have 3; .*--replace FILE"):
        load_all(conn, CHUNKS, FakeModel(3))

    assert len(rows(conn, b"1")) == 4


def test_replace_leaves_nothing_of_the_old_table(conn: Conn, model: FakeModel) -> None:
    load_all(conn, CHUNKS, model)

    report = load_all(conn, CHUNKS[:2], FakeModel(3), replace=True)

    assert (report.inserted, report.embedded, report.total) == (2, 2, 2)
    assert rows(conn, b"vector_dims(embedding)") == [(3,), (3,)]
    assert load_all(conn, CHUNKS[:2], FakeModel(3)).unchanged == 2


def test_replace_needs_no_table_to_replace(conn: Conn, model: FakeModel) -> None:
    assert load_all(conn, CHUNKS, model, replace=True).total == 4


def test_a_replacement_that_fails_leaves_the_table_in_use_as_it_was(
    conn: Conn, model: FakeModel
) -> None:
    load_all(conn, CHUNKS, model)
    before = rows(conn, b"xmin, ctid")
    broken = FakeModel(3)
    broken.failing = {"Whales."}

    with pytest.raises(InputError):
        load_all(conn, CHUNKS, broken, replace=True)
    assert rows(conn, b"xmin, ctid") == before

    assert load_all(conn, CHUNKS, FakeModel(3), replace=True).total == 4
    assert conn.execute("SELECT to_regnamespace('recallwatch_corpus_replacement')").fetchone() == (
        None,
    )


def test_only_one_load_runs_at_a_time(conn: Conn, database: str, model: FakeModel) -> None:
    with (
        psycopg.connect(database, autocommit=True) as other,
        managed.only_loader(other),
        pytest.raises(CorpusError, match="another `recallwatch corpus load`"),
    ):
        load_all(conn, CHUNKS, model)

    assert load_all(conn, CHUNKS, model).inserted == 4


def test_a_connection_lost_during_a_load_is_transient(
    conn: Conn, database: str, model: FakeModel
) -> None:
    def chunks() -> Iterator[Chunk]:
        yield CHUNKS[0]
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [conn.info.backend_pid])

    with pytest.raises(TransientError, match="could not load the corpus"):
        load(conn, chunks(), model, model="fake", dimensions=8)


def test_a_role_that_may_not_install_pgvector_is_told_who_may(conn: Conn, model: FakeModel) -> None:
    conn.execute("SET ROLE pg_monitor")

    with pytest.raises(CorpusError, match="this role may not install pgvector"):
        load_all(conn, CHUNKS, model)


def test_a_role_that_may_not_write_is_told_what_it_lacks(
    vector_conn: Conn, model: FakeModel
) -> None:
    vector_conn.execute("SET ROLE pg_monitor")

    with pytest.raises(CorpusError, match=r"permission denied for database .*; grant it to"):
        load_all(vector_conn, CHUNKS, model)


def test_a_server_without_pgvector_is_told_so(conn: Conn, model: FakeModel) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="is not available"):
        conn.execute("CREATE EXTENSION of_no_server")
    conn.execute("""
        CREATE FUNCTION lack() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE 'extension "vector" is not available' USING ERRCODE = 'feature_not_supported';
            END $$;
        CREATE EVENT TRIGGER lacking ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION')
            EXECUTE FUNCTION lack()""")

    with pytest.raises(CorpusError, match="does not have pgvector; install its package"):
        load_all(conn, CHUNKS, model)


def _indexes(conn: Conn) -> set[tuple[str, str]]:
    return set(
        conn.execute("""
            SELECT am.amname, pg_get_indexdef(indexrelid, 1, true) FROM pg_index
            JOIN pg_class c ON c.oid = indexrelid JOIN pg_am am ON am.oid = c.relam
            WHERE indrelid = 'recallwatch_corpus.chunks'::regclass AND NOT indisprimary""")
    )


INDEXES = {("hnsw", "embedding"), ("gin", "text_search"), ("btree", "tenant")}


@pytest.mark.parametrize("replace_table", [False, True])
def test_the_table_is_indexed_and_counted(
    conn: Conn, model: FakeModel, replace_table: bool
) -> None:
    load_all(conn, CHUNKS, model, replace=replace_table)

    assert _indexes(conn) == INDEXES
    assert conn.execute(
        "SELECT reltuples FROM pg_class WHERE oid = 'recallwatch_corpus.chunks'::regclass"
    ).fetchone() == (4,)


def test_1536_dimensions_are_indexed(conn: Conn) -> None:
    assert load_all(conn, CHUNKS, FakeModel(1536)).warnings == ()

    assert _indexes(conn) == INDEXES


def test_above_2000_dimensions_there_is_no_vector_index_and_a_warning(conn: Conn) -> None:
    report = load_all(conn, CHUNKS, FakeModel(2001))

    (warning,) = report.warnings
    assert "no vector index: pgvector indexes 2000 dimensions at most" in warning
    assert _indexes(conn) == INDEXES - {("hnsw", "embedding")}


def test_an_index_without_the_room_to_build_in_parallel_is_built_by_one_process(
    conn: Conn, model: FakeModel
) -> None:
    conn.execute("""
        CREATE FUNCTION fill_shared_memory() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('max_parallel_maintenance_workers')::int > 0 THEN
                RAISE 'could not resize shared memory segment' USING ERRCODE = 'disk_full';
            END IF; END $$;
        CREATE EVENT TRIGGER full_memory ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
            EXECUTE FUNCTION fill_shared_memory()""")

    load_all(conn, CHUNKS, model)

    assert _indexes(conn) == INDEXES
