"""What servers and networks do to a request: whether it was billed, and who may send it again."""

import gzip
import json

import pytest

from pipeline.errors import PermanentError, RecallwatchError, TransientError
from pipeline.generation.anthropic_calls import LARGEST_REPLY
from pipeline.generation.base import UnknownOutcomeError, Usage
from tests.integration.pipeline.generation.conftest import ASK, KEY, Build, failing
from tests.loopback.anthropic_server import (
    AnthropicServer,
    Reply,
    drip,
    hang,
    message,
    raw,
    refuse,
)


def _refused_by_key(status: int) -> Reply:
    return refuse(status, "authentication_error", f"bad key\n{KEY}")


@pytest.mark.parametrize(
    ("reply", "wait"),
    [
        (refuse(429, "rate_limit_error", headers={"retry-after": "17"}), 17.0),
        (refuse(429, "rate_limit_error", headers={"retry-after": "soon"}), None),
        (refuse(529, "overloaded_error", "Overloaded"), None),
        (refuse(529, "overloaded_error", headers={"retry-after": "3"}), 3.0),
        (refuse(500, "api_error", "Internal server error"), None),
        (refuse(503, "overloaded_error"), None),
        (refuse(409, "conflict_error"), None),
        (raw(408, b""), None),
    ],
)
def test_what_the_provider_did_not_do_may_be_sent_again_when_it_says(
    server: AnthropicServer, build: Build, reply: Reply, wait: float | None
) -> None:
    server.script = [reply]

    error = failing(lambda: build().ask(ASK))

    assert isinstance(error, TransientError)
    assert error.retry_after == wait
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        raw(500, b"<html>Bad Gateway</html>"),
        raw(502, b""),
        raw(503, b"upstream connect error or disconnect/reset before headers"),
        refuse(504, "timeout_error", "Timed out"),
        refuse(504, "api_error"),
        raw(500, json.dumps({"error": {"message": "x", "type": "internal_server_error"}}).encode()),
        raw(200, b'{"type": "message"', missing=100),
        raw(200, b""),
        raw(200, b"not JSON"),
        raw(200, b"[" * 100_000),
        raw(200, b"[]"),
        raw(200, b" " * (LARGEST_REPLY + 1)),
        raw(200, gzip.compress(b" " * 10_000_000), headers={"Content-Encoding": "gzip"}),
        message(type="completion"),
        message(usage={"input_tokens": None}),
        message(usage={"output_tokens": -1}),
        message(usage={"output_tokens": 10**12}),
        message(usage={"output_tokens": "12"}),
    ],
)
def test_what_may_have_been_billed_is_told_apart_and_not_sent_again(
    server: AnthropicServer, build: Build, reply: Reply
) -> None:
    server.script = [reply]

    error = failing(lambda: build().ask(ASK))

    assert isinstance(error, UnknownOutcomeError)
    assert str(error).startswith(f"generation server {server.host} ")
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [hang(), drip(0.05)])
def test_a_server_that_does_not_come_to_an_end_is_left_in_time(
    server: AnthropicServer, build: Build, reply: Reply
) -> None:
    server.script = [reply]

    error = failing(lambda: build(timeout=0.4).ask(ASK))

    assert isinstance(error, UnknownOutcomeError)
    assert str(error).endswith("did not answer within 0.4 s")


def test_a_server_that_is_not_there_was_not_paid(server: AnthropicServer, build: Build) -> None:
    generator = build(base_url="http://127.0.0.1:1")

    error = failing(lambda: generator.ask(ASK))

    assert isinstance(error, TransientError)
    assert "generation server 127.0.0.1:1 cannot be reached" in str(error)
    assert "check generation.base_url" in str(error)
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (_refused_by_key(401), "ANTHROPIC_API_KEY is not accepted by"),
        (_refused_by_key(403), "ANTHROPIC_API_KEY may not use claude-haiku-4-5"),
        (refuse(404, "not_found_error", "model: claude-x"), "check generation.model"),
        (refuse(402, "billing_error"), "add credit"),
        (refuse(400, said="Your credit balance is too low"), "add credit"),
        (refuse(400, said="You have reached your specified API usage limits"), "add credit"),
        (
            refuse(
                429,
                "rate_limit_error",
                details={"error_code": "enforced_spend_limit_reached"},
                headers={"retry-after": "5"},
            ),
            "add credit",
        ),
        (refuse(400, said="tools.0.custom.strict: Extra inputs"), "a forced, strict tool"),
        (refuse(400, said="tool_choice: forced tool use is not supported"), "set generation.model"),
        (raw(422, json.dumps({"detail": "model claude-x not supported"}).encode()), "claude-haiku"),
        (raw(418, b"{}"), "answered 418: check generation.base_url"),
    ],
)
def test_what_every_request_would_meet_ends_the_generation_with_what_to_do(
    server: AnthropicServer, build: Build, reply: Reply, said: str
) -> None:
    server.script = [reply]

    error = failing(lambda: build().ask(ASK))

    assert isinstance(error, PermanentError)
    assert said in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        refuse(400, said="prompt is too long: 203456 tokens > 200000 maximum"),
        refuse(400, said="Output blocked by content filtering policy"),
        refuse(413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
def test_a_request_refused_for_its_chunk_costs_nothing_and_the_others_go_on(
    server: AnthropicServer, build: Build, reply: Reply
) -> None:
    server.script = [reply]
    generator = build()

    refused, next_one = generator.ask(ASK), generator.ask(ASK)

    assert (refused.drafts, refused.usage) == ((), Usage(0, 0))
    assert "answered 4" in str(refused.refusal)
    assert len(next_one.drafts) == 2


def test_a_redirect_is_not_followed_and_no_key_goes_along(
    server: AnthropicServer, build: Build
) -> None:
    with AnthropicServer() as elsewhere:
        headers = {"Location": f"{elsewhere.url}/v1/messages"}
        server.default = raw(307, b"", headers=headers)

        error = failing(lambda: build().ask(ASK))

    assert isinstance(error, PermanentError)
    assert "answered 307, a redirect, which is not followed" in str(error)
    assert (len(server.requests), elsewhere.requests) == (1, [])


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"wrong {KEY}\nkey"}},
        {"message": f"wrong {KEY}"},
        {"detail": f"wrong {KEY}"},
        {"error": f"wrong {KEY}"},
        f"wrong {KEY}",
    ],
)
def test_the_server_s_words_are_quoted_without_the_key(
    server: AnthropicServer, build: Build, body: object
) -> None:
    server.script = [raw(403, json.dumps(body).encode())]

    error: RecallwatchError = failing(lambda: build().ask(ASK))

    assert "wrong ***" in str(error)
