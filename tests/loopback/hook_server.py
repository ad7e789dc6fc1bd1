"""A server for incoming webhooks, Slack's and generic ones, with scripted misbehaviour.

with HookServer() as server:
    server.script = [answer(429, headers={"Retry-After": "30"}), answer(200)]
    ...  # the first POST is refused, the second accepted; any other one too
"""

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATIENCE = 10.0
"""Seconds after which even a server that hangs lets go: a client without a timeout fails then."""


@dataclass(frozen=True)
class Posted:
    """What came in; the names of the headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


Reply = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Exchange:
    """One request under way, and how to answer it."""

    handler: BaseHTTPRequestHandler
    server: "HookServer"


class HookServer:
    """`script` says how to answer the next requests, `default` the rest; `posted` records all.

    `sent` counts the bytes of bodies that went out; `tls` is a server's context, for https.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.script: list[Reply] = []
        self.default: Reply = answer(200, b"ok")
        self.posted: list[Posted] = []
        self.sent = 0
        self.closing = threading.Event()
        self._scheme = "https" if tls else "http"
        self._http = _Server(("127.0.0.1", 0), _handler_of(self))
        if tls:
            self._http.socket = tls.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    def url(self, path: str = "/services/T0/B0/canary-token") -> str:
        return f"{self._scheme}://{self.host}{path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, posted: Posted, handler: BaseHTTPRequestHandler) -> None:
        self.posted.append(posted)
        reply = self.script.pop(0) if self.script else self.default
        reply(Exchange(handler, self))


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Keep quiet: clients that break off are what the tests are about."""


def _handler_of(server: HookServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            server.answer(Posted(self.path, headers, body), self)

        def log_message(self, *_: object) -> None:
            """Keep quiet: the default writes each request to standard error."""

    return Handler


def answer(status: int, body: bytes = b"", *, headers: Mapping[str, str] | None = None) -> Reply:
    """Send this answer."""

    def reply(exchange: Exchange) -> None:
        exchange.handler.send_response(status)
        for name, value in (headers or {}).items():
            exchange.handler.send_header(name, value)
        exchange.handler.send_header("Content-Length", str(len(body)))
        exchange.handler.end_headers()
        exchange.handler.wfile.write(body)

    return reply


def redirect(status: int, location: str) -> Reply:
    """Point elsewhere."""
    return answer(status, headers={"Location": location})


def hang() -> Reply:
    """Take the request and say nothing for PATIENCE seconds, or until the server closes."""

    def reply(exchange: Exchange) -> None:
        exchange.server.closing.wait(PATIENCE)
        exchange.handler.close_connection = True

    return reply


def reset() -> Reply:
    """Take the request and reset the connection."""

    def reply(exchange: Exchange) -> None:
        reset_on_close = struct.pack("ii", 1, 0)
        exchange.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_on_close)
        exchange.handler.connection.close()
        exchange.handler.close_connection = True

    return reply


def garbage() -> Reply:
    """Answer in no protocol at all."""

    def reply(exchange: Exchange) -> None:
        exchange.handler.wfile.write(b"\x00\x01 hello\r\n\r\n")
        exchange.handler.close_connection = True

    return reply


def endless(status: int, every: float = 0.0) -> Reply:
    """Announce a body of a gigabyte and send it, 64 KiB each `every` seconds, for PATIENCE."""

    def reply(exchange: Exchange) -> None:
        exchange.handler.close_connection = True
        exchange.handler.send_response(status)
        exchange.handler.send_header("Content-Length", str(2**30))
        exchange.handler.end_headers()
        end = time.monotonic() + PATIENCE
        part = b"x" if every else b"x" * 65_536
        while time.monotonic() < end and not exchange.server.closing.wait(every):
            exchange.handler.wfile.write(part)
            exchange.server.sent += len(part)

    return reply
