"""Cohere's embed API, version 2."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pipeline.embedding.shapes.base import Asked, InputType, Reply, listed, parsed
from pipeline.providers.replies import MalformedReplyError

_INPUT_TYPES = {InputType.QUERY: "search_query", InputType.DOCUMENT: "search_document"}


class CohereShape:
    """`POST /embed`, which requires an `input_type`; 96 texts a request at most."""

    url: ClassVar[str | None] = "https://api.cohere.com/v2"
    example: ClassVar[str] = "https://api.cohere.com/v2"
    path: ClassVar[str] = "/embed"
    key: ClassVar[str] = "COHERE_API_KEY"
    most_texts: ClassVar[int] = 96
    most_tokens: ClassVar[int] = 300_000
    asks_input_type: ClassVar[bool] = True

    def body(self, texts: Sequence[str], asked: Asked) -> dict[str, Any]:
        """See `Shape.body`."""
        body = {
            "model": asked.model,
            "texts": list(texts),
            "input_type": _INPUT_TYPES[asked.input_type],
            "embedding_types": ["float"],
            "truncate": "END" if asked.truncate else "NONE",
        }
        return body if asked.dimensions is None else body | {"output_dimension": asked.dimensions}

    def read(self, body: bytes, count: int) -> Reply:
        """See `Shape.read`."""
        whole = parsed(body)
        try:
            rows = whole["embeddings"]["float"]
        except (KeyError, TypeError) as error:
            raise MalformedReplyError("not a list of embeddings") from error
        return Reply(listed(rows, count), _billed(whole.get("meta")))


def _billed(meta: object) -> int | None:
    match meta:
        case {"billed_units": {"input_tokens": int() | float() as tokens}} if (
            tokens > 0 and not isinstance(tokens, bool)
        ):
            return int(tokens)
        case _:
            return None
