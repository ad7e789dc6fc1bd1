import gzip
import json
from collections import Counter
from typing import Any

import psycopg
import pytest

from pipeline.corpus.liveness import live_keys
from pipeline.corpus.loading import load
from pipeline.corpus.reading import read_chunks
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import show
from pipeline.corpus.table import describe
from pipeline.types import Level
from tests.integration.pipeline.corpus.conftest import FakeModel
from tests.shared import COLLECTIONS, collection, needs_shared

pytestmark = needs_shared

Conn = psycopg.Connection[Any]


def _records(name: str) -> list[dict[str, Any]]:
    stored = collection(name).chunks.read_bytes()
    packed = stored.startswith(b"\x1f\x8b")
    return [json.loads(x) for x in (gzip.decompress(stored) if packed else stored).splitlines()]


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_real_collection_is_loaded_whole_and_then_left_alone(
    conn: Conn, model: FakeModel, name: str
) -> None:
    records = _records(name)
    blank = sum(not record["content"].strip() for record in records)
    path = collection(name).chunks

    first = load(conn, read_chunks(path, 8), model, model="fake", dimensions=8)
    second = load(conn, read_chunks(path, 8), model, model="fake", dimensions=8)

    assert (first.inserted, first.total, first.without_embedding) == (
        len(records),
        len(records),
        blank,
    )
    assert first.embedded == len(records) - blank
    assert (second.unchanged, second.embedded) == (len(records), 0)

    summary = show(conn, describe(conn, CorpusSettings()))
    assert summary.documents == len({record["document_id"] for record in records})
    assert summary.tenants == Counter(record.get("tenant") for record in records)
    assert summary.languages == Counter(record["language"] for record in records)
    assert summary.blank_contents == summary.missing_embeddings == blank


def test_cranfields_two_empty_abstracts_are_chunks_without_a_vector(
    conn: Conn, model: FakeModel
) -> None:
    path = collection("cranfield-en").chunks

    report = load(conn, read_chunks(path), model, model="fake", dimensions=8)

    assert report.without_embedding == 2
    blank = conn.execute("""
        SELECT document_id FROM recallwatch_corpus.chunks WHERE embedding IS NULL ORDER BY 1""")
    assert blank.fetchall() == [("471",), ("995",)]


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_expected_key_of_a_real_golden_set_is_live(
    conn: Conn, model: FakeModel, name: str
) -> None:
    lines = collection(name).golden.read_text(encoding="utf-8").splitlines()
    expected = {key for line in lines for key in json.loads(line)["expected"]}
    load(conn, read_chunks(collection(name).chunks), model, model="fake", dimensions=8)
    table = describe(conn, CorpusSettings())

    assert live_keys(conn, table, expected | {"nowhere:0"}, Level.CHUNK) == expected
