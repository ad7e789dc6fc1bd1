"""Texts and hashes of chunks, read by key, by document, or all of them."""

import hashlib
from typing import Any

import psycopg
import pytest

from pipeline.corpus import evidence, liveness
from pipeline.corpus.evidence import chunk_hashes, chunk_texts, each_chunk, each_row, text_hash
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError

Conn = psycopg.Connection[Any]

ROWS = [("7", 0, "um texto, ação 語"), ("7", 1, None), ("8", 0, "twice"), ("8", 0, "other")]


@pytest.fixture(params=["text", "integer"])
def table(request: pytest.FixtureRequest, vector_conn: Conn) -> CorpusTable:
    kind = str(request.param)
    columns = f"document_id {kind}, chunk_index integer, content text, embedding vector(2)"
    vector_conn.execute(f"CREATE TABLE docs ({columns})".encode())
    vector_conn.cursor().executemany("INSERT INTO docs VALUES (%s, %s, %s)", ROWS)
    return describe(vector_conn, CorpusSettings(table="docs"))


def test_texts_come_by_key_as_often_as_the_table_has_it(
    vector_conn: Conn, table: CorpusTable
) -> None:
    found = chunk_texts(vector_conn, table, ["7:0", "7:1", "8:0", "8:1", "x:0", "7"])

    assert {key: sorted(texts) for key, texts in found.items()} == {
        "7:0": ["um texto, ação 語"], "7:1": [""], "8:0": ["other", "twice"],
    }  # fmt: skip


def test_the_database_hashes_as_python_does(vector_conn: Conn, table: CorpusTable) -> None:
    keys = ["7:0", "7:1", "8:0", "9:0"]
    texts = chunk_texts(vector_conn, table, keys)

    hashes = chunk_hashes(vector_conn, table, keys)

    assert {key: sorted(each) for key, each in hashes.items()} == {
        key: sorted(hashlib.sha256(text.encode()).hexdigest() for text in each)
        for key, each in texts.items()
    }
    assert hashes["7:0"] == [text_hash("um texto, ação 語")]


def test_every_chunk_comes_once_or_those_of_some_documents(
    vector_conn: Conn, table: CorpusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "CHUNKS_PER_FETCH", 1)
    everything = [(f"{document}:{number}", text or "") for document, number, text in ROWS]

    assert sorted(each_chunk(vector_conn, table)) == sorted(everything)
    assert sorted(each_chunk(vector_conn, table, ["7", "none"])) == everything[:2]
    assert list(each_chunk(vector_conn, table, [])) == []


def test_each_row_brings_its_tenant_where_the_table_has_them(
    vector_conn: Conn, table: CorpusTable
) -> None:
    assert {tenant for *_, tenant in each_row(vector_conn, table)} == {None}
    vector_conn.execute("ALTER TABLE docs ADD COLUMN owner text")
    vector_conn.execute("UPDATE docs SET owner = 'acme' WHERE document_id::text = '7'")
    owned = describe(vector_conn, CorpusSettings(table="docs", tenant="owner"))

    found = {(key, tenant) for key, _, tenant in each_row(vector_conn, owned, ["7", "8"])}

    assert found == {("7:0", "acme"), ("7:1", "acme"), ("8:0", None)}


def test_keys_are_asked_for_in_parts(
    vector_conn: Conn, table: CorpusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "KEYS_PER_STATEMENT", 2)

    found = chunk_texts(vector_conn, table, ["9:9", "7:0", "8:5", "7:1", "8:0"])

    assert sorted(found) == ["7:0", "7:1", "8:0"]


def test_a_table_that_is_gone_is_said_in_one_line(vector_conn: Conn, table: CorpusTable) -> None:
    vector_conn.execute("DROP TABLE docs")

    for read in (
        lambda: chunk_texts(vector_conn, table, ["7:0"]),
        lambda: chunk_hashes(vector_conn, table, ["7:0"]),
        lambda: list(each_chunk(vector_conn, table)),
    ):
        with pytest.raises(CorpusError, match="could not read the corpus's texts") as caught:
            read()
        assert "\n" not in str(caught.value)
