import os
import signal
import threading
import time
from email.utils import formatdate

import numpy as np
import pytest
from structlog.testing import capture_logs

from pipeline.embedding.base import check
from pipeline.embedding.remote import RemoteEmbedder
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, TransientError
from tests.integration.pipeline.embedding.conftest import KEY, TEXTS, Build, failing
from tests.loopback.openai_server import (
    OpenAIServer,
    Reply,
    drip,
    hang,
    raw,
    refuse,
    refuse_longer_than,
    refuse_more_than,
    vectors,
    vectors_for,
)


@pytest.mark.parametrize("reply", [vectors(), vectors(always_floats=True)])
def test_vectors_arrive_bit_for_bit_in_base64_and_as_numbers(
    openai_server: OpenAIServer, build: Build, reply: Reply
) -> None:
    openai_server.default = reply

    found = build().embed(TEXTS)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, vectors_for(TEXTS, 8))


def test_the_request_carries_model_texts_key_and_no_dimensions_unless_set(
    openai_server: OpenAIServer, build: Build
) -> None:
    build().embed(TEXTS)
    build(dimensions=5).embed(TEXTS)

    first, second = openai_server.requests
    assert first.path == "/v1/embeddings"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == {"model": "some-model", "input": TEXTS, "encoding_format": "base64"}
    assert second.body["dimensions"] == 5


def test_a_server_on_this_machine_is_asked_without_a_key(openai_server: OpenAIServer) -> None:
    settings = EmbeddingSettings(provider="openai", model="m", base_url=openai_server.url)

    RemoteEmbedder(settings, None).embed(TEXTS)

    assert openai_server.requests[0].headers["authorization"] == "Bearer no-key"


def test_another_base_url_of_the_sdk_s_own_environment_is_not_followed(
    openai_server: OpenAIServer, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")

    build(attempts=1).embed(TEXTS)

    assert len(openai_server.requests) == 1


def test_vectors_are_put_in_the_order_of_their_index(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = vectors(order=reversed)

    np.testing.assert_array_equal(build().embed(TEXTS), vectors_for(TEXTS, 8))


def test_no_texts_need_no_request(openai_server: OpenAIServer, build: Build) -> None:
    assert build().embed([]).shape == (0, 0)
    assert openai_server.requests == []


def test_a_blank_text_is_not_sent_and_becomes_a_failure(
    openai_server: OpenAIServer, build: Build
) -> None:
    texts = ["first", " \n", "third"]

    found = build().embed(texts)

    assert openai_server.requests[0].texts == ["first", "third"]
    assert check(found, texts, "some-model", None).keys() == {1}
    np.testing.assert_array_equal(found[[0, 2]], vectors_for(["first", "third"], 8))


def test_only_blank_texts_need_no_request(openai_server: OpenAIServer, build: Build) -> None:
    assert check(build().embed(["", " "]), ["a", "b"], "m", 1536).keys() == {0, 1}
    assert openai_server.requests == []


def test_requests_are_packed_to_both_limits_and_the_order_is_kept(
    openai_server: OpenAIServer, build: Build
) -> None:
    texts = [f"text number {i:03}" for i in range(25)]

    found = build(max_inputs=4, max_tokens=45).embed(texts)

    np.testing.assert_array_equal(found, vectors_for(texts, 8))
    assert sorted(len(request.texts) for request in openai_server.requests) == [1] + [3] * 8


def test_no_more_requests_are_under_way_than_allowed(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = vectors(delay=0.05)

    build(max_inputs=1, concurrency=3).embed([f"t{i}" for i in range(9)])

    assert openai_server.most_at_once == 3


@pytest.mark.parametrize(
    "reply",
    [
        refuse(408),
        refuse(409),
        refuse(429, "Rate limit reached"),
        refuse(429, headers={"Retry-After": "0.01"}),
        refuse(500),
        refuse(503, headers={"retry-after-ms": "10"}),
        raw(502, b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"}),
        raw(200, b'{"object": "list", "da', missing=100),
        raw(200, b"<html>Welcome</html>", headers={"Content-Type": "text/html"}),
        vectors(drop=1),
        vectors(index=lambda _: 0),
    ],
)
def test_a_fault_that_passes_costs_one_more_try(
    openai_server: OpenAIServer, build: Build, reply: Reply
) -> None:
    openai_server.script = [reply]

    np.testing.assert_array_equal(build().embed(TEXTS), vectors_for(TEXTS, 8))
    assert len(openai_server.requests) == 2


def test_a_fault_that_stays_ends_after_the_attempts(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = refuse(503, "overloaded", headers={"Retry-After": "0.01"})

    error = failing(build(attempts=3))

    assert isinstance(error, TransientError)
    assert str(error) == f"embedding server {openai_server.host} answered 503: overloaded"
    assert error.retry_after == 0.01
    assert len(openai_server.requests) == 3


def test_retry_after_is_waited_for(openai_server: OpenAIServer, build: Build) -> None:
    openai_server.script = [refuse(429, headers={"Retry-After": "0.4"})]
    began = time.monotonic()

    build().embed(TEXTS)

    assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_longer_retry_after_than_allowed_hands_the_work_back_at_once(
    openai_server: OpenAIServer, build: Build, form: str
) -> None:
    value = "90" if form == "seconds" else formatdate(time.time() + 90, usegmt=True)
    openai_server.default = refuse(429, headers={"Retry-After": value})

    error = failing(build(max_wait=1))

    assert isinstance(error, TransientError)
    assert error.retry_after == pytest.approx(90, abs=2)
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize("reply", [hang(), drip(0.05)])
def test_a_try_ends_at_its_timeout_whatever_trickles_in(
    openai_server: OpenAIServer, build: Build, reply: Reply
) -> None:
    openai_server.default = reply
    began = time.monotonic()

    error = failing(build(timeout=0.3, attempts=2))

    assert isinstance(error, TransientError)
    assert "did not answer within 0.3 s" in str(error)
    assert time.monotonic() - began < 3
    assert len(openai_server.requests) == 2


def test_a_server_that_is_not_there_is_named(build: Build) -> None:
    error = failing(build(base_url="http://127.0.0.1:1/v1", attempts=2))

    assert isinstance(error, TransientError)
    assert "embedding server 127.0.0.1:1 cannot be reached, or broke off" in str(error)
    assert "embedding.base_url" in str(error)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refuse(401, f"Incorrect API key provided: {KEY}"), "OPENAI_API_KEY is not accepted by"),
        (refuse(402, "Insufficient Balance"), "has no quota left at"),
        (refuse(429, "You exceeded", code="insufficient_quota"), "has no quota left at"),
        (refuse(403, f"key {KEY} may not"), "OPENAI_API_KEY may not use some-model"),
        (refuse(404, "no such model"), "does not know some-model"),
        (
            refuse(400, f"bad\nthing with {KEY}"),
            "refuses to embed with some-model (400): bad thing",
        ),
    ],
)
def test_a_refusal_is_final_after_one_request_and_never_shows_the_key(
    openai_server: OpenAIServer, build: Build, reply: Reply, words: str
) -> None:
    openai_server.default = reply

    error = failing(build())

    assert isinstance(error, PermanentError)
    assert words in str(error)
    assert openai_server.host in str(error)
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize("reply", [vectors(drop=1), vectors(index=lambda _: 0), raw(200, b"{}")])
def test_nonsense_at_every_try_is_final(
    openai_server: OpenAIServer, build: Build, reply: Reply
) -> None:
    openai_server.default = reply

    error = failing(build(attempts=2))

    assert isinstance(error, PermanentError)
    assert "sent a reply of no use" in str(error)
    assert len(openai_server.requests) == 2


def test_vectors_of_different_lengths_are_an_error(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [vectors(dimensions=4)]

    error = failing(build(max_inputs=1, concurrency=1))

    assert isinstance(error, PermanentError)
    assert "different lengths for some-model: 4, 8" in str(error)


def test_a_wrong_dimension_and_nan_are_left_to_the_check(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [vectors(spoil={1: np.nan}), vectors(dimensions=4)]
    embedder = build(dimensions=8)

    assert check(embedder.embed(TEXTS), TEXTS, embedder.model, 8).keys() == {1}
    with pytest.raises(PermanentError, match=r"some-model .* 4 dimensions where 8 were expected"):
        check(embedder.embed(TEXTS), TEXTS, embedder.model, 8)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Requested 309209 tokens, max 300000 tokens per request"),
        (413, "batch size 64 > maximum allowed batch size 3"),
        (429, "Request too large for some-model on tokens per min (TPM): Limit 4, Requested 9"),
    ],
)
def test_a_request_that_is_too_large_is_halved_until_it_fits(
    openai_server: OpenAIServer, build: Build, status: int, message: str
) -> None:
    openai_server.default = refuse_more_than(3, status, message)
    texts = [f"t{i}" for i in range(10)]

    np.testing.assert_array_equal(build().embed(texts), vectors_for(texts, 8))
    assert [len(request.texts) for request in openai_server.requests] == [10, 5, 2, 3, 5, 2, 3]


def test_a_text_that_is_too_long_alone_fails_alone_and_is_logged_without_its_words(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = refuse_longer_than(9, "maximum context length is 9 tokens")
    texts = ["a", "b", "long words " * 9, "c"]

    with capture_logs() as logs:
        found = build().embed(texts)

    assert check(found, texts, "some-model", 8).keys() == {2}
    np.testing.assert_array_equal(found[[0, 1, 3]], vectors_for(["a", "b", "c"], 8))
    assert [entry["event"] for entry in logs] == ["text_too_long_to_embed"]
    assert "long words" not in str(logs)


def test_the_first_error_stops_the_requests_that_wait_their_turn(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.default = refuse(401)

    failing(build(max_inputs=1, concurrency=2), [f"t{i}" for i in range(50)])

    assert len(openai_server.requests) <= 4


def test_what_was_sent_when_another_request_fails_is_waited_for_and_kept(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [refuse(429, headers={"Retry-After": "60"})]
    openai_server.default = vectors(delay=0.5)
    kept: list[str] = []

    with pytest.raises(TransientError) as told:
        build(max_inputs=2, concurrency=4).embed(
            [f"t{i}" for i in range(12)], keep=lambda texts, _: kept.extend(texts)
        )

    assert told.value.retry_after == 60
    answered = openai_server.requests[1:]
    assert sorted(kept) == sorted(text for request in answered for text in request.texts)
    assert len(answered) == 3, "and nothing new was begun"


def test_what_was_sent_is_kept_though_another_request_is_refused_for_good(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [refuse(401)]
    openai_server.default = vectors(delay=0.5)
    kept: list[str] = []

    with pytest.raises(PermanentError, match="OPENAI_API_KEY is not accepted"):
        build(max_inputs=1, concurrency=2).embed(
            ["a", "b", "c"], keep=lambda texts, _: kept.extend(texts)
        )

    assert kept == openai_server.requests[1].texts
    assert len(openai_server.requests) == 2


def test_nothing_is_tried_again_once_another_request_failed(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [
        refuse(503, headers={"Retry-After": "9"}),
        refuse(429, headers={"Retry-After": "60"}),
    ]
    began = time.monotonic()

    error = failing(build(max_inputs=1, concurrency=2), ["a", "b"])

    assert isinstance(error, TransientError)
    assert error.retry_after == 60
    assert time.monotonic() - began < 5, "nor waited for"
    assert len(openai_server.requests) == 2


def test_half_of_a_request_that_was_too_large_is_kept_where_the_other_fails(
    openai_server: OpenAIServer, build: Build
) -> None:
    openai_server.script = [refuse(413, "too large"), vectors(), refuse(401)]
    kept: list[str] = []

    with pytest.raises(PermanentError):
        build().embed(["a", "b"], keep=lambda texts, _: kept.extend(texts))

    assert kept == ["a"]


class TimeIsUpError(Exception):
    """What a signal's handler raises, as a task's time limit does."""


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGALRM, TimeIsUpError), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_time_limit_or_a_person_ends_it_at_once_whatever_is_under_way(
    openai_server: OpenAIServer,
    build: Build,
    number: signal.Signals,
    raised: type[BaseException],
) -> None:
    def stop(*_: object) -> None:
        raise TimeIsUpError

    def send() -> None:
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGALRM, stop)
    openai_server.default = hang()
    began = time.monotonic()
    threading.Timer(0.5, send).start()
    try:
        with pytest.raises(raised):
            build(max_inputs=1).embed(["a", "b", "c", "d"])
    finally:
        signal.signal(signal.SIGALRM, before)

    assert time.monotonic() - began < 5
