"""What comes back from the Messages API: a message, checked against what was asked."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.generation.base import Answer, Ask, Draft, Usage
from pipeline.generation.requests import TOOL
from pipeline.providers.replies import MalformedReplyError
from pipeline.types import Kind

_Tokens = Annotated[int, Field(ge=0, le=1_000_000_000)]

_STOPPED = {
    "refusal": "the model declined to write questions from this chunk",
    "max_tokens": "the answer was cut short at its largest length",
    "model_context_window_exceeded": "the answer was cut short: the chunk fills the model's window",
}


class _Part(BaseModel):
    """A part of a reply; what we do not know of is passed over, as the API may add to it."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _CacheWrites(_Part):
    ephemeral_1h_input_tokens: _Tokens = 0


class _Usage(_Part):
    input_tokens: _Tokens
    output_tokens: _Tokens
    cache_creation_input_tokens: _Tokens | None = None
    cache_read_input_tokens: _Tokens | None = None
    cache_creation: _CacheWrites | None = None


class _Message(_Part):
    type: Literal["message"]
    content: list[dict[str, Any]]
    stop_reason: str | None
    usage: _Usage


class _Question(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    text: str
    category: str
    excerpts: list[int]


class _Input(BaseModel):
    """The tool's input: exactly what its schema says."""

    model_config = ConfigDict(strict=True, extra="forbid")

    questions: list[_Question]


_NAMES = frozenset(
    name
    for part in (_Message, _Usage, _CacheWrites, _Input, _Question)
    for name in part.model_fields
)


class _BrokenFormError(ValueError):
    """The model was paid, and its call of the tool is not what was asked for."""


def read_message(value: object, ask: Ask) -> Answer:
    """Return the answer that a message, decoded JSON, is to an ask.

    A message that holds no usable questions is an answer with a refusal that says why. Raises
    MalformedReplyError for what is no message, as nobody knows then what it cost.
    """
    try:
        message = _Message.model_validate(value)
    except ValidationError as error:
        raise MalformedReplyError(f"not a message: {_first(error)}") from None
    usage = _billed(message.usage)
    stopped = _STOPPED.get(message.stop_reason or "")
    if stopped is not None:
        return Answer((), usage, stopped)
    try:
        drafts = [_draft(question, ask) for question in _questions(message, ask)]
    except _BrokenFormError as error:
        return Answer((), usage, f"the model broke the form: {error}")
    return Answer(drafts, usage, None if drafts else "the model found nothing to ask about")


def _billed(usage: _Usage) -> Usage:
    written = usage.cache_creation_input_tokens or 0
    for_an_hour = (
        0 if usage.cache_creation is None else usage.cache_creation.ephemeral_1h_input_tokens
    )
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_write_tokens=max(0, written - for_an_hour),
        cache_hour_write_tokens=for_an_hour,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
    )


def _questions(message: _Message, ask: Ask) -> list[_Question]:
    calls = [block for block in message.content if block.get("type") == "tool_use"]
    if len(calls) != 1 or calls[0].get("name") != TOOL:
        raise _BrokenFormError(f"{len(calls)} calls of tools, not one of {TOOL}")
    try:
        questions = _Input.model_validate(calls[0].get("input")).questions
    except ValidationError as error:
        raise _BrokenFormError(_first(error)) from None
    if len(questions) > len(ask.categories):
        raise _BrokenFormError(f"{len(questions)} questions, not {len(ask.categories)}")
    return questions


def _draft(question: _Question, ask: Ask) -> Draft:
    """Return the draft; a blank one passes, as the filters count those."""
    if question.category not in ask.categories:
        raise _BrokenFormError("a category that was not asked for")
    numbers = sorted(set(question.excerpts))
    if not set(numbers) <= set(range(1, len(ask.chunks) + 1)):
        raise _BrokenFormError("the number of a chunk that was not shown")
    if ask.kind is Kind.ANSWERABLE and not numbers:
        raise _BrokenFormError("a question without the chunk that answers it")
    if not _is_storable(question.text):
        raise _BrokenFormError("a character that no text holds")
    needed = numbers if ask.kind is Kind.ANSWERABLE else []
    return Draft(" ".join(question.text.split()), question.category, needed)


def _is_storable(text: str) -> bool:
    """Return whether PostgreSQL takes the text: JSON can spell NUL and halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _first(error: ValidationError) -> str:
    """Return the first fault and its place, without what the reply holds there.

    Of names in the reply only those of its form are told: any other may be any text.
    """
    fault = error.errors(include_input=False, include_url=False)[0]
    place = [str(part) for part in fault["loc"] if isinstance(part, int) or part in _NAMES]
    return f"{'.'.join(place) or 'it'}: {fault['msg']}"
