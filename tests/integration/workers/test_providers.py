"""Whatever a provider does, a run ends with the right numbers or says why it did not."""

import time

import pytest

from cli.doctor import _embedder
from db.session import Database
from pipeline.embedding.settings import EmbeddingSettings
from tests.integration.db.building import execute, expire, shard_of, wait_of
from tests.integration.workers.conftest import Opener, embedding_of
from tests.integration.workers.working import (
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    run_of,
    start_runs,
)
from tests.loopback.openai_server import OpenAIServer, hang, raw, refuse, vectors
from workers.context import Context
from workers.resuming import resume
from workers.sweeping import sweep

pytestmark = pytest.mark.usefixtures("bell")

QUOTA = refuse(429, "You exceeded your quota", code="insufficient_quota")


@pytest.fixture
def patient(open_context: Opener, provider: OpenAIServer) -> Context:
    """Give a context that tries each request twice, and hangs on for a second."""
    changes = {"attempts": 2, "timeout": 1.0, "max_wait": 1.0}
    return open_context(embedding=embedding_of(provider).model_copy(update=changes))


FAULTS = {
    "short 429": refuse(429, headers={"Retry-After": "0.05"}),
    "500": refuse(500),
    "truncated body": raw(200, b'{"object": "list", "da', missing=100),
    "too few vectors": vectors(drop=1),
    "the same index twice": vectors(index=lambda _: 0),
    "hang": hang(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_changes_no_number(
    patient: Context, provider: OpenAIServer, bell: Bell, fault: str
) -> None:
    [expected] = finish_runs(patient, bell, "vector")
    patient.redis.flushdb()
    provider.script = [FAULTS[fault], vectors(), FAULTS[fault]]

    [run] = finish_runs(patient, bell, "vector")

    assert (run.status, run.n_failed) == ("completed", 0)
    assert rows_of(patient, run.id) == rows_of(patient, expected.id)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("500", "answered 500"),
        ("truncated body", "cannot be reached, or broke off"),
        ("hang", "did not answer within 0.2 s"),
        ("too few vectors", "sent a reply of no use: 2 vectors"),
    ],
)
def test_a_fault_that_stays_fails_the_run_with_its_reason(
    open_context: Opener, provider: OpenAIServer, bell: Bell, db: Database, fault: str, said: str
) -> None:
    changes = {"attempts": 2, "timeout": 0.2 if fault == "hang" else 5.0}
    remote = open_context(embedding=embedding_of(provider).model_copy(update=changes))
    provider.default = FAULTS[fault]
    run_id = start_runs(remote, "vector").run_ids[0]
    bell.work(remote)
    for _ in range(remote.settings.queue.attempts):
        expire(db, run_id, 0)
        finish_by_sweeping(remote, bell)

    run = run_of(remote, run_id)
    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert said in run.reasons[0]
    assert rows_of(remote, run_id) == []


def test_a_long_429_hands_shards_back_without_an_attempt_until_it_is_over(
    patient: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    [expected] = finish_runs(patient, bell, "vector")
    patient.redis.flushdb()
    provider.default = refuse(429, headers={"Retry-After": "900"})
    run_id = start_runs(patient, "vector").run_ids[0]

    for _ in range(patient.settings.queue.attempts + 1):
        bell.work(patient)
        execute(db, "UPDATE recallwatch.shard SET rung_at = NULL")
        for number in range(3):
            assert (shard_of(db, run_id, number).attempts, run_of(patient, run_id).status) in {
                (0, "queued"), (0, "running"),
            }  # fmt: skip
            assert 800 < wait_of(db, run_id, number) <= 900
            expire(db, run_id, number)
        finish_one_sweep(patient, bell)
    provider.default = vectors()
    for number in range(3):
        expire(db, run_id, number)
    finish_by_sweeping(patient, bell)

    assert run_of(patient, run_id).status == "completed"
    assert rows_of(patient, run_id) == rows_of(patient, expected.id)


def finish_one_sweep(ctx: Context, bell: Bell) -> None:
    sweep(ctx, quiet=0)
    bell.work(ctx)


def test_our_own_rate_limit_hands_shards_back_without_an_attempt(
    open_context: Opener, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    changes = {"requests_per_minute": 1, "max_wait": 0.0}
    limited = open_context(embedding=embedding_of(provider).model_copy(update=changes))
    run_id = start_runs(limited, "vector").run_ids[0]

    bell.work(limited)

    assert len(provider.requests) == 1
    states = [shard_of(db, run_id, number) for number in range(3)]
    assert [(shard.state, shard.attempts) for shard in states] == [
        ("done", 1), ("pending", 0), ("pending", 0),
    ]  # fmt: skip
    assert all(40 < wait_of(db, run_id, number) <= 61 for number in (1, 2))
    assert "leaves no room" in (states[1].error or "")


def test_two_workers_hear_of_a_spent_quota_once_and_both_runs_say_so(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    one, two = (open_context(embedding=embedding_of(provider)) for _ in range(2))
    first = start_runs(one, "vector").run_ids[0]
    waiting = bell.take()
    second = start_runs(two, "vector").run_ids[0]
    provider.default = QUOTA

    bell.work(two)
    bell.messages = waiting
    bell.work(one)

    assert len(provider.requests) == 1
    for ctx, run_id in ((one, first), (two, second)):
        run = run_of(ctx, run_id)
        assert (run.status, run.verdict) == ("failed", "unmeasured")
        assert run.reasons is not None
        assert "has no quota left at" in run.reasons[0]


def test_starting_a_batch_asks_the_provider_again(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    remote = open_context(embedding=embedding_of(provider))
    provider.script = [QUOTA]
    [failed] = finish_runs(remote, bell, "vector")

    [run] = finish_runs(remote, bell, "vector")

    assert (failed.status, run.status) == ("failed", "completed")


def test_resuming_a_run_asks_the_provider_again(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    remote = open_context(embedding=embedding_of(provider))
    provider.script = [QUOTA]
    [failed] = finish_runs(remote, bell, "vector")

    resume(remote, failed.id)
    bell.work(remote)

    assert run_of(remote, failed.id).status == "completed"


def test_a_batch_without_vectors_needs_no_key(open_context: Opener, bell: Bell) -> None:
    keyless = EmbeddingSettings(provider="openai", model="m", base_url="https://embed.example.org")
    [run] = finish_runs(open_context(embedding=keyless), bell, "fulltext")

    assert run.status == "completed"


def test_the_doctor_shows_a_paused_provider_and_does_not_ask_it(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    provider.default = QUOTA
    finish_runs(remote, bell, "vector")
    provider.requests.clear()

    [finding] = _embedder(remote)

    assert finding.health == "fault"
    assert "left alone by all workers for" in finding.seen
    assert "has no quota left at" in finding.seen
    assert finding.advice == "then start a batch, or resume one: it asks again at once"
    assert provider.requests == []


def test_a_failed_shard_pays_for_none_of_its_texts_twice(
    open_context: Opener, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    changes = {"max_inputs": 1, "concurrency": 1}
    remote = open_context(embedding=embedding_of(provider).model_copy(update=changes))
    provider.script = [vectors(), vectors(), refuse(503)]
    run_id = start_runs(remote, "vector").run_ids[0]
    bell.work(remote)
    expire(db, run_id, 0)
    finish_by_sweeping(remote, bell)

    asked = [text for request in provider.requests for text in request.texts]
    assert run_of(remote, run_id).status == "completed"
    assert len(asked) == 9, "eight questions, and the one that was refused"


def test_a_hang_costs_its_timeouts_and_no_more(
    patient: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    provider.default = hang()
    run_id = start_runs(patient, "vector").run_ids[0]
    message, *_ = bell.take()
    bell.messages = [message]
    began = time.monotonic()

    bell.work(patient)

    assert time.monotonic() - began < 8, "two tries of a second, and a wait"
    assert shard_of(db, run_id).state == "pending"
