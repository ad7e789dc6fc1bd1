"""Rerankers over HTTP, in the words of Cohere, Jina, Voyage and text-embeddings-inference.

Sources: docs.cohere.com/reference/rerank, api.jina.ai (POST /v1/rerank),
docs.voyageai.com/reference/reranker-api, huggingface.github.io/text-embeddings-inference (/rerank).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.retrieval.http.call import Refused
from pipeline.retrieval.http.endpoint import Endpoint
from pipeline.retrieval.rerank.base import Candidates, Scored
from pipeline.retrieval.strategies.rerank import HttpReranker
from pipeline.types import Failure

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a request is worded, and where in the reply the results and their scores are."""

    body: Callable[[str | None, Candidates], Json]
    results: Callable[[Any], Any]
    score: str


def _cohere(model: str | None, asked: Candidates) -> Json:
    return {"model": model, "query": asked.question, "documents": list(asked.texts),
            "top_n": len(asked.texts)}  # fmt: skip


def _jina(model: str | None, asked: Candidates) -> Json:
    return _cohere(model, asked) | {"return_documents": False}


def _voyage(model: str | None, asked: Candidates) -> Json:
    return {"model": model, "query": asked.question, "documents": list(asked.texts),
            "top_k": len(asked.texts)}  # fmt: skip


def _tei(_model: str | None, asked: Candidates) -> Json:
    return {"query": asked.question, "texts": list(asked.texts), "truncate": True}


_SHAPES: Mapping[str, _Shape] = {
    "cohere": _Shape(_cohere, lambda reply: reply["results"], "relevance_score"),
    "jina": _Shape(_jina, lambda reply: reply["results"], "relevance_score"),
    "voyage": _Shape(_voyage, lambda reply: reply["data"], "relevance_score"),
    "tei": _Shape(_tei, lambda reply: reply, "score"),
}


class HttpRerankerClient:
    """Asks an endpoint once a question, or more often where it takes fewer documents at once.

    A score is of a question and a document, so those of several requests can be compared.
    """

    def __init__(self, settings: HttpReranker, endpoint: Endpoint) -> None:
        self._shape = _SHAPES[settings.shape]
        self._settings = settings
        self._endpoint = endpoint

    def score(self, asked: Sequence[Candidates]) -> list[Sequence[Scored] | Failure]:
        """See `Reranker.score`; raises as `Endpoint.post_all` does."""
        parts = [self._parts(each) for each in asked]
        together = [part for some in parts for part in some]
        bodies = [self._shape.body(self._settings.model, part) for part in together]
        replies = zip(self._endpoint.post_all(bodies), together, strict=True)
        read = iter([self._read(reply, part) for reply, part in replies])
        return [self._merged([next(read) for _ in some]) for some in parts]

    def _parts(self, asked: Candidates) -> list[Candidates]:
        size = self._settings.documents_at_once
        starts = range(0, len(asked.texts), size)
        return [Candidates(asked.question, asked.texts[start : start + size]) for start in starts]

    def _merged(self, parts: Sequence[Sequence[Scored] | Failure]) -> Sequence[Scored] | Failure:
        """Return the scores of a question's parts, or the first failure of one."""
        merged: list[Scored] = []
        for number, part in enumerate(parts):
            if isinstance(part, Failure):
                return part
            before = number * self._settings.documents_at_once
            merged += [Scored(before + each.position, float(each.score)) for each in part]
        return merged

    def _read(self, reply: object, asked: Candidates) -> Sequence[Scored] | Failure:
        if isinstance(reply, Refused):
            return Failure(reply.reason)
        try:
            results = self._shape.results(reply)
            scored = [Scored(each["index"], each[self._shape.score]) for each in results]
        except (KeyError, TypeError):
            return Failure(f"the reranker's reply is not of the shape {self._settings.shape}")
        return _checked(scored, len(asked.texts))


def _checked(scored: Sequence[Scored], texts: int) -> Sequence[Scored] | Failure:
    """Refuse positions that nobody asked about, or twice, and what is no number."""
    positions = [each.position for each in scored]
    known = all(type(position) is int and 0 <= position < texts for position in positions)
    if not known or len(set(positions)) < len(positions):
        return Failure("the reranker's reply names documents that it was not given, or one twice")
    if not all(_is_number(each.score) for each in scored):
        return Failure("the reranker's reply holds a score that is no number")
    return scored


def _is_number(score: object) -> bool:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return False
    # An integer of JSON may be larger than any float.
    return abs(score) <= sys.float_info.max
