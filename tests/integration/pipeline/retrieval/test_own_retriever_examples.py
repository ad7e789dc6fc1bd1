"""The examples of docs/own_retriever.md, as they stand there, over libraries of the same shape."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.python import PythonRetriever
from pipeline.retrieval.strategies import PythonStrategy
from pipeline.types import Failure
from tests.conftest import REPOSITORY
from tests.integration.pipeline.retrieval.corpora import questions, ranked

PAGE = (REPOSITORY / "docs" / "own_retriever.md").read_text()

# What the examples import. Chunk n holds the words "a" to the n-th letter, so "a" finds all; odd
# chunks are the tenant's. `Client` belongs to its event loop, as asynchronous clients do.
STAND_INS = {
    "shop/__init__.py": "",
    "shop/chunks.py": """
import numpy as np

KEYS = [f"d:{n}" for n in range(6)]
TENANTS = ["x" if n % 2 else None for n in range(6)]
VECTORS = np.eye(6, dtype=np.float32)[::-1]


def holding(word, k, tenant=None):
    if word == "!":
        raise ConnectionError("the store is down")
    rows = [n for n in range("abcdef".index(word), 6) if tenant in (None, TENANTS[n])]
    return [(n, 1 - n / 10) for n in rows[:k]]
""",
    "shop/catalogue.py": """
from dataclasses import dataclass
from shop.chunks import KEYS, holding


@dataclass
class Hit:
    key: str
    score: float


def search(text, limit, shop):
    return [Hit(KEYS[n], score) for n, score in holding(text, limit, shop)]
""",
    "shop/client.py": """
import asyncio
from shop.chunks import holding


class Client:
    def __init__(self, timeout):
        self.loop = None

    async def search(self, text, size, beam, shop):
        self.loop = self.loop or asyncio.get_running_loop()
        assert self.loop is asyncio.get_running_loop()
        found = holding(text, min(size, beam), shop)
        return {"hits": [{"document": "d", "part": n, "score": score} for n, score in found]}
""",
    "shop/rag.py": """
from dataclasses import dataclass, field
from shop.chunks import KEYS, holding


@dataclass
class Document:
    page_content: str
    metadata: dict
    id: str | None = None


class Store:
    async def asimilarity_search(self, query, k=4, filter=None):
        tenant = filter["tenant"] if filter else None
        return [Document("", {"chunk_key": KEYS[n]}) for n, _ in holding(query, k, tenant)]


class Retriever:
    async def ainvoke(self, input, config=None, **kwargs):
        return await Store().asimilarity_search(input, 3)

    def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs):
        return [self._one(each) for each in inputs]

    def _one(self, text):
        try:
            return [Document("", {"chunk_key": KEYS[n]}) for n, _ in holding(text, 3)]
        except ConnectionError as error:
            return error


store = Store()
make_retriever = Retriever
""",
    "shop/indexes.py": """
from dataclasses import dataclass
from shop.chunks import holding


@dataclass
class TextNode:
    node_id: str
    metadata: dict


@dataclass
class NodeWithScore:
    node: TextNode
    score: float | None = None


class Retriever:
    def __init__(self, similarity_top_k=3, filters=None):
        self.k = similarity_top_k
        self.tenant = filters.filters[0].value if filters else None

    async def aretrieve(self, question):
        return [
            NodeWithScore(TextNode(f"n-{n}", {"file_name": "d", "part": n}), score)
            for n, score in holding(question, self.k, self.tenant)
        ]


class Index:
    def as_retriever(self, **kwargs):
        return Retriever(**kwargs)


index = Index()
make_retriever = Retriever
""",
    "llama_index/__init__.py": "",
    "llama_index/core/__init__.py": "",
    "llama_index/core/vector_stores.py": """
from dataclasses import dataclass


@dataclass
class ExactMatchFilter:
    key: str
    value: str | None


@dataclass
class MetadataFilters:
    filters: list
""",
}

WITH_TENANT = ["own", "fast", "thorough", "langchain-store", "llamaindex-index"]
WITHOUT = ["langchain", "langchain-batch", "llamaindex"]


def strategies() -> dict[str, PythonStrategy]:
    found: dict[str, Any] = {}
    for block in re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        found |= tomllib.loads(block)["strategies"]
    return TypeAdapter(dict[str, PythonStrategy]).validate_python(found)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the page's files, and those that they import."""
    files = re.findall(r"^```python\n# (shop/\w+\.py)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for name, text in [*STAND_INS.items(), *files]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in [name for name in sys.modules if name.partition(".")[0] in {"shop", "llama_index"}]:
        del sys.modules[name]


def example(name: str, folder: Path) -> PythonRetriever:
    return PythonRetriever(name, strategies()[name], PythonHost(folder))


def test_no_example_goes_untried() -> None:
    assert sorted(strategies()) == sorted([*WITH_TENANT, *WITHOUT, "matrix"])


@pytest.mark.parametrize("name", WITH_TENANT)
def test_an_example_with_tenants_finds_its_tenants_chunks(name: str, folder: Path) -> None:
    retriever = example(name, folder)
    for _ in range(2):
        batch = questions(texts=["a", "c", "d"], tenants=[None, None, "x"])
        found = ranked(retriever.retrieve(batch, 3))
        assert [list(each.keys) for each in found] == [
            ["d:0", "d:1", "d:2"], ["d:2", "d:3", "d:4"], ["d:3", "d:5"],
        ]  # fmt: skip


@pytest.mark.parametrize("name", [*WITH_TENANT, *WITHOUT])
def test_what_an_example_cannot_ask_is_a_failure(name: str, folder: Path) -> None:
    good, bad = example(name, folder).retrieve(questions(texts=["d", "!"]), 2)
    assert list(ranked([good])[0].keys) == ["d:3", "d:4"]
    assert bad == Failure("ConnectionError: the store is down")


@pytest.mark.parametrize("name", ["own", "fast", "thorough", "llamaindex", "llamaindex-index"])
def test_scores_are_those_of_the_search(name: str, folder: Path) -> None:
    [found] = ranked(example(name, folder).retrieve(questions(texts=["b"]), 3))
    assert list(found.scores) == pytest.approx([0.9, 0.8, 0.7])


def test_vectors_of_all_questions_are_compared_at_once(folder: Path) -> None:
    vectors = np.array([[0, 0, 0, 0, 1, 2], [3, 0, 0, 0, 0, 0]], np.float32)
    retriever = example("matrix", folder)
    assert retriever.needs_vectors
    found = ranked(retriever.retrieve(questions(vectors=vectors, tenants=["x", None]), 2))
    assert [list(each.keys) for each in found] == [["d:0", "d:1"], ["d:5", "d:0"]]
    assert [list(each.scores) for each in found] == [[2, 1], [3, 0]]
