import hashlib
import math
import struct
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from redis import Redis
from structlog.testing import capture_logs

from pipeline.embedding.cache import VectorCache, connect
from pipeline.types import FloatMatrix
from tests.integration.pipeline.embedding.conftest import Breakable
from tests.loopback.openai_server import vectors_for

ANY_FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def key_of(text: str, dimensions: str = "4", model: str = "m") -> str:
    return f"rw:vec:1:{model}:{dimensions}:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.fixture
def client(valkey: str) -> Redis:
    return connect(valkey)


def test_a_key_holds_model_dimensions_and_hash_and_a_value_little_endian_floats(
    client: Redis,
) -> None:
    vector = np.array([[1.5, -2.0, 0.0, 3e-9]], dtype=np.float32)

    VectorCache(client, "layout", 4, 30).set_many(["ação"], vector)

    stored = client.get(key_of("ação", model="layout"))
    assert stored == struct.pack("<4f", 1.5, -2.0, 0.0, 3e-9)


@given(vectors=arrays(np.float32, (3, 4), elements=ANY_FLOAT32))
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # all keys are overwritten
)
def test_vectors_come_back_bit_for_bit_except_those_of_zero_norm(
    valkey: str, vectors: FloatMatrix
) -> None:
    with connect(valkey) as client:
        cache = VectorCache(client, "m", 4, 30)
        cache.set_many(["a", "b", "c"], vectors)

        found, hit = cache.get_many(["a", "b", "c"])

    np.testing.assert_array_equal(hit, vectors.any(axis=1))
    assert found[hit].tobytes() == vectors[hit].tobytes()


def test_more_texts_than_a_call_takes_keep_their_order(client: Redis) -> None:
    texts = [f"many {i}" for i in range(600)]
    cache = VectorCache(client, "m", 4, 30)
    cache.set_many(texts[::2], vectors_for(texts[::2], 4))

    found, hit = cache.get_many(texts)

    np.testing.assert_array_equal(hit, np.arange(600) % 2 == 0)
    np.testing.assert_array_equal(found[::2], vectors_for(texts[::2], 4))
    assert np.isnan(found[1::2]).all()


def test_models_and_dimensions_do_not_share_vectors(client: Redis) -> None:
    VectorCache(client, "one", 4, 30).set_many(["a"], vectors_for(["a"], 4))

    for other in (VectorCache(client, "two", 4, 30), VectorCache(client, "one", None, 30)):
        _, hit = other.get_many(["a"])
        assert not hit.any()


@pytest.mark.parametrize(("days", "seconds"), [(30, 30 * 86_400), (0, -1)])
def test_a_value_lives_for_the_days_asked_for(client: Redis, days: int, seconds: int) -> None:
    VectorCache(client, "m", 4, days).set_many(["lives"], vectors_for(["lives"], 4))

    assert client.ttl(key_of("lives")) == pytest.approx(seconds, abs=5)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"abc",
        struct.pack("<3f", 1, 2, 3),
        struct.pack("<5f", 1, 2, 3, 4, 5),
        struct.pack("<4f", 0, 0, 0, 0),
        struct.pack("<4f", 1, 2, 3, math.nan),
    ],
)
def test_a_value_of_the_wrong_length_or_of_no_use_counts_as_missing_and_is_overwritten(
    client: Redis, value: bytes
) -> None:
    cache = VectorCache(client, "m", 4, 30)
    client.set(key_of("odd"), value)

    _, before = cache.get_many(["odd"])
    cache.set_many(["odd"], vectors_for(["odd"], 4))
    found, after = cache.get_many(["odd"])

    assert (before.tolist(), after.tolist()) == ([False], [True])
    np.testing.assert_array_equal(found, vectors_for(["odd"], 4))


def test_without_dimensions_the_values_say_how_long_they_are(client: Redis) -> None:
    cache = VectorCache(client, "own", None, 30)
    assert cache.get_many(["x"])[0].shape == (1, 0)

    cache.set_many(["x"], vectors_for(["x"], 7))

    found, hit = cache.get_many(["nothing", "x"])
    assert hit.tolist() == [False, True]
    np.testing.assert_array_equal(found[1:], vectors_for(["x"], 7))


def test_no_texts_need_no_call(client: Redis) -> None:
    cache = VectorCache(client, "m", 4, 30)

    cache.set_many([], np.empty((0, 4), dtype=np.float32))
    assert cache.get_many([])[0].shape == (0, 4)


def test_what_has_a_value_is_told_without_fetching_it(client: Redis) -> None:
    texts = [f"there {i}" for i in range(600)]
    cache = VectorCache(client, "there", 4, 30)
    cache.set_many(texts[::3], vectors_for(texts[::3], 4))

    assert cache.has_many(texts) == [i % 3 == 0 for i in range(600)]
    assert cache.has_many([]) == []


def test_a_frozen_server_costs_its_timeout_once_and_is_logged_once(breakable: Breakable) -> None:
    with connect(breakable.url, timeout=0.2) as client:
        cache = VectorCache(client, "m", 4, 30)
        breakable.freeze()
        began = time.monotonic()

        with capture_logs() as logs:
            for _ in range(20):
                _, hit = cache.get_many(["secret words"] * 600)
                cache.set_many(["secret words"], vectors_for(["secret words"], 4))

    assert not hit.any()
    assert time.monotonic() - began < 2
    assert [entry["event"] for entry in logs] == ["embedding_cache_not_readable"]
    assert "secret words" not in str(logs)


def test_a_server_that_comes_back_is_used_again_after_the_pause(breakable: Breakable) -> None:
    with connect(breakable.url, timeout=0.2) as client:
        cache = VectorCache(client, "m", 4, 30, pause=0.3)
        cache.set_many(["a"], vectors_for(["a"], 4))
        with capture_logs() as logs:
            for _ in range(2):
                breakable.freeze()
                assert not cache.get_many(["a"])[1].any()
                breakable.thaw()
                assert not cache.get_many(["a"])[1].any()
                assert not cache.keeps
                time.sleep(0.35)
                assert cache.get_many(["a"])[1].all()
                assert cache.keeps

    assert len(logs) == 2, "one line for each outage"


def test_a_server_that_is_gone_finds_nothing_and_raises_nothing(breakable: Breakable) -> None:
    breakable.stop()
    with connect(breakable.url) as client:
        cache = VectorCache(client, "m", 4, 30)

        cache.set_many(["a"], vectors_for(["a"], 4))
        assert not cache.get_many(["a"])[1].any()
        assert cache.has_many(["a"]) == [False]


def test_a_full_server_is_still_read(breakable: Breakable) -> None:
    with connect(breakable.url) as client:
        cache = VectorCache(client, "m", 4, 30)
        cache.set_many(["a"], vectors_for(["a"], 4))
        client.config_set("maxmemory", "1mb")
        client.config_set("maxmemory-policy", "noeviction")

        with capture_logs() as logs:
            cache.set_many(["b"], vectors_for(["b"], 4))
            cache.set_many(["c"], vectors_for(["c"], 4))
        _, hit = cache.get_many(["a", "b", "c"])

    assert hit.tolist() == [True, False, False]
    assert [entry["event"] for entry in logs] == ["embedding_cache_not_writable"]
