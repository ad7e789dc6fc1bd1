"""What a failed request to the Messages API means: whether it was billed, and what to do."""

import re
from http import HTTPStatus

import httpx2
from anthropic import APIConnectionError, APIError, APIStatusError, APITimeoutError

from pipeline.errors import PermanentError, RecallwatchError, TransientError
from pipeline.generation.base import UnknownOutcomeError
from pipeline.providers.replies import MalformedReplyError, asked_wait, in_one_line

Fault = TimeoutError | APIError | MalformedReplyError
"""All that the SDK and the HTTP client below it raise."""

# With these Anthropic's own server says that it did not do the work. A server error without one
# may come from a proxy, with the work done and billed behind it.
_NOT_DONE = {"api_error", "overloaded_error", "rate_limit_error"}

_TRANSIENT = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS}
_CALLED_WRONG = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}

_NO_MONEY = re.compile(r"credit balance|usage limit|spend(ing)? limit|billing", re.IGNORECASE)

# A request that is called wrong for one of these is wrong whatever its chunks: "tools.0.custom.
# strict: Extra inputs are not permitted", "max_tokens: 3000 > 2048", "Thinking may not be enabled
# when tool_choice forces tool use". Any other fault is taken for one of its chunks.
_OF_EVERY_REQUEST = re.compile(
    r"^(tools|system|max_tokens|model)\b|tool_choice|thinking|\bstrict\b"
    r"|(unknown|invalid|unsupported) model|\bmodel\b.*\b(not found|not support)",
    re.IGNORECASE,
)


class AskRefusedError(Exception):
    """The server does not take this ask, for what its chunks hold; nothing was billed."""


class Faults:
    """Turns the SDK's errors into ours; the server's words are quoted without the key."""

    def __init__(self, host: str, model: str, key: str, timeout: float) -> None:
        self._host = host
        self._model = model
        self._key = key
        self._timeout = timeout

    def in_words(self, what: str) -> str:
        """Return what the server did, with its name."""
        return f"generation server {self._host} {what}"

    def quoted(self, said: str) -> str:
        """Return the server's words on one line, without the key."""
        return in_one_line(said, self._key)

    def of(self, error: Fault) -> RecallwatchError | AskRefusedError:
        """Return our error for a request that may be billed."""
        match error:
            case APIStatusError():
                return self._of_status(error)
            case TimeoutError() | APITimeoutError():
                return self._of_timeout(error)
            case APIConnectionError():
                return self._of_connection(error)
            case _:
                return UnknownOutcomeError(self.in_words(f"sent a reply of no use: {error}"))

    def of_look(self, error: Fault) -> RecallwatchError:
        """Return our error for a request that costs nothing, as a look at a batch."""
        ours = self.of(error)
        if isinstance(ours, UnknownOutcomeError):
            return TransientError(str(ours))
        return PermanentError(str(ours)) if isinstance(ours, AskRefusedError) else ours

    def _of_timeout(self, error: TimeoutError | APITimeoutError) -> RecallwatchError:
        said = self.in_words(f"did not answer within {self._timeout:g} s")
        if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
            return TransientError(said)
        return UnknownOutcomeError(said)

    def _of_connection(self, error: APIConnectionError) -> RecallwatchError:
        fault = self.quoted(str(error.__cause__ or error))
        if isinstance(error.__cause__, httpx2.ConnectError):
            unreachable = f"cannot be reached ({fault}): check generation.base_url"
            return TransientError(self.in_words(unreachable))
        if isinstance(error.__cause__, MalformedReplyError):
            return UnknownOutcomeError(self.in_words(f"sent a reply of no use: {fault}"))
        return UnknownOutcomeError(self.in_words(f"broke off ({fault})"))

    def _of_status(self, error: APIStatusError) -> RecallwatchError | AskRefusedError:
        said = self.quoted(_said_by(error))
        status = error.status_code
        answered = self.in_words(f"answered {status}: {said}")
        if _is_out_of_money(error, said):
            return PermanentError(f"{answered}: add credit or raise the account's limit")
        if status in _TRANSIENT:
            return TransientError(answered, retry_after=asked_wait(error.response.headers))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return _of_server_error(error, answered)
        if status in _CALLED_WRONG and not _OF_EVERY_REQUEST.search(said):
            return AskRefusedError(answered)
        return PermanentError(self._refusal(status, said))

    def _refusal(self, status: int, said: str) -> str:
        """Return why no request passes, and what to do."""
        if status < HTTPStatus.BAD_REQUEST:
            return self.in_words(
                f"answered {status}, a redirect, which is not followed: set generation.base_url to "
                "where it leads"
            )
        match status:
            case HTTPStatus.UNAUTHORIZED:
                return f"ANTHROPIC_API_KEY is not accepted by {self._host} (401)"
            case HTTPStatus.FORBIDDEN:
                return f"ANTHROPIC_API_KEY may not use {self._model} at {self._host} (403): {said}"
            case HTTPStatus.NOT_FOUND:
                return (
                    f"{self._host} does not know what was asked for, or {self._model} (404): check"
                    f" generation.model and generation.base_url: {said}"
                )
            case HTTPStatus.BAD_REQUEST | HTTPStatus.UNPROCESSABLE_ENTITY:
                return (
                    f"{self._host} refuses to generate with {self._model} ({status}): set "
                    f"generation.model to one that takes a forced, strict tool: {said}"
                )
            case _:
                return self.in_words(f"answered {status}: check generation.base_url: {said}")


def _of_server_error(error: APIStatusError, answered: str) -> RecallwatchError:
    if str(error.type) in _NOT_DONE and error.status_code != HTTPStatus.GATEWAY_TIMEOUT:
        return TransientError(answered, retry_after=asked_wait(error.response.headers))
    return UnknownOutcomeError(answered)


def _is_out_of_money(error: APIStatusError, said: str) -> bool:
    match error.status_code:
        case HTTPStatus.PAYMENT_REQUIRED:
            return True
        case HTTPStatus.TOO_MANY_REQUESTS:
            return "spend_limit_reached" in (error.error_code or "")
        case HTTPStatus.BAD_REQUEST:
            return _NO_MONEY.search(said) is not None
        case _:
            return False


def _said_by(error: APIStatusError) -> str:
    """Return the server's own words, which gateways put in several places."""
    match error.body:
        case {"error": {"message": str(words)}} | {"message": str(words)} | {"detail": str(words)}:
            return words
        case {"error": str(words)} | str(words):
            return words
        case _:
            return error.message
