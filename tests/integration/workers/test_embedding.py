"""The vectors of a batch are made once, and a fault in making them becomes no miss."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from pydantic import SecretStr

from db.session import Database
from tests.integration.db.building import claim, shard_of, wait_of
from tests.integration.workers.conftest import GOLDEN, Opener, embedding_of
from tests.integration.workers.working import NOWHERE, Bell, finish_runs, run_of, start_runs
from tests.loopback.openai_server import OpenAIServer, refuse
from workers.context import Context
from workers.doorbell import EVALUATE_SHARD
from workers.embedding import embed

pytestmark = pytest.mark.usefixtures("bell")

QUESTIONS = [question.text for question in GOLDEN]


def asked(provider: OpenAIServer) -> list[str]:
    """Return every text that was embedded, as often as it was."""
    return [text for request in provider.requests for text in request.texts]


def test_two_runs_share_vectors_that_are_embedded_once(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    vector, hybrid = finish_runs(remote, bell, "vector", "hybrid")

    assert sorted(asked(provider)) == sorted(QUESTIONS)
    assert len(provider.requests) == 3, "one a shard"
    assert (vector.status, hybrid.status) == ("completed", "completed")


def test_a_second_batch_embeds_nothing(remote: Context, provider: OpenAIServer, bell: Bell) -> None:
    finish_runs(remote, bell, "vector")
    provider.requests.clear()

    [again] = finish_runs(remote, bell, "vector")

    assert provider.requests == []
    assert again.cost == {"cached_texts": 8, "embedded_texts": 0, "embedding_calls": 0}


def test_what_a_batch_embedded_stands_once_in_its_costs(remote: Context, bell: Bell) -> None:
    vector, hybrid = finish_runs(remote, bell, "vector", "hybrid")

    assert vector.cost == {"cached_texts": 8, "embedded_texts": 8, "embedding_calls": 3}
    assert hybrid.cost == {"cached_texts": 8, "embedded_texts": 0, "embedding_calls": 0}


def test_an_embedded_shard_is_rung_for_each_run_that_waits_for_it(ctx: Context, bell: Bell) -> None:
    started = start_runs(ctx, "vector", "fulltext", "hybrid")
    vector, _, hybrid = started.run_ids
    bell.take()

    embed(ctx, started.batch_id, 1)

    assert bell.messages == [(EVALUATE_SHARD, (vector, 1)), (EVALUATE_SHARD, (hybrid, 1))]


def test_a_shard_that_nobody_waits_for_is_not_embedded(
    remote: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    started = start_runs(remote, "vector")
    claim(db, started.run_ids[0], 0)
    bell.take()

    embed(remote, started.batch_id, 0)
    embed(remote, started.batch_id, 99)

    assert provider.requests == []
    assert bell.messages == []


def test_a_provider_that_is_down_postpones_the_shard_without_counting_an_attempt(
    remote: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    started = start_runs(remote, "vector", "fulltext")
    vector, fulltext = started.run_ids
    bell.take()
    provider.default = refuse(503, "overloaded")

    embed(remote, started.batch_id, 0)

    shard = shard_of(db, vector)
    assert (shard.state, shard.attempts) == ("pending", 0)
    assert shard.error is not None
    assert "overloaded" in shard.error
    assert 0 < wait_of(db, vector) <= 2
    assert shard_of(db, fulltext).next_at is None
    assert bell.messages == []


def test_a_refusal_for_good_fails_the_runs_that_need_vectors_only(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    started = start_runs(remote, "vector", "fulltext", "hybrid")
    provider.default = refuse(401, "Incorrect API key", code="invalid_api_key")

    bell.work(remote)

    vector, fulltext, hybrid = (run_of(remote, run_id) for run_id in started.run_ids)
    for run in (vector, hybrid):
        assert (run.status, run.verdict) == ("failed", "unmeasured")
        assert run.reasons is not None
        assert "OPENAI_API_KEY is not accepted" in run.reasons[0]
    assert (fulltext.status, fulltext.verdict) == ("completed", "baseline")
    assert len(provider.requests) == 1, "a bad key is tried once"


@pytest.mark.parametrize("error", [RuntimeError("boom"), SoftTimeLimitExceeded()])
def test_whatever_ends_embedding_the_shard_is_evaluated_soon_and_embeds_inline(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    started = start_runs(ctx, "vector")
    bell.take()
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.embedding.cached.CachedEmbedder.warm", fail)
        embed(ctx, started.batch_id, 0)

    shard = shard_of(db, started.run_ids[0])
    assert (shard.state, shard.attempts) == ("pending", 0)
    assert wait_of(db, started.run_ids[0]) <= 2, "it need not wait for its hold to end"
    said = "boom" if isinstance(error, RuntimeError) else "not embedded in 60 s"
    assert said in str(shard.error)


def test_without_a_cache_nothing_is_embedded_ahead_and_evaluation_embeds(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    without = open_context(redis_url=SecretStr(NOWHERE), embedding=embedding_of(provider))
    started = start_runs(without, "vector")
    bell.take()

    embed(without, started.batch_id, 0)

    assert provider.requests == []
    assert bell.messages == [(EVALUATE_SHARD, (started.run_ids[0], 0))]
    bell.work(without)
    assert sorted(asked(provider)) == sorted(QUESTIONS[:3])


def test_a_cache_that_forgot_everything_is_filled_again(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    started = start_runs(remote, "vector")
    embed(remote, started.batch_id, 0)
    remote.redis.flushdb()
    bell.work(remote)

    run = run_of(remote, started.run_ids[0])
    assert run.status == "completed"
    assert sorted(asked(provider)) == sorted([*QUESTIONS, *QUESTIONS[:3]])
