"""Servers on this machine that take alerts, and certificates for them."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.loopback.hook_server import HookServer

PATIENCE = 8.0
"""Seconds that the channels under test wait for an answer, which a busy machine keeps."""

IMPATIENCE = 0.4
"""The same where no answer comes."""


@dataclass(frozen=True)
class Certificate:
    """A server's context, and the file that makes a client trust it."""

    server: ssl.SSLContext
    trusted: Path


@pytest.fixture
def hook() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Give a port on which nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield int(reserved.getsockname()[1])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Make a certificate for 127.0.0.1 that nobody trusts yet."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the openssl command, which makes a certificate, is absent")
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "key.pem", folder / "certificate.pem"
    options = f"req -x509 -newkey rsa:2048 -nodes -days 1 -keyout {files[0]} -out {files[1]}"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *options.split(), *name], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files[1], files[0])
    return Certificate(server, files[1])
