"""An OpenAI-shaped embeddings server: `POST <url>/embeddings`, with scripted misbehaviour.

with OpenAIServer() as server:
    server.script = [refuse(500), vectors()]
    ...  # the first request is refused, the second answered; any other one too
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from pipeline.types import FloatMatrix
from tests.loopback.scripted import Exchange, Reply, Request, ScriptedServer, drip, hang, raw

__all__ = [
    "Exchange",
    "OpenAIServer",
    "Reply",
    "Request",
    "drip",
    "hang",
    "raw",
    "refuse",
    "refuse_longer_than",
    "refuse_more_than",
    "tokens_of",
    "vectors",
    "vectors_for",
]


def vectors_for(texts: Sequence[str], dimensions: int) -> FloatMatrix:
    """Return the vectors that the server gives: random, but always the same for a text."""
    rows = [
        np.random.default_rng(list(hashlib.sha256(text.encode()).digest())).normal(size=dimensions)
        for text in texts
    ]
    return np.array(rows, dtype=np.float32).reshape(len(texts), dimensions)


def tokens_of(texts: Sequence[str]) -> int:
    """Return the tokens that the server bills: one for each four bytes of a text, rounded up."""
    return sum(-(-len(text.encode()) // 4) for text in texts)


class OpenAIServer(ScriptedServer):
    """Gives vectors of so many dimensions unless told otherwise."""

    def __init__(self, dimensions: int = 8) -> None:
        super().__init__(vectors())
        self.dimensions = dimensions

    @property
    def url(self) -> str:
        return f"http://{self.host}/v1"


def vectors(
    *,
    always_floats: bool = False,
    drop: int = 0,
    order: Callable[[list[int]], Iterable[int]] = list,
    index: Callable[[int], int] = int,
    dimensions: int | None = None,
    spoil: Mapping[int, float] | None = None,
    delay: float = 0.0,
    tokens: int | None = None,
) -> Reply:
    """Answer with vectors, in the encoding that was asked for.

    `always_floats`: numbers whatever was asked; `drop`: leave out the last ones; `order`: in which
    order to list them; `index`: what index to give them; `dimensions`: of what length whatever was
    asked; `spoil`: position -> the number to fill its vector with; `delay`: seconds before;
    `tokens`: how many to bill.
    """

    def reply(exchange: Exchange) -> None:
        time.sleep(delay)
        asked = exchange.request.body
        assert isinstance(exchange.server, OpenAIServer)
        length = dimensions or asked.get("dimensions") or exchange.server.dimensions
        matrix = vectors_for(exchange.request.texts, length)
        for row, value in (spoil or {}).items():
            matrix[row] = value
        floats = always_floats or asked.get("encoding_format") != "base64"
        data = [
            {
                "object": "embedding",
                "index": index(i),
                "embedding": matrix[i].tolist() if floats else _base64(matrix[i].tobytes()),
            }
            for i in order(list(range(len(matrix) - drop)))
        ]
        billed = tokens_of(exchange.request.texts) if tokens is None else tokens
        usage = {"prompt_tokens": billed, "total_tokens": billed}
        whole = {"object": "list", "model": asked["model"], "data": data, "usage": usage}
        exchange.send(200, json.dumps(whole).encode(), {"Content-Type": "application/json"})

    return reply


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def refuse(
    status: int, message: str = "no", *, headers: Mapping[str, str] | None = None, **error: str
) -> Reply:
    """Refuse as OpenAI does: `error` holds `code` and `type`, where they matter."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": None} | error}
    return raw(status, json.dumps(body).encode(), headers=headers)


def refuse_longer_than(characters: int, message: str) -> Reply:
    """Refuse with 400 any request that holds a longer text; answer the others."""
    answer, refusal = vectors(), refuse(400, message)

    def reply(exchange: Exchange) -> None:
        too_long = any(len(text) > characters for text in exchange.request.texts)
        (refusal if too_long else answer)(exchange)

    return reply


def refuse_more_than(texts: int, status: int, message: str) -> Reply:
    """Refuse any request that holds more texts; answer the others."""
    answer, refusal = vectors(), refuse(status, message)

    def reply(exchange: Exchange) -> None:
        too_many = len(exchange.request.texts) > texts
        (refusal if too_many else answer)(exchange)

    return reply
