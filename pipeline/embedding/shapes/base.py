"""What tells one embedding API from another, and what reading their replies has in common."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.providers.replies import MalformedReplyError

Vector = NDArray[np.float32]
"""Shape (dimensions,)."""


class InputType(StrEnum):
    """What a text is to the search: asymmetric models embed questions and chunks differently."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked beside the texts. `dimensions`: None leaves them to the model.

    `truncate`: a text that is too long for the model is cut, not refused.
    """

    model: str
    dimensions: int | None
    input_type: InputType
    truncate: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """The vectors of a request's texts, in their order, and the tokens billed; None: not said."""

    vectors: Sequence[Vector]
    tokens: int | None


class Shape(Protocol):
    """One API: where it is, what it takes, what it is sent and what it answers.

    `url`: the provider's own address; None: it is a server of the user's. `key`: the environment
    variable of the key, which is sent as a bearer token. `most_texts`, `most_tokens`: what a
    request may hold. `asks_input_type`: the API is told whether texts are questions or chunks.
    """

    url: ClassVar[str | None]
    example: ClassVar[str]
    path: ClassVar[str]
    key: ClassVar[str]
    most_texts: ClassVar[int]
    most_tokens: ClassVar[int]
    asks_input_type: ClassVar[bool]

    def body(self, texts: Sequence[str], asked: Asked) -> dict[str, Any]:
        """Return the request's JSON."""

    def read(self, body: bytes, count: int) -> Reply:
        """Return the `count` vectors of a reply, float32, and its usage.

        Raises MalformedReplyError when there is not exactly one vector for each text. Their
        length is not looked at.
        """


def parsed(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return a reply's JSON; raises MalformedReplyError for what is none."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise MalformedReplyError("not a list of embeddings") from error


def indexed(whole: Any, count: int) -> list[Vector]:  # noqa: ANN401 - JSON
    """Return the vectors of `{"data": [{"index": 0, "embedding": ...}]}`, by their index.

    An embedding is base64 or a list of numbers, which many servers send though base64 was asked.
    """
    try:
        items = whole["data"]
        found = {item["index"]: vector(item["embedding"]) for item in items}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MalformedReplyError("not a list of embeddings") from error
    if len(items) != count or found.keys() != set(range(count)):
        raise MalformedReplyError(
            f"{len(items)} vectors, not one for each of the {count} texts by index"
        )
    return [found[i] for i in range(count)]


def listed(rows: Any, count: int) -> list[Vector]:  # noqa: ANN401 - JSON
    """Return the vectors of a plain list of lists of numbers, one for each text in order."""
    try:
        found = [vector(row) for row in rows]
    except (TypeError, ValueError, OverflowError) as error:
        raise MalformedReplyError("not a list of embeddings") from error
    if not isinstance(rows, list) or len(found) != count:
        raise MalformedReplyError(f"{len(found)} vectors, not one for each of the {count} texts")
    return found


def vector(value: Any) -> Vector:  # noqa: ANN401 - JSON
    """Return one vector, from base64 of little-endian float32 or a list of numbers.

    Raises ValueError, TypeError or OverflowError for anything else.
    """
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, a Failure later
        numbers = np.asarray(value, dtype=np.float32)
    if numbers.ndim != 1:
        raise ValueError("not a list of numbers")
    return numbers


def total_tokens(whole: Mapping[str, Any]) -> int | None:
    """Return what `usage` says was used; servers that do not count say 0, or nothing."""
    match whole.get("usage"):
        case {"total_tokens": int(tokens)} if tokens > 0 and not isinstance(tokens, bool):
            return tokens
        case _:
            return None
