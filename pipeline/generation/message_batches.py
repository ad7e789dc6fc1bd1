"""The same asks through Anthropic's Message Batches API: half the price, done within a day."""

from collections.abc import Mapping
from typing import Any, Literal

import httpx2
from anthropic import AsyncAnthropic, NotFoundError
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from pipeline.errors import PermanentError
from pipeline.generation.anthropic_calls import FAULTS, LARGEST_REPLY, Caller, decoded
from pipeline.generation.anthropic_errors import AskRefusedError
from pipeline.generation.base import (
    MOST_ASKS,
    Answer,
    Ask,
    BatchGoneError,
    BatchResult,
    NotBilled,
    UnknownOutcomeError,
)
from pipeline.generation.replies import read_message
from pipeline.generation.requests import message_of
from pipeline.generation.settings import GenerationSettings
from pipeline.generation.sizes import size
from pipeline.providers.replies import MalformedReplyError

_LARGEST_RESULTS = LARGEST_REPLY + MOST_ASKS * (1 << 14)
"""Bytes of a batch's results: several times what the longest answers take."""

_NOT_BILLED = {
    "errored": "the provider refused it",
    "canceled": "the batch was cancelled before this request",
    "expired": "the batch's day was over before this request",
}


class _Batch(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    processing_status: Literal["in_progress", "canceling", "ended"]
    results_url: str | None = None


class ClaudeBatches:
    """Submits asks as a message batch, and looks whether it is done.

    Raises SettingsError when the key or the base URL cannot be used.
    """

    def __init__(self, settings: GenerationSettings, api_key: SecretStr | None) -> None:
        self._model = settings.model
        self._caller = Caller(settings, api_key)

    def submit(self, asks: Mapping[str, Ask]) -> str:
        """Send the asks, each under its id, and return the batch's id."""

        async def send(client: AsyncAnthropic) -> bytes:
            reply = await client.messages.batches.with_raw_response.create(
                requests=[
                    {"custom_id": name, "params": message_of(ask, self._model)}
                    for name, ask in asks.items()
                ]
            )
            return await reply.read()

        try:
            return _batch(self._caller.call(send)).id
        except FAULTS as error:
            ours = self._caller.faults.of(error)
        raise PermanentError(str(ours)) if isinstance(ours, AskRefusedError) else ours

    def poll(self, batch_id: str, asks: Mapping[str, Ask]) -> Mapping[str, BatchResult] | None:
        """Return what became of each ask, by id; None: the batch is still at work."""
        batch = self._look(batch_id)
        if batch.processing_status != "ended":
            return None
        if batch.results_url is None:
            raise BatchGoneError(
                f"the results of message batch {batch_id} are gone: the provider keeps them for 29"
                " days"
            )
        return self._results(batch_id, asks)

    def cancel(self, batch_id: str) -> None:
        """Have the batch end soon; one that is over stays as it is."""

        async def send(client: AsyncAnthropic) -> bytes:
            reply = await client.messages.batches.with_raw_response.cancel(batch_id)
            return await reply.read()

        try:
            self._caller.call(send)
        except FAULTS as error:
            ours = self._caller.faults.of_look(error)
        else:
            return
        if not (isinstance(ours, PermanentError) and self._is_over(batch_id)):
            raise ours

    def _is_over(self, batch_id: str) -> bool:
        return self._look(batch_id).processing_status == "ended"

    def _look(self, batch_id: str) -> _Batch:
        async def send(client: AsyncAnthropic) -> bytes:
            reply = await client.messages.batches.with_raw_response.retrieve(batch_id)
            return await reply.read()

        try:
            return _batch(self._caller.call(send))
        except FAULTS as error:
            if isinstance(error, NotFoundError):
                gone = f"has no message batch {batch_id}: it is of another key, or gone"
                raise BatchGoneError(self._caller.faults.in_words(gone)) from None
            raise self._caller.faults.of_look(error) from None

    def _results(self, batch_id: str, asks: Mapping[str, Ask]) -> dict[str, BatchResult]:
        """Read the results from where the API has them.

        Not from `results_url`, as the SDK does: the key would go to whatever host that names.
        """

        async def send(client: AsyncAnthropic) -> bytes:
            path = f"/v1/messages/batches/{batch_id}/results"
            return (await client.get(path, cast_to=httpx2.Response)).content

        try:
            lines = self._caller.call(send, most=_LARGEST_RESULTS).splitlines()
            results = dict(_named(decoded(line)) for line in lines if line.strip())
        except FAULTS as error:
            raise self._caller.faults.of_look(error) from None
        return {name: self._answer(results.get(name), ask) for name, ask in asks.items()}

    def _answer(self, result: object, ask: Ask) -> BatchResult:
        """Return what became of an ask: unless the results say otherwise it may have been billed.

        "You won't be billed" for what errored, was cancelled or expired (Anthropic's guide on batch
        processing, "Monitoring your batch").
        """
        quoted = self._caller.faults.quoted
        match result:
            case {"type": "succeeded", "message": message}:
                return _read(message, ask)
            case {"type": "errored", "error": {"error": {"message": str(words)}}}:
                return NotBilled(f"{_NOT_BILLED['errored']}: {quoted(words)}")
            case {"type": str(kind)} if kind in _NOT_BILLED:
                return NotBilled(_NOT_BILLED[kind])
            case {"type": str(kind)}:
                return UnknownOutcomeError(f"the provider says no more than: {quoted(kind)}")
            case _:
                return UnknownOutcomeError("the batch's results do not tell of it")


def _batch(body: bytes) -> _Batch:
    try:
        return _Batch.model_validate(decoded(body))
    except ValidationError:
        raise MalformedReplyError("not a message batch") from None


def _named(line: object) -> tuple[str, Any]:
    match line:
        case {"custom_id": str(name), "result": result}:
            return name, result
        case _:
            raise MalformedReplyError("a line of results without an id")


def _read(message: object, ask: Ask) -> Answer:
    """Return the answer; one that does not even say what it cost is counted at its most."""
    try:
        return read_message(message, ask)
    except MalformedReplyError as error:
        return Answer((), size(ask)[1], f"the provider sent an answer of no use: {error}")
