"""What waited for a provider is embedded once for all runs of its batch, and never for ever."""

from functools import partial

import pytest
from pydantic import SecretStr

from db.session import Database
from tests.integration.db.building import execute, shard_of
from tests.integration.workers.conftest import GOLDEN, Opener, embedding_of
from tests.integration.workers.working import NOWHERE, Bell, run_of, start_runs
from tests.loopback.openai_server import OpenAIServer, Reply, refuse, vectors
from workers import resuming
from workers.context import Context
from workers.doorbell import EMBED_SHARD, EVALUATE_SHARD
from workers.embedding import embed
from workers.ringing import ring_forgotten
from workers.sweeping import sweep

pytestmark = pytest.mark.usefixtures("bell")

QUESTIONS = [question.text for question in GOLDEN]
PATIENCE = refuse(429, headers={"Retry-After": "900"})

ring = partial(ring_forgotten, quiet=0, limit=100)


def asked(provider: OpenAIServer) -> list[str]:
    return [text for request in provider.requests for text in request.texts]


def wait_over(db: Database) -> None:
    execute(db, "UPDATE recallwatch.shard SET next_at = now() WHERE next_at IS NOT NULL")


def refused(ctx: Context, provider: OpenAIServer, bell: Bell, *strategies: str) -> list[int]:
    """Start runs whose provider asks for patience at first; give them when its time has come."""
    started = start_runs(ctx, *strategies)
    provider.default = PATIENCE
    bell.work(ctx)
    provider.default = vectors()
    provider.requests.clear()
    wait_over(ctx.database)
    return list(started.run_ids)


def test_what_waited_is_embedded_once_for_all_runs_of_the_batch(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    vector, hybrid = refused(remote, provider, bell, "vector", "hybrid")

    rung = ring(remote)

    assert rung == [(run_id, number) for run_id in (vector, hybrid) for number in range(3)]
    assert [task for task, _ in bell.messages] == [EMBED_SHARD] * 3
    bell.work(remote)
    assert sorted(asked(provider)) == sorted(QUESTIONS)
    assert {run_of(remote, run_id).status for run_id in (vector, hybrid)} == {"completed"}


def test_what_several_evaluations_waited_for_is_embedded_once_too(
    remote: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    runs = refused(remote, provider, bell, "vector", "hybrid")
    provider.default = PATIENCE
    bell.messages = [(EVALUATE_SHARD, (run_id, 0)) for run_id in runs]
    bell.work(remote)
    wait_over(db)
    provider.default = vectors()
    provider.requests.clear()

    ring(remote)

    assert {task for task, _ in bell.messages} == {EMBED_SHARD}
    bell.work(remote)
    assert sorted(asked(provider)) == sorted(QUESTIONS)


def test_shards_whose_first_message_was_lost_are_embedded_once(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    started = start_runs(remote, "vector", "hybrid")
    bell.take()

    sweep(remote, quiet=0)

    assert bell.messages == [(EMBED_SHARD, (started.batch_id, number)) for number in range(3)]
    bell.work(remote)

    assert sorted(asked(provider)) == sorted(QUESTIONS)


def test_a_run_that_waits_alone_is_evaluated_at_once(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    vector, _, hybrid = refused(remote, provider, bell, "vector", "fulltext", "hybrid")
    resuming.cancel(remote, [hybrid])

    ring(remote)

    assert bell.messages == [(EVALUATE_SHARD, (vector, number)) for number in range(3)]


@pytest.mark.parametrize("reply", [refuse(503), refuse(500)])
def test_a_fault_that_stays_is_evaluated_and_so_counted(
    remote: Context, provider: OpenAIServer, bell: Bell, db: Database, reply: Reply
) -> None:
    runs = start_runs(remote, "vector", "hybrid").run_ids
    provider.default = reply

    for _ in range(4):
        bell.work(remote)
        wait_over(db)
        ring(remote)

    assert [shard_of(db, run_id).attempts for run_id in runs] == [2, 2]


def test_an_embedding_that_ends_its_worker_is_not_rung_again(
    remote: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch, provider: OpenAIServer
) -> None:
    class KilledError(BaseException):
        """Ends a worker."""

    def die(*_: object) -> None:
        raise KilledError

    refused(remote, provider, bell, "vector", "hybrid")
    ring(remote)
    monkeypatch.setattr("pipeline.embedding.cached.CachedEmbedder.warm", die)
    for _, arguments in bell.take():
        with pytest.raises(KilledError):
            embed(remote, *arguments)
    wait_over(remote.database)

    ring(remote)

    assert {task for task, _ in bell.messages} == {EVALUATE_SHARD}


def test_without_a_cache_what_waited_is_evaluated_after_all(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    without = open_context(redis_url=SecretStr(NOWHERE), embedding=embedding_of(provider))
    runs = refused(without, provider, bell, "vector", "hybrid")

    ring(without)
    bell.work(without)

    assert [run_of(without, run_id).status for run_id in runs] == ["completed"] * 2


def test_a_hold_that_another_embedding_has_is_left_to_it(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    refused(remote, provider, bell, "vector", "hybrid")
    ring(remote)
    messages = bell.take()

    for _, arguments in messages + messages:
        embed(remote, *arguments)
    bell.work(remote)

    assert sorted(asked(provider)) == sorted(QUESTIONS)
