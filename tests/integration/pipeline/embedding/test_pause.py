"""A refusal for good is heard once, and then by nobody until it may have been put right."""

from collections.abc import Callable

import pytest
from pydantic import SecretStr
from redis import Redis
from structlog.testing import capture_logs

from pipeline.embedding.cache import connect
from pipeline.embedding.gate import build_gate, pause_of
from pipeline.embedding.pause import LASTS
from pipeline.embedding.remote import RemoteEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, RecallwatchError
from tests.integration.pipeline.embedding.conftest import Breakable
from tests.loopback.openai_server import OpenAIServer, Reply, raw, refuse

Worker = Callable[..., RemoteEmbedder]


@pytest.fixture
def client(valkey: str) -> Redis:
    return connect(valkey)


@pytest.fixture
def worker(openai_server: OpenAIServer, client: Redis) -> Worker:
    """Give what makes the embedder of one more worker."""

    def make(key: str = "sk-one", redis: Redis = client, **settings: object) -> RemoteEmbedder:
        given = {"provider": "openai", "model": "m", "base_url": openai_server.url, "attempts": 1}
        embedding = EmbeddingSettings.model_validate(given | settings)
        gate = build_gate(redis, embedding, SecretStr(key), workers=1)
        return RemoteEmbedder(embedding, SecretStr(key), gate=gate)

    return make


def error_of(worker: RemoteEmbedder) -> RecallwatchError:
    with pytest.raises(RecallwatchError) as caught:
        worker.embed(["text"])
    return caught.value


FOR_GOOD = [
    refuse(401, "bad key"),
    refuse(402, "pay"),
    refuse(403, "no"),
    refuse(404, "no such model"),
    refuse(400, "dimensions are not supported"),
    refuse(429, "exceeded", code="insufficient_quota"),
    raw(307, b"", headers={"Location": "http://127.0.0.1:1/v1/embeddings"}),
]


@pytest.mark.parametrize("reply", FOR_GOOD)
def test_the_first_refusal_for_good_is_told_by_every_worker_without_asking_again(
    openai_server: OpenAIServer, worker: Worker, reply: Reply
) -> None:
    openai_server.script = [reply]

    first, *others = [error_of(worker()) for _ in range(3)]

    assert isinstance(first, PermanentError)
    assert [str(other) for other in others] == [str(first)] * 2
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    "reply", [refuse(500), refuse(429, headers={"Retry-After": "90"}), refuse(400, "bad input")]
)
def test_what_may_pass_or_is_of_one_text_holds_nobody_back(
    openai_server: OpenAIServer, worker: Worker, reply: Reply
) -> None:
    openai_server.script = [reply]

    error_of(worker())

    assert len(worker().embed(["text"])) == 1


def test_another_model_key_or_length_is_not_held_back(
    openai_server: OpenAIServer, worker: Worker
) -> None:
    openai_server.script = [refuse(401)]
    error_of(worker())

    for other in (worker(model="n"), worker("sk-two"), worker(dimensions=5)):
        assert len(other.embed(["text"])) == 1


def test_a_pause_ends_by_itself_or_when_it_is_lifted(
    openai_server: OpenAIServer, worker: Worker, client: Redis
) -> None:
    openai_server.script = [refuse(401)]
    reason = str(error_of(worker()))
    settings = EmbeddingSettings(provider="openai", model="m", base_url=openai_server.url)
    pause = pause_of(client, settings, SecretStr("sk-one"))

    seen = pause.look()
    assert seen is not None
    assert seen.reason == reason
    assert LASTS - 10 < seen.seconds <= LASTS
    pause.lift()
    assert pause.look() is None
    assert len(worker().embed(["text"])) == 1


def test_without_redis_each_worker_hears_the_refusal_itself_and_works_otherwise(
    openai_server: OpenAIServer, worker: Worker, breakable: Breakable
) -> None:
    breakable.freeze()
    openai_server.script = [refuse(401), refuse(401)]

    with capture_logs() as logs:
        alone = [worker(redis=connect(breakable.url, timeout=0.1)) for _ in range(2)]
        errors = [error_of(each) for each in alone]
        assert len(alone[0].embed(["text"])) == 1

    assert all("OPENAI_API_KEY is not accepted" in str(error) for error in errors)
    assert [entry["event"] for entry in logs] == ["provider_pause_not_shared"] * 2, "once a worker"
