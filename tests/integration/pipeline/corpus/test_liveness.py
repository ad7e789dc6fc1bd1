from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import dict_row

from pipeline.corpus import liveness
from pipeline.corpus.liveness import live_keys
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError
from pipeline.types import Level, document_of
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]

AN_ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
URL = "https://a.example:80/b"


def _own_table(
    conn: Conn, document_type: str, rows: list[tuple[str, int]], index_type: str = "integer"
) -> CorpusTable:
    columns = f"document_id {document_type}, chunk_index {index_type}, content text"
    conn.execute(f"CREATE TABLE docs ({columns}, embedding vector(2))".encode())
    conn.cursor().executemany("INSERT INTO docs VALUES (%s, %s)", rows)
    return describe(conn, CorpusSettings(table="docs"))


def test_keys_of_the_managed_table_live_by_their_last_colon(conn: Conn, model: FakeModel) -> None:
    load(conn, [Chunk(URL, 0, "a"), Chunk(URL, 12, "b")], model, model="m", dimensions=8)
    table = describe(conn, CorpusSettings())

    live = live_keys(
        conn, table, [f"{URL}:0", f"{URL}:12", f"{URL}:1", URL, "https:0", f"{URL}:"], Level.CHUNK
    )

    assert live == {f"{URL}:0", f"{URL}:12"}


def test_document_level_gives_document_ids(conn: Conn, model: FakeModel) -> None:
    load(conn, [Chunk(URL, 0, "a"), Chunk("b", 0, "b")], model, model="m", dimensions=8)
    table = describe(conn, CorpusSettings())

    live = live_keys(conn, table, [f"{URL}:7", f"{URL}:8", "b", "c:0"], Level.DOCUMENT)

    assert live == {URL, "b"}


@pytest.mark.parametrize("integer", ["smallint", "integer", "bigint"])
def test_integer_ids_are_compared_as_integers(vector_conn: Conn, integer: str) -> None:
    table = _own_table(vector_conn, integer, [("7", 0), ("-3", 2)])
    dead = [
        "07:0",
        "+7:0",
        " 7:0",
        "7.0:0",
        "x:0",
        ":0",
        "7:00",
        "7:x",
        f"{10**30}:0",
        "\N{ARABIC-INDIC DIGIT SEVEN}:0",
    ]

    live = live_keys(vector_conn, table, ["7:0", "-3:2", "7:2", f"{2**63}:0", *dead], Level.CHUNK)

    assert live == {"7:0", "-3:2"}


def test_uuids_are_compared_as_uuids(vector_conn: Conn) -> None:
    table = _own_table(vector_conn, "uuid", [(AN_ID, 0)])
    keys = [f"{AN_ID}:0", f"{AN_ID.upper()}:0", f"{AN_ID.replace('-', '')}:0", "x:0", f"{AN_ID}:1"]

    assert live_keys(vector_conn, table, keys, Level.CHUNK) == {f"{AN_ID}:0"}
    assert live_keys(vector_conn, table, keys, Level.DOCUMENT) == {AN_ID}


@pytest.mark.parametrize("kind", ["varchar(20)", "char(3)", "numeric(6,2)", "date", "name"])
def test_ids_of_other_types_live_as_the_key_expression_writes_them(
    vector_conn: Conn, kind: str
) -> None:
    value = {"numeric(6,2)": "1.50", "date": "2026-01-31"}.get(kind, "abc")
    table = _own_table(vector_conn, kind, [(value, 0)])
    ((key,),) = vector_conn.execute(
        sql.SQL("SELECT {} FROM {}").format(table.key_expression(), table.relation)
    ).fetchall()

    assert live_keys(vector_conn, table, [key, "1.5:0", "x:0"], Level.CHUNK) == {key}


def test_a_chunk_index_of_text_is_compared_as_text(vector_conn: Conn) -> None:
    vector_conn.execute("CREATE DOMAIN part AS text")
    table = _own_table(vector_conn, "text", [("a", 7)], index_type="part")
    vector_conn.execute("INSERT INTO docs VALUES ('a', 'intro')")

    live = live_keys(vector_conn, table, ["a:7", "a:07", "a:intro", "a:x"], Level.CHUNK)

    assert live == {"a:7", "a:intro"}


def test_keys_that_postgresql_cannot_hold_are_not_live(vector_conn: Conn) -> None:
    table = _own_table(vector_conn, "text", [("a", 0)])

    assert live_keys(vector_conn, table, ["a\0:0", "\ud800:0", "a:0"], Level.CHUNK) == {"a:0"}


def test_no_keys_are_no_question(vector_conn: Conn) -> None:
    assert live_keys(vector_conn, _own_table(vector_conn, "text", []), [], Level.CHUNK) == set()


def test_many_keys_go_in_several_statements(
    vector_conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "KEYS_PER_STATEMENT", 7)
    table = _own_table(vector_conn, "text", [("a", n) for n in range(0, 50, 2)])

    live = live_keys(vector_conn, table, (f"a:{n}" for n in range(50)), Level.CHUNK)

    assert live == {f"a:{n}" for n in range(0, 50, 2)}


def _scans(conn: Conn) -> dict[str, int]:
    """Return how often this session has read the table in full and by its index."""
    statement = "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'docs'"
    (row,) = conn.cursor(row_factory=dict_row).execute(statement)
    return row


@pytest.mark.parametrize("kind", ["text", "varchar", "bigint", "integer", "uuid"])
def test_few_keys_of_a_large_corpus_are_found_in_the_index(vector_conn: Conn, kind: str) -> None:
    table = _own_table(vector_conn, kind, [])
    ids = [str(UUID(int=n)) if kind == "uuid" else str(n) for n in range(20_000)]
    with vector_conn.cursor().copy("COPY docs (document_id, chunk_index) FROM STDIN") as copy:
        for document_id in ids:
            copy.write_row((document_id, 0))
    vector_conn.execute("CREATE UNIQUE INDEX ON docs (document_id, chunk_index); ANALYZE docs")
    key = f"{ids[77]}:0"

    with vector_conn.transaction():
        before = _scans(vector_conn)
        assert live_keys(vector_conn, table, [key, f"{ids[0]}:1"], Level.CHUNK) == {key}
        after = _scans(vector_conn)

    assert after["seq_scan"] == before["seq_scan"]
    assert after["idx_scan"] > before["idx_scan"]


_DOCUMENTS = st.sampled_from(["a", "a:1", "", ":", "https://x:8", "A", " a", "ä", "1"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sets(st.tuples(_DOCUMENTS, st.integers(0, 3)), max_size=8),
    st.lists(
        st.tuples(_DOCUMENTS, st.sampled_from(["0", "1", "2", "3", "00", "x", ""])).map(":".join)
    ),
)
def test_live_is_what_the_corpus_and_the_keys_have_in_common(
    vector_conn: Conn, rows: set[tuple[str, int]], keys: list[str]
) -> None:
    vector_conn.execute("DROP TABLE IF EXISTS docs")
    table = _own_table(vector_conn, "text", list(rows))
    stored = {f"{document}:{number}" for document, number in rows}

    assert live_keys(vector_conn, table, keys, Level.CHUNK) == stored & set(keys)
    assert live_keys(vector_conn, table, keys, Level.DOCUMENT) == {
        document for document, _ in rows
    } & {document_of(key) for key in keys}


def test_a_table_that_may_not_be_read_is_a_corpus_error(vector_conn: Conn) -> None:
    table = _own_table(vector_conn, "text", [("a", 0)])
    vector_conn.execute("SET ROLE pg_monitor")

    with pytest.raises(CorpusError, match="permission denied for table docs; grant it"):
        live_keys(vector_conn, table, ["a:0"], Level.CHUNK)


def test_a_table_that_has_changed_since_it_was_described_is_a_corpus_error(
    vector_conn: Conn,
) -> None:
    table = _own_table(vector_conn, "text", [("a", 0)])
    vector_conn.execute("ALTER TABLE docs DROP chunk_index")

    with pytest.raises(CorpusError, match="could not look keys up in the corpus: column"):
        live_keys(vector_conn, table, ["a:0"], Level.CHUNK)
