"""A reranker in the shapes of Cohere, Jina, Voyage and text-embeddings-inference.

It scores a text by the share of its letters that are "z": no order that a search would give.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.loopback.scripted import Exchange, ScriptedServer

FIELDS = {"cohere": "results", "jina": "results", "voyage": "data"}


def zness(text: str) -> float:
    """Return a text's score."""
    return text.count("z") / max(1, len(text))


class RerankServer(ScriptedServer):
    """Answers in one shape; refuses a request that is not of it with 422."""

    def __init__(self, shape: str) -> None:
        super().__init__(self._rank)
        self.url = f"http://{self.host}/rerank"
        self._shape = shape

    def _rank(self, exchange: Exchange) -> None:
        body = exchange.request.body
        texts = body.get("texts" if self._shape == "tei" else "documents")
        if texts is None or "query" not in body:
            exchange.send(422, b'{"message": "query and documents are required"}', {})
            return
        found = json.dumps(self._worded(body, texts)).encode()
        exchange.send(200, found, {"Content-Type": "application/json"})

    def _worded(self, body: Mapping[str, Any], texts: Sequence[str]) -> object:
        order = sorted(range(len(texts)), key=lambda n: (-zness(texts[n]), n))
        if self._shape == "tei":
            return [{"index": n, "score": zness(texts[n])} for n in order]
        most = body["top_k" if self._shape == "voyage" else "top_n"]
        ranked = [{"index": n, "relevance_score": zness(texts[n])} for n in order[:most]]
        return {FIELDS[self._shape]: ranked, "model": body["model"]}
