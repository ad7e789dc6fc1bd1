"""The examples of docs/http_examples.md, as they stand there, against servers of each shape."""

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from pydantic import TypeAdapter

from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.http.retriever import HttpRetriever
from pipeline.retrieval.strategies import HttpStrategy
from pipeline.types import Failure
from tests.integration.pipeline.retrieval.corpora import questions, ranked
from tests.loopback.search_server import (
    SearchServer,
    Shape,
    elasticsearch,
    opensearch,
    own,
    own_batch,
    qdrant,
    qdrant_batch,
    raw,
)

PAGE = Path(__file__).parents[5] / "docs" / "http_examples.md"

CHUNKS = {
    "https://h.example/p:0": ("x", "a b"),
    "d:10": ("y", "a c"),
    "d:11": (None, "b c"),
    "e:0": ("x", "c"),
}

TEXTS = ["a", "b", "c", "c"]
"""Words, as the vectors of Qdrant's loopback server stand for one each."""

TENANTS = [None, "x", None, "y"]


def examples() -> dict[str, HttpStrategy]:
    found: dict[str, Any] = {}
    for block in re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        found |= tomllib.loads(block)["strategies"]
    return TypeAdapter(dict[str, HttpStrategy]).validate_python(found)


def asked(server: SearchServer, name: str) -> HttpRetriever:
    strategy = examples()[name]
    strategy = strategy.model_copy(
        update={"url": f"http://{server.host}{urlsplit(strategy.url).path}"}
    )
    environment = dict.fromkeys(strategy.variables, "secret")
    return HttpRetriever(name, strategy, Endpoint(name, strategy, environment))


SHAPES: dict[str, Shape] = {
    "shop": own,
    "shop-batch": own_batch,
    "elasticsearch": elasticsearch,
    "opensearch": opensearch,
    "qdrant": qdrant,
    "qdrant-batch": qdrant_batch,
}


def test_no_example_goes_untried() -> None:
    assert sorted(examples()) == sorted(SHAPES)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_an_example_finds_what_its_server_finds(name: str) -> None:
    vectors = np.eye(3, dtype=np.float32)[["abc".index(text) for text in TEXTS]]
    with SearchServer(CHUNKS, SHAPES[name]) as server:
        batch = questions(texts=TEXTS, tenants=TENANTS, vectors=vectors)
        found = ranked(asked(server, name).retrieve(batch, 2))
        expected = [
            server.search(text, 2, tenant) for text, tenant in zip(TEXTS, TENANTS, strict=True)
        ]
        assert len({tuple(hits) for hits in expected}) == len(TEXTS)
        assert [list(zip(each.keys, each.scores, strict=True)) for each in found] == expected
        secrets = {server.requests[0].headers.get(name) for name in ("authorization", "api-key")}
        assert secrets & {"secret", "Bearer secret"}


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize("partial", [
    b'{"timed_out": true, "_shards": {"failed": 0}, "hits": {"hits": []}}',
    b'{"timed_out": false, "_shards": {"failed": 1}, "hits": {"hits": []}}',
])  # fmt: skip
def test_a_partial_answer_is_a_failure_and_an_empty_one_is_none(name: str, partial: bytes) -> None:
    whole = b'{"timed_out": false, "_shards": {"failed": 0}, "hits": {"hits": []}}'
    batch = questions(texts=["a"], vectors=np.eye(1, dtype=np.float32))
    with SearchServer(CHUNKS, SHAPES[name]) as server:
        server.script = [raw(200, whole), raw(200, partial)]
        retriever = asked(server, name)
        [empty] = ranked(retriever.retrieve(batch, 2))
        [failed] = retriever.retrieve(batch, 2)
    assert list(empty.keys) == []
    assert isinstance(failed, Failure)
    assert "the reply has no list of results at !timed_out" in failed.reason


def test_the_path_and_its_parameters_are_those_of_the_page() -> None:
    batch = questions(texts=["a"], vectors=np.eye(1, dtype=np.float32))
    with SearchServer(CHUNKS, opensearch) as server:
        asked(server, "opensearch").retrieve(batch, 2)
        assert server.requests[0].path == "/docs/_search?search_pipeline=hybrid"
