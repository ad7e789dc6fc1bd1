"""Hugging Face's Text Embeddings Inference (TEI), a server that people run themselves."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pipeline.embedding.shapes.base import Asked, Reply, listed, parsed


class TeiShape:
    """`POST /embed`. It serves one model, whatever name we know it by.

    It takes 32 texts a request unless it was started with another --max-client-batch-size.
    """

    url: ClassVar[str | None] = None
    example: ClassVar[str] = "http://localhost:8080"
    path: ClassVar[str] = "/embed"
    key: ClassVar[str] = "TEI_API_KEY"
    most_texts: ClassVar[int] = 32
    most_tokens: ClassVar[int] = 300_000
    asks_input_type: ClassVar[bool] = False

    def body(self, texts: Sequence[str], asked: Asked) -> dict[str, Any]:
        """See `Shape.body`."""
        body = {"inputs": list(texts), "truncate": asked.truncate}
        return body if asked.dimensions is None else body | {"dimensions": asked.dimensions}

    def read(self, body: bytes, count: int) -> Reply:
        """See `Shape.read`. It does not say what it used."""
        return Reply(listed(parsed(body), count), None)
