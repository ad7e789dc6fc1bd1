"""A small corpus with a golden set over it, and a context to work on it as a worker does."""

from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from cli.embedded.stack import Servers
from pipeline.corpus.reading import Chunk
from pipeline.embedding.local import LocalEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.generation.settings import GenerationSettings, PriceSettings
from pipeline.settings import EvalSettings, QueueSettings, Settings
from pipeline.types import Kind, Question
from pipeline.verdict.settings import GateSettings
from tests.conftest import at_database
from tests.integration.conftest import copy_of
from tests.integration.workers.templates import filled
from tests.integration.workers.working import DIMENSIONS, Bell
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.openai_server import OpenAIServer
from workers import doorbell
from workers.context import Context

TEXTS = {
    "reset:0": "Hold the power button for ten seconds to reset the router to factory settings.",
    "reset:1": "After a reset the router asks for a new password.",
    "battery:0": "The battery of the remote control lasts for two years.",
    "battery:1": "Replace the battery with two new cells of type AAA.",
    "return:0": "Goods can be returned within thirty days with the receipt.",
    "return:1": "We refund the price to your credit card.",
    "weight:0": "The parcel weighs four kilograms without its packaging.",
    "warranty:0": "The warranty covers faults of manufacture for three years.",
}
TENANTS = {"return:0": "acme", "return:1": "acme", "warranty:0": "globex"}

GOLDEN = [
    Question("How do I reset the router?", {"reset:0": 2, "reset:1": 1}, category="how"),
    Question("How long does the battery of the remote last?", {"battery:0": 1}, category="fact"),
    Question("Which cells does the remote control take?", {"battery:1": 1}, category="fact"),
    Question("How much does the parcel weigh?", {"weight:0": 1}, category="fact"),
    Question("Within how many days can I return goods?", {"return:0": 1}, tenant="acme"),
    Question("Is the reset described here or gone?", {"reset:0": 1, "gone:0": 1}),
    Question("Which page is not there any more?", {"gone:1": 1, "gone:2": 2}),
    Question("Who is the king of Portugal?", {}, kind=Kind.UNANSWERABLE, category="none"),
]
"""Six questions that can be scored, one whose keys are all dead, one without an answer."""


def chunks() -> Iterator[Chunk]:
    """Yield the corpus, each chunk with its vector: the model of the questions may be another."""
    vectors = LocalEmbedder(DIMENSIONS).embed(list(TEXTS.values()))
    for (key, content), vector in zip(TEXTS.items(), vectors, strict=True):
        document_id, _, number = key.partition(":")
        yield Chunk(document_id, int(number), content, TENANTS.get(key), "en", vector)


@pytest.fixture(scope="session")
def corpus_template(servers: Servers, migrated_template: str) -> Iterator[str]:
    """Give the name of a database with our tables, the corpus and the golden set, to copy from."""
    with filled(servers, migrated_template, chunks(), GOLDEN) as name:
        yield name


@pytest.fixture
def url(servers: Servers, corpus_template: str) -> Iterator[str]:
    """Give the URL of a test's own database, with the corpus and the golden set."""
    assert servers.database_url is not None
    with copy_of(servers, corpus_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def settings(url: str, valkey: str) -> Settings:
    """Give settings by which the golden set falls into three shards."""
    return Settings(
        database_url=SecretStr(url),
        redis_url=SecretStr(valkey),
        embedding=EmbeddingSettings(dimensions=DIMENSIONS),
        eval=EvalSettings(k=3, shard_size=3),
        gate=GateSettings(max_failed=0.5, rule="threshold", max_ineligible=0.5),
        queue=QueueSettings(lease=60, attempts=3),
    )


Opener = Callable[..., Context]


@pytest.fixture
def open_context(settings: Settings) -> Iterator[Opener]:
    """Give what opens a context by the test's settings with some of them changed."""
    opened: list[Context] = []

    def open_with(**changes: object) -> Context:
        opened.append(Context(settings.model_copy(update=changes)))
        return opened[-1]

    yield open_with
    for context in opened:
        context.close()


@pytest.fixture
def ctx(open_context: Opener) -> Context:
    return open_context()


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Bell:
    """Give the messages that would be sent; none leaves the process."""
    bell = Bell()
    monkeypatch.setattr(doorbell, "_ring", bell.ring)
    return bell


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAIServer(DIMENSIONS) as server:
        yield server


@pytest.fixture
def remote(open_context: Opener, provider: OpenAIServer) -> Context:
    """Give a context that embeds with a provider over HTTP, which it asks once a text."""
    return open_context(embedding=embedding_of(provider))


def embedding_of(provider: OpenAIServer) -> EmbeddingSettings:
    return EmbeddingSettings(
        provider="openai", model="m", dimensions=DIMENSIONS, base_url=provider.url, attempts=1
    )


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with AnthropicServer() as server:
        yield server


@pytest.fixture
def asker(open_context: Opener, claude: AnthropicServer) -> Context:
    """Give a context that asks the loopback server, at a dollar for a million tokens."""
    generation = GenerationSettings(
        base_url=claude.url, min_characters=20, timeout=5, attempts=2,
        prices={"claude-haiku-4-5": PriceSettings(
            input=1, output=1, batch_input=0.5, batch_output=0.5)},
    )  # fmt: skip
    return open_context(generation=generation, anthropic_api_key=SecretStr("sk-ant-test"))


@pytest.fixture
def lenient(open_context: Opener, provider: OpenAIServer) -> Context:
    """Give a context that embeds with a provider, which is asked for up to eight texts at once."""
    return open_context(embedding=embedding_of(provider))
