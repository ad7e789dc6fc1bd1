"""Texts of chunks by key, and near-duplicates, against cosines taken by numpy."""

from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from pipeline.corpus import neighbours
from pipeline.corpus.loading import load
from pipeline.corpus.neighbours import contents, near_duplicates
from pipeline.corpus.reading import Chunk
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import CorpusTable, describe
from pipeline.errors import CorpusError
from pipeline.types import FloatMatrix, make_key
from tests.integration.pipeline.corpus.conftest import CHUNKS, FakeModel

Conn = psycopg.Connection[Any]

LEAST = 0.9


def own_table(conn: Conn, types: tuple[str, str], vectors: FloatMatrix) -> CorpusTable:
    """Fill a user's own table with a chunk a vector: document i // 3, chunk i % 3."""
    columns = f"document_id {types[0]}, chunk_index {types[1]}, content text, embedding vector(3)"
    conn.execute(f"CREATE TABLE docs ({columns})".encode())
    for i, vector in enumerate(vectors):
        conn.execute(
            sql.SQL("INSERT INTO docs VALUES (%s::text::{}, %s::text::{}, %s, %s::real[])").format(
                *map(sql.SQL, types)
            ),
            [str(i // 3), str(i % 3), f"text {i}", vector.tolist()],
        )
    return describe(conn, CorpusSettings(table="docs"))


def vectors(n: int) -> FloatMatrix:
    """Return n vectors in three dimensions, many of them close to each other."""
    drawn: FloatMatrix = np.random.default_rng(7).standard_normal((n, 3)).astype(np.float32)
    return drawn


def test_contents_are_those_of_the_keys_that_are_there(conn: Conn, model: FakeModel) -> None:
    load(conn, CHUNKS, model, model="m", dimensions=8)
    table = describe(conn, CorpusSettings())
    keys = ["a:1", "https://b.example:80/c:0", "a:01", "gone:0", "no colon", "d:0"]
    assert contents(conn, table, keys) == {
        "a:1": "As baleias cantam.", "https://b.example:80/c:0": "Whales.", "d:0": " \n",
    }  # fmt: skip


@pytest.mark.parametrize(
    "types",
    [("text", "integer"), ("bigint", "smallint"), ("varchar(9)", "text"), ("numeric", "bigint")],
)
def test_columns_of_every_type_are_looked_up(vector_conn: Conn, types: tuple[str, str]) -> None:
    table = own_table(vector_conn, types, vectors(7))
    assert contents(vector_conn, table, ["2:0", "0:1", "0:7", "x:0"]) == {
        "2:0": "text 6", "0:1": "text 1",
    }  # fmt: skip


def test_many_keys_are_asked_for_some_at_a_time(
    vector_conn: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "KEYS_PER_STATEMENT", 2)
    table = own_table(vector_conn, ("text", "integer"), vectors(7))
    keys = [make_key(str(i // 3), i % 3) for i in range(7)]
    assert list(contents(vector_conn, table, keys).values()) == [f"text {i}" for i in range(7)]


def test_near_duplicates_are_those_that_numpy_finds(vector_conn: Conn) -> None:
    given = vectors(60)
    table = own_table(vector_conn, ("text", "integer"), given)
    unit = given.astype(np.float64) / np.linalg.norm(given, axis=1, keepdims=True)
    keys = [make_key(str(i // 3), i % 3) for i in range(len(given))]
    due = {
        keys[i]: [
            keys[j] for j in np.argsort(-(unit @ unit[i])) if j != i and unit[j] @ unit[i] >= LEAST
        ][: neighbours.NEAREST]
        for i in (0, 5, 40)
    }
    assert all(due.values())

    found = near_duplicates(vector_conn, table, due, least=LEAST)

    by_key = {key: [each.key for each in found if each.of == key] for key in due}
    assert by_key == due
    for each in found:
        pair = unit[keys.index(each.key)], unit[keys.index(each.of)]
        assert each.similarity == pytest.approx(float(pair[0] @ pair[1]), abs=1e-6)
        assert each.content == f"text {keys.index(each.key)}"


@pytest.mark.parametrize("kind", ["halfvec", "sparsevec", "bit"])
def test_near_duplicates_are_found_in_columns_of_other_types(vector_conn: Conn, kind: str) -> None:
    given = vectors(40)
    table = own_table(vector_conn, ("text", "integer"), given)
    change = "binary_quantize(embedding)::bit(3)" if kind == "bit" else f"embedding::{kind}(3)"
    vector_conn.execute(f"ALTER TABLE docs ALTER embedding TYPE {kind}(3) USING {change}".encode())
    table = describe(vector_conn, CorpusSettings(table="docs"))
    held = {"bit": np.sign(given), "halfvec": given.astype(np.float16)}.get(kind, given)
    unit = held / np.linalg.norm(held.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit[0]
    keys = [make_key(str(i // 3), i % 3) for i in range(len(given))]
    due = np.sort(cosines[1:][cosines[1:] >= LEAST])[::-1][: neighbours.NEAREST]

    found = near_duplicates(vector_conn, table, ["0:0"], least=LEAST)

    assert len(found) == len(due) > 0
    np.testing.assert_allclose([each.similarity for each in found], due, atol=1e-3)
    for each in found:
        assert each.similarity == pytest.approx(float(cosines[keys.index(each.key)]), abs=1e-3)


def test_chunks_of_other_tenants_and_without_vectors_are_no_near_duplicates(
    conn: Conn, model: FakeModel
) -> None:
    vector = model.vector("same")
    same = [
        Chunk("a", i, f"same {i}", tenant, embedding=vector)
        for i, tenant in enumerate(["acme", "acme", "globex", None])
    ]
    load(conn, [*same, Chunk("b", 0, "  ", tenant="acme")], model, model="m", dimensions=8)
    table = describe(conn, CorpusSettings())

    found = near_duplicates(conn, table, ["a:0", "a:2", "a:3", "b:0", "gone:1"], least=LEAST)

    assert [(each.of, each.key) for each in found] == [("a:0", "a:1")]


def test_a_key_that_two_tenants_have_is_the_wanted_tenants(vector_conn: Conn) -> None:
    vector_conn.execute("""
        CREATE TABLE shared AS SELECT 'd' AS document_id, n AS chunk_index, owner AS tenant,
            owner || n AS content, '[1,2]'::vector AS embedding
        FROM generate_series(0, 1) n, unnest(ARRAY['acme', 'globex']) owner
    """)
    settings = CorpusSettings(table="shared", tenant="tenant", language=None)
    table = describe(vector_conn, settings)

    for tenant in ("acme", "globex"):
        assert contents(vector_conn, table, ["d:0", "d:1"], tenant=tenant) == {
            "d:0": f"{tenant}0", "d:1": f"{tenant}1",
        }  # fmt: skip
        found = near_duplicates(vector_conn, table, ["d:0"], least=LEAST, tenant=tenant)
        assert [(each.key, each.content) for each in found] == [("d:1", f"{tenant}1")]
    assert contents(vector_conn, table, ["d:0"], tenant="nobody") == {}


def test_a_corpus_that_cannot_be_read_is_told(conn: Conn, model: FakeModel) -> None:
    load(conn, CHUNKS, model, model="m", dimensions=8)
    table = describe(conn, CorpusSettings())
    conn.execute("DROP TABLE recallwatch_corpus.chunks")
    with pytest.raises(CorpusError, match="does not exist"):
        contents(conn, table, ["a:0"])
