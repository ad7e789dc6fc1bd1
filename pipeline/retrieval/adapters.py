"""Retrievers of LangChain and LlamaIndex, for strategies of kind `python`.

By what these libraries' retrievers look like, without importing them:

    [strategies.mine]
    kind = "python"
    path = "pipeline.retrieval.adapters:LangChain"
    settings = { retriever = "shop.search:make_retriever", key = "chunk_key" }

`retriever` names the retriever, or a function without arguments that makes it. Its results hold
their chunk key in the metadata field `key`, or document id and chunk index in the two fields
`document` and `chunk`; without either, their own id is the key. Neither library's retrievers take
a number of results or a tenant: set the number in the retriever, and, where questions have tenants,
write a function of your own instead, or set `tenant = "ignore"`.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.types import make_key

Pair = tuple[str, float | None]


@dataclass(frozen=True, slots=True)
class _Keys:
    """Where a result's chunk key is."""

    key: str | None = None
    document: str | None = None
    chunk: str | None = None

    def __post_init__(self) -> None:
        if (self.document is None) != (self.chunk is None) or (self.key and self.document):
            raise ValueError("give key, or both document and chunk, or none of them")

    def of(self, metadata: Mapping[str, Any], own: object) -> str:
        """Return the key; raises KeyError where the metadata lack the field."""
        if self.key is not None:
            return str(metadata[self.key])
        if self.document is not None and self.chunk is not None:
            return make_key(str(metadata[self.document]), int(metadata[self.chunk]))
        if own is None:
            raise KeyError("id")
        return str(own)


class _Adapter:
    """A retriever of a library, asked by its async method where it has one, else by the other."""

    methods: ClassVar[tuple[str, str]]

    def __init__(
        self,
        retriever: str,
        key: str | None = None,
        document: str | None = None,
        chunk: str | None = None,
    ) -> None:
        self._keys = _Keys(key, document, chunk)
        found, (is_async, plain) = _loaded(retriever), self.methods
        self._ask = getattr(found, is_async, None) or getattr(found, plain)
        self.search = self._search_async if hasattr(found, is_async) else self._search

    async def _search_async(self, question: str) -> list[Pair]:
        return _all_or_none([self._pair(each) for each in await self._ask(question)])

    def _search(self, question: str) -> list[Pair]:
        return _all_or_none([self._pair(each) for each in self._ask(question)])

    def _pair(self, result: Any) -> Pair:  # noqa: ANN401 - an object of the library's
        """Return the key and the score of a result."""
        raise NotImplementedError


class LangChain(_Adapter):
    """Anything with `ainvoke(question)` or `invoke(question)` that returns Documents.

    Such have `metadata` and `id`; a number in the metadata's `score` is taken for the score.
    """

    methods = ("ainvoke", "invoke")

    def _pair(self, result: Any) -> Pair:  # noqa: ANN401 - a Document
        own = getattr(result, "id", None)
        return self._keys.of(result.metadata, own), result.metadata.get("score")


class LlamaIndex(_Adapter):
    """Anything with `aretrieve(question)` or `retrieve(question)` that returns NodeWithScores.

    Such have `score` and `node`, and this `metadata` and `node_id`.
    """

    methods = ("aretrieve", "retrieve")

    def _pair(self, result: Any) -> Pair:  # noqa: ANN401 - a NodeWithScore
        return self._keys.of(result.node.metadata, result.node.node_id), result.score


def _loaded(path: str) -> Any:  # noqa: ANN401 - the owner's retriever
    """Return what a dotted path names, called where it is a function or a class."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for step in name.split("."):
        found = getattr(found, step)
    is_retriever = any(hasattr(found, method) for method in ("invoke", "retrieve"))
    return found if is_retriever and not isinstance(found, type) else found()


def _all_or_none(pairs: list[Pair]) -> list[Pair]:
    """Leave all scores out where one has none: what is left would be no order."""
    if all(score is not None for _, score in pairs):
        return pairs
    return [(key, None) for key, _ in pairs]
