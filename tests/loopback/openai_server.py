"""An OpenAI-shaped embeddings server: `POST <url>/embeddings`, with scripted misbehaviour.

with OpenAIServer() as server:
    server.script = [refuse(500), vectors()]
    ...  # the first request is refused, the second answered; any other one too
"""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np

from pipeline.types import FloatMatrix

PATIENCE = 10.0
"""Seconds after which even a server that hangs lets go: a client without a timeout fails then."""


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


@dataclass(frozen=True)
class Request:
    """What was asked, and when (monotonic clock); the names of the headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float = field(default_factory=time.monotonic)

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


Reply = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Exchange:
    """One request under way, and how to answer it."""

    request: Request
    handler: BaseHTTPRequestHandler
    server: "OpenAIServer"

    def send(
        self, status: int, body: bytes, headers: Mapping[str, str], *, missing: int = 0
    ) -> None:
        """Send a response; `missing` bytes are announced and never come."""
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(body) + missing))
        self.handler.end_headers()
        self.handler.wfile.write(body)
        self.handler.close_connection = missing > 0


class OpenAIServer:
    """`script` says how to answer the next requests, `default` the rest; `requests` records all."""

    def __init__(self, dimensions: int = 8) -> None:
        self.dimensions = dimensions
        self.script: list[Reply] = []
        self.default: Reply = vectors()
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.closing = threading.Event()
        self._at_once = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://{self.host}/v1"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, request: Request, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            reply = self.script.pop(0) if self.script else self.default
        try:
            reply(Exchange(request, handler, self))
        finally:
            with self._lock:
                self._at_once -= 1


def _handler_of(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            size = int(headers["content-length"])
            sent = self.rfile.read(size)
            if len(sent) < size:  # the client gave up while it sent
                self.close_connection = True
                return
            try:
                server.answer(Request(self.path, headers, json.loads(sent)), self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up: tests of timeouts want that

        def log_message(self, *_: object) -> None:
            """Keep quiet: the default writes each request to standard error."""

    return Handler


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


def raw(
    status: int,
    body: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    missing: int = 0,
) -> Reply:
    """Send these bytes; `missing` of the announced length never come."""

    def reply(exchange: Exchange) -> None:
        shown = {"Content-Type": "application/json"} | dict(headers or {})
        exchange.send(status, body, shown, missing=missing)

    return reply


def hang() -> Reply:
    """Say nothing for PATIENCE seconds, or until the server closes."""

    def reply(exchange: Exchange) -> None:
        exchange.server.closing.wait(PATIENCE)
        exchange.handler.close_connection = True

    return reply


def drip(every: float) -> Reply:
    """Send a blank of the body each `every` seconds, for PATIENCE seconds, and never the rest."""

    def reply(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Content-Type", "application/json")
        exchange.handler.send_header("Content-Length", "100000")
        exchange.handler.end_headers()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not exchange.server.closing.wait(every):
            exchange.handler.wfile.write(b" ")
            exchange.handler.wfile.flush()
        exchange.handler.close_connection = True

    return reply
