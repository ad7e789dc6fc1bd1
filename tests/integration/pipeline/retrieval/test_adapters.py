"""Retrievers of the shape that LangChain's and LlamaIndex's have, asked as a strategy."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import CorpusError, PermanentError
from pipeline.retrieval.own_host import PythonHost
from pipeline.retrieval.python import PythonRetriever
from pipeline.retrieval.strategies import PythonStrategy
from pipeline.types import Failure
from tests.integration.pipeline.retrieval.corpora import questions, ranked

# Stand-ins: langchain_core.retrievers.BaseRetriever and .documents.Document,
# llama_index.core.base.base_retriever.BaseRetriever and .schema.NodeWithScore.
SHOP = """
from dataclasses import dataclass, field


@dataclass
class Document:
    page_content: str
    metadata: dict = field(default_factory=dict)
    id: str | None = None


@dataclass
class TextNode:
    node_id: str
    metadata: dict = field(default_factory=dict)


@dataclass
class NodeWithScore:
    node: TextNode
    score: float | None = None


DOCUMENTS = [
    Document("one", {"chunk_key": "a:0", "source": "a.md", "part": 0}, "id-0"),
    Document("two", {"chunk_key": "a:1", "source": "a.md", "part": 1}, "id-1"),
]


class Plain:
    def invoke(self, question, config=None, **kwargs):
        if question == "poison":
            raise ConnectionError("store is down")
        return DOCUMENTS if question != "nothing" else []


class Base(Plain):
    async def ainvoke(self, question, config=None, **kwargs):
        return self.invoke(question)


class Scored(Base):
    def invoke(self, question, config=None, **kwargs):
        return [Document("one", {"chunk_key": "a:0", "score": 0.75})]


class Nodes:
    def retrieve(self, question):
        nodes = [TextNode(f"n-{n}", each.metadata) for n, each in enumerate(DOCUMENTS)]
        return [NodeWithScore(nodes[0], 0.9), NodeWithScore(nodes[1], 0.4)]


class AsyncNodes(Nodes):
    async def aretrieve(self, question):
        return [NodeWithScore(each.node) for each in self.retrieve(question)]


def make_retriever():
    return Base()


READY = Plain()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "shop_search.py").write_text(SHOP)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop("shop_search", None)


def adapter(folder: Path, kind: str, name: str, **settings: str) -> PythonRetriever:
    strategy = PythonStrategy.model_validate({
        "path": f"pipeline.retrieval.adapters:{kind}",
        "settings": {"retriever": f"shop_search:{name}"} | settings,
    })  # fmt: skip
    return PythonRetriever("mine", strategy, PythonHost(folder))


@pytest.mark.parametrize("name", ["make_retriever", "Base", "Plain", "READY"])
@pytest.mark.parametrize(("settings", "keys"), [
    ({"key": "chunk_key"}, ["a:0", "a:1"]),
    ({"document": "source", "chunk": "part"}, ["a.md:0", "a.md:1"]),
    ({}, ["id-0", "id-1"]),
])  # fmt: skip
def test_langchain_documents_are_read_by_their_metadata_or_id(
    folder: Path, name: str, settings: dict[str, str], keys: list[str]
) -> None:
    retriever = adapter(folder, "LangChain", name, **settings)
    found, nothing = ranked(retriever.retrieve(questions(texts=["q", "nothing"]), 5))
    assert (list(found.keys), list(found.scores)) == (keys, [1, 1 / 2])
    assert list(nothing.keys) == []


def test_a_score_in_the_metadata_is_the_score(folder: Path) -> None:
    retriever = adapter(folder, "LangChain", "Scored", key="chunk_key")
    [found] = ranked(retriever.retrieve(questions(texts=["q"]), 5))
    assert (list(found.keys), list(found.scores)) == (["a:0"], [0.75])


@pytest.mark.parametrize(("name", "scores"), [("Nodes", [0.9, 0.4]), ("AsyncNodes", [1, 1 / 2])])
def test_llamaindex_nodes_are_read_by_their_metadata_or_id(
    folder: Path, name: str, scores: list[float]
) -> None:
    [found] = ranked(
        adapter(folder, "LlamaIndex", name, key="chunk_key").retrieve(questions(texts=["q"]), 5)
    )
    assert (list(found.keys), list(found.scores)) == (["a:0", "a:1"], scores)
    [by_id] = ranked(adapter(folder, "LlamaIndex", name).retrieve(questions(texts=["q"]), 1))
    assert list(by_id.keys) == ["n-0"]


def test_what_the_retriever_raises_is_the_questions_failure(folder: Path) -> None:
    retriever = adapter(folder, "LangChain", "Plain", key="chunk_key")
    good, bad = retriever.retrieve(questions(texts=["q", "poison"]), 5)
    assert bad == Failure("ConnectionError: store is down")
    assert len(ranked([good])[0].keys) == 2
    [unknown] = adapter(folder, "LangChain", "Plain", key="no_such_field").retrieve(
        questions(texts=["q"]), 5
    )
    assert unknown == Failure("KeyError: 'no_such_field'")


def test_no_question_of_a_tenant_is_asked_of_them(folder: Path) -> None:
    with pytest.raises(CorpusError, match="takes no tenant: filter by it"):
        adapter(folder, "LangChain", "Base").retrieve(questions(texts=["q"], tenants=["t"]), 5)


def test_half_of_a_key_is_refused(folder: Path) -> None:
    with pytest.raises(PermanentError, match="give key, or both document and chunk, or none"):
        adapter(folder, "LlamaIndex", "Nodes", document="source")
