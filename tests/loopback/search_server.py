"""A search server, by word overlap: Elasticsearch's, OpenSearch's, Qdrant's or one's own shape.

with SearchServer(chunks, elasticsearch) as server:
    ...  # POST server.url
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.loopback.scripted import Exchange, Reply, Request, ScriptedServer, drip, hang, raw

__all__ = [
    "Exchange", "Reply", "Request", "SearchServer", "drip", "elasticsearch", "hang", "opensearch",
    "own", "own_batch", "qdrant", "qdrant_batch", "raw", "refuse", "refuse_words",
]  # fmt: skip

Hit = tuple[str, float]
Search = Callable[[str, int, str | None], list[Hit]]
Shape = Callable[[Search, Mapping[str, Any]], dict[str, Any]]
"""Answers a request's body in a server's own words."""


class SearchServer(ScriptedServer):
    """Searches chunks, key -> (tenant, text): the share of the question's words in the text."""

    def __init__(
        self, chunks: Mapping[str, tuple[str | None, str]], shape: Shape, path: str = "/search"
    ) -> None:
        super().__init__(self._found)
        self.chunks = chunks
        self.url = f"http://{self.host}{path}"
        self._shape = shape

    def search(self, question: str, k: int, tenant: str | None = None) -> list[Hit]:
        """Return keys and scores, best first, ties by key."""
        words = set(question.lower().split())
        scored = [
            (key, len(words & set(text.lower().split())) / max(1, len(words)))
            for key, (owner, text) in self.chunks.items()
            if tenant is None or owner == tenant
        ]
        hits = [(key, score) for key, score in scored if score > 0]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]

    def _found(self, exchange: Exchange) -> None:
        found = self._shape(self.search, exchange.request.body)
        exchange.send(200, _json(found), {"Content-Type": "application/json"})


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def own(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer {query, k, tenant} with {results: [{key, score}]}."""
    hits = search(body["query"], body["k"], body.get("tenant"))
    return {"results": [{"key": key, "score": score} for key, score in hits]}


def own_batch(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer {queries: [{query, tenant}], k} with {results: [[{key, score}]]}."""
    found = [search(each["query"], body["k"], each["tenant"]) for each in body["queries"]]
    return {"results": [[{"key": key, "score": score} for key, score in hits] for hits in found]}


def elasticsearch(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a bool query with a match and a term filter, as POST /<index>/_search does."""
    query = body["query"]["bool"]
    filters = query.get("filter", [])
    tenant = filters[0]["term"]["tenant"] if filters else None
    return _hits(search(query["must"][0]["match"]["content"], body["size"], tenant))


def opensearch(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a hybrid query of a match and a knn query with a filter, by the match alone."""
    query = body["query"]["hybrid"]
    match, knn = query["queries"]
    if not isinstance(knn["knn"]["embedding"]["vector"], list):
        raise TypeError("knn needs a vector")
    tenant = query["filter"].get("term", {}).get("tenant")
    return _hits(search(match["match"]["content"], body["size"], tenant))


def _hits(hits: Sequence[Hit]) -> dict[str, Any]:
    return {
        "took": 3,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": len(hits), "relation": "eq"},
            "max_score": hits[0][1] if hits else None,
            "hits": [
                {"_index": "docs", "_id": f"es-{n}", "_score": score, "_source": _source(key)}
                for n, (key, score) in enumerate(hits)
            ],
        },
    }


def _source(key: str) -> dict[str, Any]:
    document, _, chunk = key.rpartition(":")
    return {"document_id": document, "chunk_index": int(chunk)}


def qdrant(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as POST /collections/<name>/points/query does; the "vector" stands for a word."""
    return {"result": _points(search, body), "status": "ok", "time": 0.001}


def qdrant_batch(search: Search, body: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as POST /collections/<name>/points/query/batch does."""
    found = [_points(search, each) for each in body["searches"]]
    return {"result": found, "status": "ok", "time": 0.001}


def _points(search: Search, asked: Mapping[str, Any]) -> dict[str, Any]:
    word = "abc"[asked["query"].index(max(asked["query"]))]
    must = (asked.get("filter") or {}).get("must")
    hits = search(word, asked["limit"], must[0]["match"]["value"] if must else None)
    return {
        "points": [
            {"id": n, "version": 1, "score": score, "payload": {"key": key} | _source(key)}
            for n, (key, score) in enumerate(hits)
        ]
    }


def refuse(status: int, said: str = "no", **headers: str) -> Reply:
    """Answer with a status and a few words."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return raw(status, said.encode(), headers=named)


def refuse_words(server: SearchServer, words: Sequence[str], status: int) -> None:
    """Let the server refuse, from now on, every request whose body holds one of the words."""
    answer = server.default

    def reply(exchange: Exchange) -> None:
        if any(word in str(exchange.request.body) for word in words):
            refuse(status, "cannot parse this")(exchange)
        else:
            answer(exchange)

    server.default = reply
