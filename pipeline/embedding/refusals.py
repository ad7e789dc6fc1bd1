"""What an embedding server answers instead of vectors: a refusal of one kind or another."""

import re
from http import HTTPStatus

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError

from pipeline.errors import PermanentError

# 424 is what text-embeddings-inference says of an inference that failed.
_TRANSIENT = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.FAILED_DEPENDENCY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_NO_QUOTA = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}

# OpenAI, vLLM: "maximum context length is 8192 tokens"; OpenAI: "maximum input length is",
# "max 300000 tokens per request", "input array too long"; Ollama: "the input length exceeds the
# context length"; llama.cpp: "input is too large to process"; Mistral: "Too many tokens in batch";
# text-embeddings-inference: "must have less than 512 tokens", "maximum allowed batch size 32";
# Voyage: "max allowed tokens per submitted batch is 120000", "does not fit into the model's context
# window"; Cohere: "total number of texts must be at most 96", "too long: total number of tokens".
_TOO_LARGE = re.compile(
    r"context (length|size|window)|input length|tokens per (request|submitted batch)"
    r"|less than \d+ tokens|number of texts must be at most"
    r"|batch size|too (large|long|many)",
    re.IGNORECASE,
)

# What a request names besides its texts; "model" alone stands in words about a text, too.
_NAMES = {"model", "dimensions", "encoding_format"}
_INPUT = re.compile(r"input(?!_type)", re.IGNORECASE)
_OF_NO_TEXT = re.compile(
    r"\b(dimensions?|output_dimension|encoding_format|input_type|embedding_types)\b"
    r"|(unknown|invalid|unsupported|no such) model"
    r"|\bmodel\b.*\b(unknown|not found|not exist|not supported)",
    re.IGNORECASE,
)


class TooLargeError(Exception):
    """The server takes fewer or shorter texts than these in a request."""


def is_too_large(error: APIStatusError) -> bool:
    """Return whether fewer or shorter texts would have been taken."""
    said = said_by(error)
    match error.status_code:
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        case HTTPStatus.BAD_REQUEST | HTTPStatus.UNPROCESSABLE_ENTITY:
            return _TOO_LARGE.search(said) is not None
        case (
            HTTPStatus.TOO_MANY_REQUESTS
        ):  # more tokens in one request than the account may use in a minute
            return "request too large" in said.lower()
        case HTTPStatus.INTERNAL_SERVER_ERROR:  # llama.cpp
            return "too large to process" in said.lower()
        case _:
            return False


def is_transient(error: APIStatusError) -> bool:
    """Return whether the same request may work later."""
    status = error.status_code
    asks_for_patience = status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return asks_for_patience and not _is_out_of_quota(error)


def may_have_billed(error: Exception) -> bool:
    """Return whether the provider may have done the work of a request that failed.

    It did not where it was never reached, or refused. A server error may be a proxy's, with the
    work done behind it.
    """
    match error:
        case APIStatusError():
            return error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        case APIConnectionError() if not isinstance(error, APITimeoutError):
            return not isinstance(error.__cause__, httpx2.ConnectError)
        case _:
            return not isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout)


def concerns_every_text(error: APIStatusError) -> bool:
    """Return whether a refusal that waiting does not cure would meet any other text too.

    Of a request that is called wrong, the provider means its texts (a content filter, characters
    that it does not take) unless it names something else of it.
    """
    if error.status_code not in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}:
        return True
    if error.param is not None:
        return error.param in _NAMES
    said = said_by(error)
    return _INPUT.search(said) is None and _OF_NO_TEXT.search(said) is not None


def _is_out_of_quota(error: APIStatusError) -> bool:
    # Not by the message: Gemini's says "exceeded your current quota" of a limit per minute.
    named = {error.code, str(error.type)}
    return error.status_code == HTTPStatus.PAYMENT_REQUIRED or not _NO_QUOTA.isdisjoint(named)


def refusal(error: APIStatusError, host: str, model: str, key: str, said: str) -> PermanentError:
    """Return the error for a refusal that waiting does not cure.

    `key` names the variable that holds the key; `said` quotes the server.
    """
    status = error.status_code
    if _is_out_of_quota(error):
        return PermanentError(
            f"the account of {key} has no quota left at {host} ({status}): "
            "add credit or raise its limit"
        )
    if status < HTTPStatus.BAD_REQUEST:
        return PermanentError(
            f"{host} answered {status}, a redirect, which is not followed: set embedding.base_url"
            " to where it leads"
        )
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return PermanentError(f"{key} is not accepted by {host} (401)")
        case HTTPStatus.FORBIDDEN:
            return PermanentError(f"{key} may not use {model} at {host} (403): {said}")
        case HTTPStatus.NOT_FOUND:
            return PermanentError(
                f"{host} does not know {model}, or has no embeddings at this address (404): check "
                f"embedding.model and embedding.base_url: {said}"
            )
        case _:
            return PermanentError(f"{host} refuses to embed with {model} ({status}): {said}")


def said_by(error: APIStatusError) -> str:
    """Return the server's own words, which servers put in several places."""
    match error.body:
        case {"message": str(words)} | {"detail": str(words)} | str(words):
            return words
        case _:
            return error.message
