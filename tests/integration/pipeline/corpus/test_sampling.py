"""Chunks drawn to write questions from: each tenant and document its share, the same by a seed."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import psycopg
import pytest

from pipeline.corpus import sampling
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.corpus.sampling import Sampler
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.table import describe
from pipeline.generation.sampling import DrawnChunk
from tests.integration.pipeline.corpus.conftest import FakeModel

Conn = psycopg.Connection[Any]


@pytest.fixture
def corpus(conn: Conn, model: FakeModel) -> Conn:
    """Load two tenants: acme with one large document and nine small, globex with a single one."""
    rows = [("big", number, "acme") for number in range(60)]
    rows += [(f"small{n}", 0, "acme") for n in range(9)]
    rows += [("other", number, "globex") for number in range(3)]
    chunks = [Chunk(d, n, f"{d} {n} " + "x" * 50, tenant, "en") for d, n, tenant in rows]
    chunks.append(Chunk("short", 0, "brief", "acme"))
    load(conn, chunks, model, model="m", dimensions=8)
    return conn


def sampler(conn: Conn, **settings: Any) -> Sampler:  # noqa: ANN401 - fields of CorpusSettings
    table = describe(conn, CorpusSettings(**settings))
    return Sampler(conn, table, min_characters=50)


def keys(drawn: Sequence[DrawnChunk]) -> list[str]:
    return [each.chunk.key for each in drawn]


def test_tenants_and_documents_take_turns(corpus: Conn) -> None:
    first = list(islice(sampler(corpus).draw(seed=1), 6))
    within = list(islice(sampler(corpus).draw(seed=1, tenant="acme"), 10))

    assert Counter(each.chunk.tenant for each in first) == {"acme": 3, "globex": 3}
    documents = [each.place[0] for each in within]
    assert len(set(documents)) == 10, "a document's second chunk comes after the first of each"


def test_all_long_enough_come_once_in_the_end(
    corpus: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "FIRST_PAGE", 5)

    drawn = keys(list(sampler(corpus).draw(seed=1)))

    assert len(drawn) == len(set(drawn)) == 72
    assert "short:0" not in drawn


def test_a_seed_decides_the_order_whatever_the_pages(
    corpus: Conn, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = keys(list(sampler(corpus).draw(seed=3)))
    monkeypatch.setattr(sampling, "FIRST_PAGE", 7)

    assert keys(list(sampler(corpus).draw(seed=3))) == once
    assert keys(list(sampler(corpus).draw(seed=4))) != once


def test_a_chunk_comes_with_its_text_labels_and_vector(corpus: Conn, model: FakeModel) -> None:
    drawn = next(sampler(corpus).draw(seed=1, tenant="globex"))

    content = drawn.chunk.content
    assert content.startswith("other ")
    assert (drawn.chunk.tenant, drawn.chunk.language) == ("globex", "en")
    assert drawn.vector is not None
    np.testing.assert_allclose(drawn.vector, model.vector(content), rtol=1e-6)


def test_the_neighbours_are_the_next_chunk_and_the_one_before(corpus: Conn) -> None:
    one = sampler(corpus)
    drawn = {each.chunk.key: each for each in one.draw(seed=1)}

    assert keys(one.neighbours(drawn["big:7"])) == ["big:8", "big:6"]
    assert keys(one.neighbours(drawn["big:59"])) == ["big:58"]
    assert keys(one.neighbours(drawn["small1:0"])) == []


def test_similar_chunks_are_of_other_documents_and_the_same_tenant(corpus: Conn) -> None:
    one = sampler(corpus)
    drawn = {each.chunk.key: each for each in one.draw(seed=1)}
    of_acme = [each for each in drawn.values() if each.chunk.tenant == "acme"]
    asked = drawn["small3:0"]
    assert asked.vector is not None
    cosines = {
        each.chunk.key: float(
            asked.vector @ each.vector / np.linalg.norm(asked.vector) / np.linalg.norm(each.vector)
        )
        for each in of_acme
        if each.vector is not None and each.place[0] != "small3"
    }
    nearest = sorted(cosines, key=lambda key: -cosines[key])

    found = keys(one.similar(asked, below=1.1))
    farther = keys(one.similar(asked, below=cosines[nearest[0]]))

    assert found
    assert found == nearest[: len(found)]
    assert farther == found[1:]
    assert keys(one.similar(drawn["other:0"], below=1.1)) == [], "globex has no other document"


def test_an_own_table_without_tenants_and_with_other_types_is_drawn_from(conn: Conn) -> None:
    conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    conn.execute("CREATE TABLE docs (id bigint, part text, body text, v vector(2))")
    conn.execute("""
        INSERT INTO docs
        SELECT 2^40 + n / 2, chr(97 + n % 2), repeat('y', 60) || n,
            CASE WHEN n > 2 THEN '[1,2]'::vector END
        FROM generate_series(0, 5) n
    """)
    one = sampler(conn, table="docs", document_id="id", chunk_index="part", content="body",
                  embedding="v")  # fmt: skip

    drawn = list(one.draw(seed=1))

    assert len(drawn) == 6
    assert {each.chunk.tenant for each in drawn} == {None}
    assert sum(each.vector is None for each in drawn) == 3
    for each in drawn:
        [found] = one.neighbours(each)
        assert (found.place[0], found.place != each.place) == (each.place[0], True)
    assert one.similar(next(each for each in drawn if each.vector is None), below=1.1) == []
    assert {each.chunk.key for each in one.at(each.chunk for each in drawn[:2])} == {
        each.chunk.key for each in drawn[:2]
    }


@pytest.mark.parametrize("kind", ["halfvec", "sparsevec", "bit"])
def test_a_table_whose_vectors_are_of_another_type_is_drawn_from(conn: Conn, kind: str) -> None:
    conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
    literals = {
        "halfvec": ["[1,0,1]", "[1,0.1,1]", "[0,1,0]"],
        "sparsevec": ["{1:1,3:1}/3", "{1:1,2:0.1,3:1}/3", "{2:1}/3"],
        "bit": ["101", "111", "010"],
    }[kind]
    columns = f"document_id text, chunk_index int, content text, embedding {kind}(3)"
    conn.execute(f"CREATE TABLE docs ({columns})".encode())
    for number, literal in enumerate(literals):
        conn.execute("INSERT INTO docs VALUES (%s, 0, %s, %s)", [f"d{number}", "y" * 60, literal])
    one = sampler(conn, table="docs")
    drawn = {each.chunk.key: each for each in one.draw(seed=1)}

    vector = drawn["d0:0"].vector

    assert vector is not None
    assert vector.tolist() == [1, 0, 1]
    assert keys(one.similar(drawn["d0:0"], below=1.1)) == ["d1:0", "d2:0"]
    assert keys(one.similar(drawn["d0:0"], below=0.3)) == ["d2:0"]


@pytest.fixture
def shared_ids(vector_conn: Conn) -> Conn:
    """Give a table in which two tenants, and rows of none, have documents of the same ids."""
    vector_conn.execute("""
        CREATE TABLE shared AS
        SELECT d AS document_id, n AS chunk_index, owner AS tenant,
            coalesce(owner, 'nobody') || repeat(' says', 20) || d || n AS content,
            format('[%s,%s]', n + 1, d)::vector AS embedding
        FROM generate_series(0, 4) d, generate_series(0, 3) n,
            unnest(ARRAY['acme', 'globex', NULL]) owner
    """)
    return vector_conn


@pytest.mark.parametrize("tenant", ["acme", "globex", None])
def test_a_tenants_chunks_are_its_own_where_others_have_documents_of_the_same_id(
    shared_ids: Conn, tenant: str | None
) -> None:
    one = sampler(shared_ids, table="shared", tenant="tenant", language=None, text_search=None)

    drawn = list(one.draw(seed=1, tenant=tenant))

    assert Counter((each.chunk.key, each.chunk.tenant) for each in drawn) == {
        (f"{d}:{n}", owner): 1
        for d in range(5) for n in range(4)
        for owner in ([tenant] if tenant else ["acme", "globex", None])
    }  # fmt: skip
    for each in drawn:
        owner = each.chunk.tenant
        around = [*one.neighbours(each), *one.similar(each, below=1.1), *one.at([each.chunk])]
        assert {found.chunk.tenant for found in around} == {owner}
        assert all(found.chunk.content.startswith(owner or "nobody") for found in [each, *around])
