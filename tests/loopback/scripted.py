"""What the servers of JSON APIs share: a script of replies, a record of requests, misbehaviour."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATIENCE = 10.0
"""Seconds after which even a server that hangs lets go: a client without a timeout fails then."""


@dataclass(frozen=True)
class Request:
    """What was asked, and when (monotonic clock); the names of the headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    method: str = "POST"
    at: float = field(default_factory=time.monotonic)

    @property
    def texts(self) -> list[str]:
        """The texts that an embeddings request holds."""
        return list(self.body["input"])


Reply = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Exchange:
    """One request under way, and how to answer it."""

    request: Request
    handler: BaseHTTPRequestHandler
    server: "ScriptedServer"

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


class ScriptedServer:
    """`script` says how to answer the next requests, `default` the rest; `requests` records all."""

    def __init__(self, default: Reply) -> None:
        self.script: list[Reply] = []
        self.default = default
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._at_once = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

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
        with self.lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            reply = self.script.pop(0) if self.script else self.default
        try:
            reply(Exchange(request, handler, self))
        finally:
            with self.lock:
                self._at_once -= 1


def _handler_of(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two packets: the second would wait 40 ms for the first's receipt.
        disable_nagle_algorithm = True

        def handle(self) -> None:
            # The client gave up, perhaps before it read all: tests of timeouts want that.
            with suppress(BrokenPipeError, ConnectionResetError):
                super().handle()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            size = int(headers.get("content-length", "0"))
            sent = self.rfile.read(size)
            if len(sent) < size:  # the client gave up while it sent
                self.close_connection = True
                return
            body = json.loads(sent) if sent else {}
            server.answer(Request(self.path, headers, body, self.command), self)

        def log_message(self, *_: object) -> None:
            """Keep quiet: the default writes each request to standard error."""

    return Handler


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
