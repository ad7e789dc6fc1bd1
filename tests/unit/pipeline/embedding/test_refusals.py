from typing import Any, cast

import httpx2
import pytest
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

from pipeline.embedding.refusals import (
    concerns_every_text,
    is_too_large,
    is_transient,
    may_have_billed,
    refusal,
    said_by,
)


class Response:
    """As much of an HTTP response as the SDK's errors look at."""

    def __init__(self, status: int) -> None:
        self.status_code = status
        self.headers: dict[str, str] = {}
        self.request = None


def error(status: int, body: object = None, message: str = "Error code") -> APIStatusError:
    return APIStatusError(message, response=cast("Any", Response(status)), body=body)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens, however you requested 8610"),
        (400, "Invalid 'input[0]': maximum input length is 8192 tokens."),
        (400, "Requested 309209 tokens, max 300000 tokens per request"),
        (400, "the input length exceeds the context length"),
        (400, "input is too large to process. increase the physical batch size"),
        (500, "input is too large to process. increase the physical batch size"),
        (422, "`inputs` must have less than 512 tokens. Given: 700"),
        (422, "batch size 64 > maximum allowed batch size 32"),
        (400, "The max allowed tokens per submitted batch is 120000. Your batch has 121138 tokens"),
        (400, "The example at index 0 does not fit into the model's context window of 16000"),
        (400, "invalid request: total number of texts must be at most 96 - received 97"),
        (413, "Payload reached size limit."),
        (429, "Request too large for text-embedding-3-small on tokens per min (TPM): Limit 40000"),
    ],
)
def test_refusals_that_smaller_requests_escape(status: int, message: str) -> None:
    assert is_too_large(error(status, {"message": message}))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model does not support specifying dimensions."),
        (400, "'$.input' is invalid."),
        (401, "Incorrect API key provided"),
        (429, "Rate limit reached for text-embedding-3-small on tokens per min (TPM)"),
        (429, "Too Many Requests"),
        (500, "too many connections"),
        (503, "The engine is currently overloaded"),
    ],
)
def test_refusals_that_smaller_requests_do_not_escape(status: int, message: str) -> None:
    assert not is_too_large(error(status, {"message": message}))


@pytest.mark.parametrize("status", [408, 409, 424, 429, 500, 502, 503, 504, 529])
def test_refusals_that_may_pass(status: int) -> None:
    assert is_transient(error(status))


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 422])
def test_refusals_that_stay(status: int) -> None:
    assert not is_transient(error(status))


@pytest.mark.parametrize("field", ["code", "type"])
def test_an_exhausted_quota_stays_though_it_is_a_429(field: str) -> None:
    refused = error(
        429, {"message": "You exceeded your current quota", field: "insufficient_quota"}
    )

    assert not is_transient(refused)
    assert str(refusal(refused, "api.example.org", "m", "OPENAI_API_KEY", "")) == (
        "the account of OPENAI_API_KEY has no quota left at api.example.org (429): "
        "add credit or raise its limit"
    )


def test_a_limit_per_minute_that_speaks_of_quota_passes() -> None:
    assert is_transient(error(429, {"message": "You exceeded your current quota", "code": "429"}))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, ["refuses to embed with some-model (400)", "said so"]),
        (401, ["OPENAI_API_KEY is not accepted by example.org (401)"]),
        (402, ["no quota left at example.org (402)"]),
        (403, ["OPENAI_API_KEY may not use some-model at example.org (403)", "said so"]),
        (404, ["does not know some-model", "embedding.model", "embedding.base_url", "said so"]),
    ],
)
def test_a_refusal_says_what_was_wrong_where_and_what_to_do(status: int, words: list[str]) -> None:
    message = str(refusal(error(status), "example.org", "some-model", "OPENAI_API_KEY", "said so"))

    assert all(word in message for word in words)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": "from OpenAI", "code": None}, "from OpenAI"),
        ({"detail": "from FastAPI"}, "from FastAPI"),
        ("from Ollama", "from Ollama"),
        ({"message": {"nested": 1}}, "the SDK's words"),
        (None, "the SDK's words"),
    ],
)
def test_the_server_s_words_are_found_where_servers_put_them(body: object, said: str) -> None:
    assert said_by(error(400, body, message="the SDK's words")) == said


def caused(error: APIError, cause: Exception) -> APIError:
    error.__cause__ = cause
    return error


REQUEST = httpx2.Request("POST", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("failed", "billed"),
    [
        (error(429), False),
        (error(400), False),
        (error(500), True),
        (error(504), True),
        (TimeoutError(), True),
        (caused(APITimeoutError(REQUEST), httpx2.ReadTimeout("")), True),
        (caused(APITimeoutError(REQUEST), httpx2.ConnectTimeout("")), False),
        (caused(APIConnectionError(request=REQUEST), httpx2.ConnectError("")), False),
        (caused(APIConnectionError(request=REQUEST), httpx2.ReadError("")), True),
        (caused(APIConnectionError(request=REQUEST), httpx2.RemoteProtocolError("")), True),
    ],
)
def test_only_a_request_that_was_refused_or_never_arrived_is_known_to_be_free(
    failed: Exception, billed: bool
) -> None:
    assert may_have_billed(failed) is billed


@pytest.mark.parametrize(
    ("failed", "every"),
    [
        (error(401), True),
        (error(402), True),
        (error(403), True),
        (error(404), True),
        (error(307), True),
        (error(400, {"message": "dimensions are not supported", "param": "dimensions"}), True),
        (error(400, {"message": "This model does not support specifying dimensions."}), True),
        (error(422, {"message": "no such value", "param": "encoding_format"}), True),
        (error(422, {"detail": "encoding_format must be float"}), True),
        (error(400, {"detail": "Value 'x' supplied for argument 'input_type' is not valid"}), True),
        (error(400, {"message": "output_dimension 100 is not one of 256, 512"}), True),
        (error(400, {"message": "The model `m` does not exist", "param": "model"}), True),
        (error(400, 'model "m" not found, try pulling it first'), True),
        (error(400, {"message": "Unknown model: m"}), True),
        (error(400, {"message": "filtered by the content management policy"}), False),
        (error(400, {"message": "the model cannot take invalid unicode"}), False),
        (error(422, {"message": "unknown encoding of a text"}), False),
        (error(400, {"message": "no dimensions are named here", "param": "prompt"}), False),
        (error(400, {"message": "'$.input' is invalid"}), False),
        (error(400, {"message": "cannot be read", "param": "input"}), False),
    ],
)
def test_a_request_called_wrong_for_its_input_says_nothing_of_other_texts(
    failed: APIStatusError, every: bool
) -> None:
    assert concerns_every_text(failed) is every


def test_a_redirect_is_refused_with_what_to_do() -> None:
    said = str(refusal(error(307), "example.org", "m", "VOYAGE_API_KEY", ""))

    assert "answered 307, a redirect, which is not followed: set embedding.base_url" in said
