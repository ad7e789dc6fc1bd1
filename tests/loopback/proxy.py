"""A server that can be frozen though others use it: a proxy on loopback in front of it."""

import socket
import threading
from contextlib import suppress
from typing import Self


class FreezableProxy:
    """Passes bytes on between clients and the server at the path of a socket, until it is frozen.

    As with a process that was sent SIGSTOP, connections stay open and nothing comes any more.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._thawed = threading.Event()
        self._thawed.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets = [self._listener]
        self._closing = False

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self.thaw()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closing:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.target)
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._thawed.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
