"""Voyage's, Cohere's and TEI's APIs over HTTP: asked right, and what goes wrong said right."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from pipeline.embedding.remote import RemoteEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.embedding.shapes.base import InputType
from pipeline.errors import PermanentError, TransientError
from tests.integration.pipeline.embedding.conftest import KEY, TEXTS
from tests.loopback.embedding_server import EmbeddingServer, asymmetric
from tests.loopback.openai_server import vectors_for
from tests.loopback.scripted import raw

Builder = Callable[..., RemoteEmbedder]
ASYMMETRIC = ["voyage", "cohere"]
ALL = ["voyage", "cohere", "tei"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def build(server: EmbeddingServer) -> Builder:
    """Build an embedder for the server; keywords are settings."""

    def embedder(
        provider: str,
        input_type: InputType = InputType.QUERY,
        **settings: Any,  # noqa: ANN401 - of several types
    ) -> RemoteEmbedder:
        given = {"provider": provider, "model": "m", "base_url": server.url(provider)}
        made = EmbeddingSettings.model_validate(given | settings)
        return RemoteEmbedder(made, SecretStr(KEY), first_wait=0.01, input_type=input_type)

    return embedder


@pytest.mark.parametrize("provider", ASYMMETRIC)
@pytest.mark.parametrize("input_type", InputType)
def test_questions_and_chunks_are_asked_for_as_what_they_are(
    build: Builder, provider: str, input_type: InputType
) -> None:
    found = build(provider, input_type).embed(TEXTS)

    np.testing.assert_array_equal(found, asymmetric(TEXTS, input_type.value, 8))


@pytest.mark.parametrize("provider", ALL)
def test_the_key_goes_along_and_nothing_of_openai_s_environment(
    server: EmbeddingServer, build: Builder, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-canary")

    build(provider).embed(TEXTS)

    sent = server.requests[0].headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert "canary" not in "".join(sent[name] for name in sent if name != "authorization")


@pytest.mark.parametrize("provider", ALL)
def test_the_length_of_the_vectors_can_be_asked_for(build: Builder, provider: str) -> None:
    assert build(provider, dimensions=5).embed(TEXTS).shape == (3, 5)


@pytest.mark.parametrize(
    ("input_type", "prefix"), [(InputType.QUERY, "query: "), (InputType.DOCUMENT, "passage: ")]
)
def test_a_prefix_is_put_before_each_text_and_kept_out_of_what_is_kept(
    build: Builder, input_type: InputType, prefix: str
) -> None:
    kept: dict[str, Any] = {}
    embedder = build("tei", input_type, query_prefix="query: ", document_prefix="passage: ")

    found = embedder.embed(
        ["first", " ", "third"],
        keep=lambda texts, rows: kept.update(zip(texts, rows, strict=True)),
    )

    expected = vectors_for([f"{prefix}first", f"{prefix}third"], 8)
    np.testing.assert_array_equal(found[[0, 2]], expected)
    assert np.isnan(found[1]).all()
    assert kept.keys() == {"first", "third"}
    np.testing.assert_array_equal(kept["third"], expected[1])


def test_a_server_that_takes_fewer_texts_than_thought_is_asked_in_parts(
    server: EmbeddingServer, build: Builder
) -> None:
    server.most = 2
    texts = [f"text {i}" for i in range(9)]

    np.testing.assert_array_equal(build("tei").embed(texts), vectors_for(texts, 8))


@pytest.mark.parametrize(("provider", "most"), [("voyage", 1000), ("cohere", 96), ("tei", 32)])
def test_no_request_holds_more_texts_than_the_provider_takes(
    server: EmbeddingServer, build: Builder, provider: str, most: int
) -> None:
    build(provider).embed([str(i) for i in range(most + 1)])

    field = {"voyage": "input", "cohere": "texts", "tei": "inputs"}[provider]
    assert sorted(len(each.body[field]) for each in server.requests) == [1, most]


class Purse:
    """A budget that remembers."""

    def __init__(self) -> None:
        self.settled: list[tuple[float, float]] = []

    def reserve(self, cost: float) -> None:
        """Let it pass."""

    def settle(self, reserved: float, cost: float) -> None:
        self.settled.append((reserved, cost))


@pytest.mark.parametrize("provider", ASYMMETRIC)
def test_what_was_billed_is_what_was_spent(build: Builder, provider: str) -> None:
    purse = Purse()

    build(provider, price=1_000_000.0).embed(["12345678", "1234"], budget=purse)

    # Twelve bytes are twelve tokens at most; the server bills one for each four bytes.
    assert purse.settled == [(12.0, 3.0)]


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("voyage", "VOYAGE_API_KEY"), ("cohere", "COHERE_API_KEY"), ("tei", "TEI_API_KEY")],
)
def test_a_key_that_is_refused_is_named(
    server: EmbeddingServer, build: Builder, provider: str, variable: str
) -> None:
    server.default = raw(401, b'{"detail": "Provided API key is invalid."}')

    with pytest.raises(PermanentError, match=f"^{variable} is not accepted by 127") as caught:
        build(provider).embed(TEXTS)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b'{"error": "Model is overloaded", "error_type": "Overloaded"}',
             b'{"message": "too many requests"}', b'{"detail": "rate limited"}'],
)  # fmt: skip
def test_a_server_that_is_too_busy_is_asked_again(
    server: EmbeddingServer, build: Builder, body: bytes
) -> None:
    server.script = [raw(429, body)]

    assert build("tei").embed(TEXTS).shape == (3, 8)
    assert len(server.requests) == 2


def test_the_server_s_own_words_are_told(server: EmbeddingServer, build: Builder) -> None:
    server.default = raw(503, b'{"error": "Model is loading", "error_type": "Unhealthy"}')

    with pytest.raises(TransientError, match="answered 503: Model is loading"):
        build("tei", attempts=1).embed(TEXTS)


def test_a_text_too_long_by_itself_gets_no_vector(server: EmbeddingServer, build: Builder) -> None:
    said = b'{"error": "`inputs` must have less than 512 tokens", "error_type": "Validation"}'
    server.script = [raw(413, said), raw(413, said)]

    found = build("tei", concurrency=1).embed(["long", "short"])

    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1:], vectors_for(["short"], 8))
