"""Rate limits that processes share through Redis, and what they do without it."""

import math
import multiprocessing
import time
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import SecretStr
from redis import Redis
from redis.crc import key_slot
from structlog.testing import capture_logs

from pipeline.embedding import limiter as limiting
from pipeline.embedding.cache import connect
from pipeline.embedding.gate import build_gate
from pipeline.embedding.limiter import Limiter
from pipeline.embedding.rates import Buckets, Rate
from pipeline.embedding.remote import RemoteEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, TransientError
from tests.integration.pipeline.embedding.conftest import Breakable
from tests.loopback.openai_server import OpenAIServer, refuse, vectors, vectors_for

KEY = "sk-canary-0123456789"
LATE = 0.5
"""Seconds that a request may take from its turn to the server, on a busy machine."""


@pytest.fixture
def client(valkey: str) -> Redis:
    return connect(valkey)


def limiter(client: Redis, **limits: Any) -> Limiter:  # noqa: ANN401 - Limiter's keywords
    return Limiter(client, "some-id", **limits)


def waits(limiter: Limiter, costs: Sequence[int], longest: float = 1e9) -> list[float]:
    return [limiter.book(cost, longest).wait for cost in costs]


@pytest.mark.parametrize(
    ("limits", "costs"),
    [
        ({"requests": 60}, [1] * 12),
        ({"requests": 1}, [1] * 3),
        ({"tokens": 1000}, [10, 90, 5, 500, 1, 1]),
        ({"requests": 30, "tokens": 1000}, [10, 90, 1, 1, 1, 200, 1]),
    ],
)
def test_redis_books_as_the_buckets_of_one_process_do(
    client: Redis, limits: dict[str, int], costs: list[int]
) -> None:
    alone = Buckets([Rate.of(limit) for limit in limits.values()], clock=lambda: 0.0)
    expected = [
        alone.book([1 if name == "requests" else cost for name in limits], 1e9) for cost in costs
    ]

    began = time.monotonic()
    found = waits(limiter(client, **limits), costs)

    assert found == pytest.approx(expected, abs=time.monotonic() - began + 0.001)


def test_what_would_wait_too_long_is_not_booked(client: Redis) -> None:
    shared = limiter(client, requests=1)

    assert waits(shared, [1] * 4, longest=10) == pytest.approx([0, 60, 60, 60], abs=1)


def test_a_reply_gives_back_what_it_did_not_use(client: Redis) -> None:
    shared = limiter(client, tokens=1000)
    booking = shared.book(100, 0)
    assert shared.book(90, 0).wait > 0

    shared.correct(booking, 100, 10)

    assert shared.book(90, 0).wait == 0


def test_tokens_are_booked_as_the_last_reply_used_its_bound(client: Redis) -> None:
    shared = limiter(client, tokens=1000)
    shared.correct(shared.book(100, 0), 100, 24)

    assert shared.book(100, 0).tokens == pytest.approx(30)


def test_keys_end_by_themselves_and_hold_no_account_in_clear(client: Redis) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url="http://h/v1", requests_per_minute=60,
        tokens_per_minute=600,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    assert gate._limiter is not None
    gate._limiter.book(10, 0)
    gate.shut("no quota")

    keys = list(client.scan_iter(match="rw:*"))
    assert len(keys) == 3
    for key in keys:
        assert client.ttl(key) in range(301)
        assert KEY not in f"{key!r}"
        assert b"canary" not in (client.get(key) or b"")


def test_a_lost_redis_lets_no_more_than_one_burst_more_go(client: Redis) -> None:
    shared = limiter(client, requests=60)
    assert waits(shared, [1] * 7)[-1] > 0

    client.flushdb()

    again = waits(shared, [1] * 7)
    assert again[:6] == [0] * 6
    assert again[6] > 0


def test_a_frozen_redis_leaves_each_process_its_share_and_says_so_once(
    breakable: Breakable,
) -> None:
    shared = limiter(connect(breakable.url, timeout=0.2), requests=60, workers=2, pause=0.3)
    shared.book(1, 0)
    breakable.freeze()

    with capture_logs() as logs:
        alone = waits(shared, [1] * 5)

    assert [entry["event"] for entry in logs] == ["rate_limits_not_shared"]
    assert alone[:3] == [0] * 3
    # Half of 60 a minute: three at once, and one each 60 / (30 + 1 - 3) s.
    assert alone[3:] == pytest.approx([60 / 28, 120 / 28], abs=0.1)
    breakable.thaw()
    time.sleep(0.4)
    assert shared.book(1, 0).wait == 0, "Redis counts again: one of its burst of six was used"


def embed_some(url: str, redis_url: str, name: str, limits: dict[str, int]) -> None:
    """Embed 45 texts, a request each, as one worker process of two."""
    settings = EmbeddingSettings.model_validate(
        {"provider": "openai", "model": "m", "base_url": url, "max_inputs": 1, "concurrency": 8}
        | limits
    )
    client = connect(redis_url, timeout=0.5)
    gate = build_gate(client, settings, SecretStr(KEY), workers=2)
    embedder = RemoteEmbedder(settings, SecretStr(KEY), gate=gate)
    texts = [f"{name} {i:03} {'word ' * 15}" for i in range(45)]
    found = embedder.embed(texts)
    assert found.tobytes() == vectors_for(texts, 8).tobytes()


def start_both(url: str, redis_url: str, **limits: int) -> list[Any]:
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=embed_some, args=(url, redis_url, name, limits)) for name in "ab"]
    for process in both:
        process.start()
    return both


def all_well(both: list[Any]) -> bool:
    for process in both:
        process.join(60)
    return [process.exitcode for process in both] == [0, 0]


def assert_within(sent: Sequence[tuple[float, float]], rate: Rate) -> None:
    """Look at every stretch of time: what went out in it is a burst and what time adds."""
    for first in range(len(sent)):
        used = 0.0
        for at, cost in sent[first:]:
            used += cost
            allowed = rate.burst + (at - sent[first][0] + LATE) / rate.interval
            assert used <= allowed + 1, (first, used, allowed)


def test_two_processes_together_keep_to_the_requests_of_a_minute(
    openai_server: OpenAIServer, valkey: str
) -> None:
    both = start_both(openai_server.url, valkey, requests_per_minute=600)

    assert all_well(both)
    sent = [(request.at, 1.0) for request in openai_server.requests]
    assert len(sent) == 90
    assert_within(sent, Rate.of(600))
    assert sent[-1][0] - sent[0][0] >= 30 * Rate.of(600).interval - LATE


def test_two_processes_together_keep_to_the_tokens_of_a_minute(
    openai_server: OpenAIServer, valkey: str
) -> None:
    openai_server.default = vectors(tokens=81)
    both = start_both(openai_server.url, valkey, tokens_per_minute=48_000)

    assert all_well(both)
    sent = [(request.at, 81.0) for request in openai_server.requests]
    assert len(sent) == 90
    assert_within(sent, Rate.of(48_000))
    assert sent[-1][0] - sent[0][0] >= (90 * 81 - 4800) * Rate.of(48_000).interval - LATE


def test_two_processes_keep_to_it_too_when_redis_freezes_in_the_middle(
    openai_server: OpenAIServer, breakable: Breakable
) -> None:
    both = start_both(openai_server.url, breakable.url, requests_per_minute=600)
    while len(openai_server.requests) < 20:
        time.sleep(0.01)
    breakable.freeze()

    assert all_well(both), "no text fails for it"
    # Beside the shared burst each has one of its own share: half as long.
    sent = [(request.at, 1.0) for request in openai_server.requests]
    assert len(sent) == 90
    shared = Rate.of(600)
    assert_within(sent, Rate(2 * shared.burst, shared.interval))


def test_a_wait_above_max_wait_hands_the_work_back_with_what_was_done_kept(
    openai_server: OpenAIServer, client: Redis
) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url=openai_server.url, max_inputs=1, concurrency=1,
        requests_per_minute=2, max_wait=5.0,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    kept: list[str] = []

    with pytest.raises(TransientError, match=r"requests_per_minute.* no room for [23]") as told:
        RemoteEmbedder(settings, SecretStr(KEY), gate=gate).embed(
            ["first", "second"], keep=lambda texts, _: kept.extend(texts)
        )

    assert told.value.retry_after == pytest.approx(30, abs=1)
    assert kept == ["first"]
    assert len(openai_server.requests) == 1


def test_one_request_without_room_leaves_those_that_are_booked_to_be_sent(
    openai_server: OpenAIServer, client: Redis
) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url=openai_server.url, max_inputs=1, concurrency=4,
        requests_per_minute=20, max_wait=4.0,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    kept: list[str] = []

    with pytest.raises(TransientError, match="leaves no room for"):
        RemoteEmbedder(settings, SecretStr(KEY), gate=gate).embed(
            ["a", "b", "c", "d", "e"], keep=lambda texts, _: kept.extend(texts)
        )

    # A burst of two, and one that waits for 60 / 19 s.
    assert sorted(kept) == ["a", "b", "c"]
    assert len(openai_server.requests) == 3


def test_what_is_booked_does_not_wait_once_the_provider_refused_for_good(
    openai_server: OpenAIServer, client: Redis
) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url=openai_server.url, max_inputs=1, concurrency=2,
        requests_per_minute=5,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    openai_server.default = refuse(401)
    began = time.monotonic()

    with pytest.raises(PermanentError, match="OPENAI_API_KEY is not accepted"):
        RemoteEmbedder(settings, SecretStr(KEY), gate=gate).embed(["a", "b"])

    assert time.monotonic() - began < 6, "the second was booked for in 12 s"
    assert len(openai_server.requests) == 1


def test_a_clock_that_went_back_an_hour_makes_nobody_wait_for_it(
    client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiting, "_BOOK", an_hour_ahead(limiting._BOOK))
    monkeypatch.setattr(limiting, "_CORRECT", an_hour_ahead(limiting._CORRECT))
    ahead = limiter(client, requests=60, tokens=6000)
    assert waits(ahead, [1] * 8)[-1] > 0
    ahead.correct(ahead.book(400, 10), 400, 500)
    monkeypatch.undo()

    now = limiter(client, requests=60, tokens=6000)

    assert 0 < now.book(1, 1e9).wait < 10, "what was booked counts, and the hour does not"
    now.correct(now.book(1, 1e9), 1, 1)
    assert 0 < now.book(1, 1e9).wait < 10


def an_hour_ahead(script: str) -> str:
    """Return the script as a server runs it whose clock is fast by an hour."""
    fast = script.replace("local now = time[1]", "local now = 3600 + time[1]")
    assert fast != script
    return fast


def test_the_limits_of_a_provider_are_in_one_slot_of_a_cluster() -> None:
    keys = [key.encode() for key in Limiter(Redis(), "some-id", requests=1, tokens=1)._keys]

    assert len(set(keys)) == 2
    assert len({key_slot(key) for key in keys}) == 1


def test_a_call_that_took_its_time_waits_for_no_limit_any_more(
    openai_server: OpenAIServer, client: Redis
) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url=openai_server.url, max_inputs=1, concurrency=1,
        requests_per_minute=60,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    embedder = RemoteEmbedder(settings, SecretStr(KEY), gate=gate, patience=1.5)
    began = time.monotonic()

    with pytest.raises(TransientError) as told:
        embedder.embed([f"t{i}" for i in range(20)])

    assert time.monotonic() - began < 5
    assert told.value.retry_after is not None
    assert 6 <= len(openai_server.requests) <= 8


def test_a_call_with_endless_patience_waits_for_all_of_it(
    openai_server: OpenAIServer, client: Redis
) -> None:
    settings = EmbeddingSettings(
        provider="openai", model="m", base_url=openai_server.url, max_inputs=1, concurrency=1,
        requests_per_minute=60, max_wait=0.0,
    )  # fmt: skip
    gate = build_gate(client, settings, SecretStr(KEY), workers=1)
    texts = [f"t{i}" for i in range(7)]
    began = time.monotonic()

    found = RemoteEmbedder(settings, SecretStr(KEY), gate=gate, patience=math.inf).embed(texts)

    assert found.tobytes() == vectors_for(texts, 8).tobytes()
    assert time.monotonic() - began >= Rate.of(60).interval / 2


def test_a_full_redis_leaves_a_process_its_share(breakable: Breakable) -> None:
    with connect(breakable.url) as client:
        shared = limiter(client, requests=60, workers=2)
        client.config_set("maxmemory", "1mb")
        client.config_set("maxmemory-policy", "noeviction")

        with capture_logs() as logs:
            alone = waits(shared, [1] * 4)

    assert alone[:3] == [0] * 3
    assert alone[3] == pytest.approx(60 / 28, abs=0.1)
    assert [entry["event"] for entry in logs] == ["rate_limits_not_shared"]
