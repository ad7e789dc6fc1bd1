"""Voyage AI's embeddings API."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pipeline.embedding.shapes.base import Asked, Reply, indexed, parsed, total_tokens


class VoyageShape:
    """`POST /embeddings`, told by `input_type` which prompt to put before the texts.

    The tokens that a request may hold differ by model, from 120,000 on: that is what is kept to.
    """

    url: ClassVar[str | None] = "https://api.voyageai.com/v1"
    example: ClassVar[str] = "https://api.voyageai.com/v1"
    path: ClassVar[str] = "/embeddings"
    key: ClassVar[str] = "VOYAGE_API_KEY"
    most_texts: ClassVar[int] = 1000
    most_tokens: ClassVar[int] = 120_000
    asks_input_type: ClassVar[bool] = True

    def body(self, texts: Sequence[str], asked: Asked) -> dict[str, Any]:
        """See `Shape.body`."""
        body = {
            "model": asked.model,
            "input": list(texts),
            "input_type": asked.input_type.value,
            "truncation": asked.truncate,
            "encoding_format": "base64",
        }
        return body if asked.dimensions is None else body | {"output_dimension": asked.dimensions}

    def read(self, body: bytes, count: int) -> Reply:
        """See `Shape.read`."""
        whole = parsed(body)
        return Reply(indexed(whole, count), total_tokens(whole))
