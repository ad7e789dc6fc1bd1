import re
import uuid
from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.errors import CorpusError, TransientError
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]

OWN = """CREATE TABLE docs (
    document_id text, chunk_index integer, content text, embedding vector(3), customer text)"""


def _refusal(conn: Conn, **settings: Any) -> str:  # noqa: ANN401 - settings of any type
    with pytest.raises(CorpusError) as caught:
        describe(conn, CorpusSettings(**settings))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def role(conn: Conn) -> Iterator[str]:
    """Give a role, with a name that needs quoting, that may do nothing."""
    name = f"Reader {uuid.uuid4().hex}"
    conn.execute(f'CREATE ROLE "{name}"'.encode())
    yield name
    conn.execute("RESET SESSION AUTHORIZATION")
    conn.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"'.encode())


def test_the_managed_table_is_described_with_all_its_columns(conn: Conn, model: FakeModel) -> None:
    load(conn, [Chunk("a", 0, "Text.")], model, model="m", dimensions=8)

    table = describe(conn, CorpusSettings())

    assert str(table) == "recallwatch_corpus.chunks"
    assert table.managed
    assert table.dimensions == 8
    assert table.types == {
        "document_id": "text",
        "chunk_index": "integer",
        "content": "text",
        "embedding": "vector",
        "tenant": "text",
        "language": "text",
        "text_search": "tsvector",
    }


def test_a_table_without_a_schema_is_found_by_the_search_path(vector_conn: Conn) -> None:
    vector_conn.execute("CREATE SCHEMA rag; SET search_path = rag, public")
    vector_conn.execute(OWN)

    table = describe(vector_conn, CorpusSettings(table="docs", tenant="customer"))

    assert (table.schema, table.name, table.managed) == ("rag", "docs", False)
    assert table.types["tenant"] == "text"
    assert not table.has("language")


def test_names_of_any_kind_are_found_and_can_be_searched(vector_conn: Conn) -> None:
    vector_conn.execute('''
        CREATE SCHEMA "My Schema";
        CREATE TABLE "My Schema"."Chunks.v2" (
            "Doc ""ID""" uuid, "select" smallint, "Tëxt" text, "e;s" vector(2));
        INSERT INTO "My Schema"."Chunks.v2" VALUES
            ('6fa459ea-ee8a-3ca4-894e-db77e160355e', 4, 'Text.', '[1,2]')''')

    table = describe(
        vector_conn,
        CorpusSettings(
            table="My Schema.Chunks.v2",
            document_id='Doc "ID"',
            chunk_index="select",
            content="Tëxt",
            embedding="e;s",
        ),
    )

    statement = sql.SQL("SELECT {}, {} FROM {} AS c").format(
        table.key_expression("c"), table.column("content", "c"), table.relation
    )
    assert vector_conn.execute(statement).fetchall() == [
        ("6fa459ea-ee8a-3ca4-894e-db77e160355e:4", "Text.")
    ]
    assert table.types["document_id"] == "uuid"


@pytest.mark.parametrize(
    "view",
    ["CREATE VIEW shown AS TABLE docs", "CREATE MATERIALIZED VIEW shown AS TABLE docs"],
)
def test_a_view_serves_as_a_table(vector_conn: Conn, view: LiteralString) -> None:
    vector_conn.execute(OWN)
    vector_conn.execute(view)

    assert describe(vector_conn, CorpusSettings(table="public.shown")).dimensions == 3


def test_undeclared_dimensions_are_measured_from_a_stored_vector(vector_conn: Conn) -> None:
    vector_conn.execute(OWN.replace("vector(3)", "vector"))
    settings = CorpusSettings(table="docs")

    assert describe(vector_conn, settings).dimensions is None

    vector_conn.execute("INSERT INTO docs (embedding) VALUES (NULL), ('[1,2,3,4]')")
    assert describe(vector_conn, settings).dimensions == 4


def test_a_missing_table_is_named_with_what_to_do(conn: Conn) -> None:
    message = _refusal(conn)

    assert "no table recallwatch_corpus.chunks" in message
    assert "recallwatch corpus load FILE" in message
    assert "[corpus] table" in message


def test_a_missing_table_is_told_with_the_tables_that_could_be_meant(vector_conn: Conn) -> None:
    vector_conn.execute(OWN)

    assert "tables with vectors: public.docs" in _refusal(vector_conn, table="Docs")


def test_a_missing_column_is_told_with_the_columns_that_there_are(vector_conn: Conn) -> None:
    vector_conn.execute(OWN)
    vector_conn.execute("ALTER TABLE docs ADD body text; ALTER TABLE docs DROP body")

    assert _refusal(vector_conn, table="docs", content="body") == (
        "table public.docs has no column 'body', which [corpus] content names; "
        "its columns: document_id, chunk_index, content, embedding, customer"
    )


@pytest.mark.parametrize("wrong", ["double precision[]", "bit varying(3)", "text"])
def test_an_embedding_that_is_no_vector_is_refused_with_its_type(
    vector_conn: Conn, wrong: str
) -> None:
    vector_conn.execute(OWN.replace("vector(3)", wrong))

    message = _refusal(vector_conn, table="docs")

    assert f"column public.docs.embedding is {wrong}, not pgvector's vector(n)" in message


def test_a_database_without_pgvector_is_told_so(conn: Conn) -> None:
    conn.execute(OWN.replace("vector(3)", "real[]"))

    assert "CREATE EXTENSION vector" in _refusal(conn, table="docs")


def test_pgvector_off_the_search_path_is_told_with_its_schema(conn: Conn) -> None:
    conn.execute("CREATE SCHEMA tools; CREATE EXTENSION vector SCHEMA tools")
    conn.execute(OWN.replace("vector(3)", "tools.vector(3)"))

    assert "pgvector is in schema tools" in _refusal(conn, table="docs")


def test_a_role_that_may_not_use_pgvectors_schema_is_told_the_grant_that_helps(
    conn: Conn, role: str
) -> None:
    conn.execute('CREATE SCHEMA "Tools"; CREATE EXTENSION vector SCHEMA "Tools"')
    conn.execute(OWN.replace("vector(3)", '"Tools".vector(3)'))
    conn.execute(f'GRANT SELECT ON docs TO "{role}"'.encode())
    conn.execute(b'SET search_path = public, "Tools"')
    conn.execute(f'SET SESSION AUTHORIZATION "{role}"'.encode())

    said = _refusal(conn, table="docs")

    (advice,) = re.findall("run `(.*)` as the schema's owner", said)
    conn.execute("RESET SESSION AUTHORIZATION")
    conn.execute(advice.encode())
    conn.execute(f'SET SESSION AUTHORIZATION "{role}"'.encode())
    assert describe(conn, CorpusSettings(table="docs")).dimensions == 3


def test_a_text_search_column_that_is_no_tsvector_is_refused(vector_conn: Conn) -> None:
    vector_conn.execute(OWN)

    message = _refusal(vector_conn, table="docs", text_search="content")

    assert "column public.docs.content is text, not tsvector" in message


def test_a_lost_connection_is_transient(conn: Conn, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [conn.info.backend_pid])

    with pytest.raises(TransientError, match="could not read the corpus table's description"):
        describe(conn, CorpusSettings())
