"""Embedding servers of Voyage's, Cohere's and TEI's shape, told apart by the address asked.

An asymmetric model: a question and a chunk of the same text have different vectors.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.types import FloatMatrix
from tests.loopback.openai_server import tokens_of, vectors_for
from tests.loopback.scripted import Exchange, Reply, ScriptedServer, raw

KNOWN_INPUT_TYPES = {"query", "document", "search_query", "search_document"}


def asymmetric(texts: Sequence[str], input_type: str, dimensions: int) -> FloatMatrix:
    """Return the vectors of texts that were said to be of a type, as `query`."""
    return vectors_for([f"{input_type}: {text}" for text in texts], dimensions)


class EmbeddingServer(ScriptedServer):
    """Answers `/v1/embeddings` as Voyage, `/v2/embed` as Cohere, `/embed` as TEI.

    `most`: how many texts a request to TEI may hold.
    """

    def __init__(self, dimensions: int = 8, most: int = 32) -> None:
        super().__init__(answer())
        self.dimensions = dimensions
        self.most = most

    def url(self, provider: str) -> str:
        return f"http://{self.host}" + {"voyage": "/v1", "cohere": "/v2", "tei": ""}[provider]


def answer() -> Reply:
    """Answer with vectors in the provider's own form, or refuse as it does."""

    def reply(exchange: Exchange) -> None:
        assert isinstance(exchange.server, EmbeddingServer)
        body = exchange.request.body
        ways = {"/v1/embeddings": _voyage, "/v2/embed": _cohere, "/embed": _tei}
        status, sent = ways[exchange.request.path](body, exchange.server)
        raw(status, json.dumps(sent).encode())(exchange)

    return reply


Answer = tuple[int, object]


def _voyage(body: Mapping[str, Any], server: EmbeddingServer) -> Answer:
    if body["input_type"] not in {"query", "document"}:
        return 400, {"detail": f"Value '{body['input_type']}' for argument 'input_type' is invalid"}
    length = body.get("output_dimension", server.dimensions)
    rows = asymmetric(body["input"], body["input_type"], length)
    data = [{"object": "embedding", "embedding": row.tolist(), "index": i}
            for i, row in enumerate(rows)]  # fmt: skip
    usage = {"total_tokens": tokens_of(body["input"])}
    return 200, {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _cohere(body: Mapping[str, Any], server: EmbeddingServer) -> Answer:
    if len(body["texts"]) > 96:
        said = f"total number of texts must be at most 96 - received {len(body['texts'])}"
        return 400, {"message": f"invalid request: {said}"}
    kind = {"search_query": "query", "search_document": "document"}[body["input_type"]]
    rows = asymmetric(body["texts"], kind, body.get("output_dimension", server.dimensions))
    units = {"input_tokens": tokens_of(body["texts"])}
    return 200, {
        "id": "1", "embeddings": {"float": rows.tolist()}, "texts": body["texts"],
        "meta": {"api_version": {"version": "2"}, "billed_units": units},
    }  # fmt: skip


def _tei(body: Mapping[str, Any], server: EmbeddingServer) -> Answer:
    texts = body["inputs"]
    if len(texts) > server.most:
        said = f"batch size {len(texts)} > maximum allowed batch size {server.most}"
        return 422, {"error": said, "error_type": "Validation"}
    return 200, vectors_for(texts, body.get("dimensions", server.dimensions)).tolist()
