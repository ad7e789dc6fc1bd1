"""What the HTTP client below the SDK takes, and what it does not."""

import gzip

import numpy as np
import pytest

from pipeline.embedding.client import largest_reply
from pipeline.errors import PermanentError
from tests.integration.pipeline.embedding.conftest import TEXTS, Build, failing
from tests.loopback.openai_server import OpenAIServer, raw, vectors, vectors_for


def test_a_redirect_is_not_followed_and_no_key_goes_along(
    openai_server: OpenAIServer, build: Build
) -> None:
    with OpenAIServer() as elsewhere:
        headers = {"Location": f"{elsewhere.url}/embeddings"}
        openai_server.default = raw(307, b"", headers=headers)

        error = failing(build())

    assert isinstance(error, PermanentError)
    assert "answered 307, a redirect, which is not followed" in str(error)
    assert (len(openai_server.requests), elsewhere.requests) == (1, [])


def test_a_reply_larger_than_its_vectors_can_be_is_not_read_to_its_end(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = raw(200, b" " * (largest_reply(3, 8) + 1))

    error = failing(build(attempts=2, dimensions=8))

    assert isinstance(error, PermanentError)
    assert "sent a reply of no use: larger than 1,049,344 bytes" in str(error)
    assert len(openai_server.requests) == 2


def test_a_compressed_reply_is_not_asked_for_and_not_unpacked(
    openai_server: OpenAIServer, build: Build
) -> None:
    packed = gzip.compress(b" " * 10_000_000)
    openai_server.default = raw(200, packed, headers={"Content-Encoding": "gzip"})

    error = failing(build(attempts=1))

    assert "sent a reply of no use: compressed" in str(error)
    assert openai_server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("floats", [True, False])
def test_the_longest_reply_that_was_asked_for_is_taken(
    openai_server: OpenAIServer, build: Build, floats: bool
) -> None:
    openai_server.default = vectors(always_floats=floats)
    texts = [f"t{i}" for i in range(200)]

    np.testing.assert_array_equal(build(dimensions=3072).embed(texts), vectors_for(texts, 3072))


def test_a_proxy_of_the_environment_is_used(
    openai_server: OpenAIServer, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://{openai_server.host}")

    build(base_url="http://embed.example.org/v1").embed(TEXTS)

    assert openai_server.requests[0].path == "http://embed.example.org/v1/embeddings"
