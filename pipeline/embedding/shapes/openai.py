"""OpenAI's embeddings API, which Ollama, vLLM, llama.cpp, LiteLLM and many more speak too."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pipeline.embedding.shapes.base import Asked, Reply, indexed, parsed, total_tokens


class OpenAIShape:
    """`POST /embeddings`. It knows of no input types, and refuses a text that is too long.

    The reply is decoded here because the SDK's typed models take 3 times as long over 2,048 vectors
    of 1,536 dimensions in base64, and 7 times as long over lists of numbers.
    """

    url: ClassVar[str | None] = "https://api.openai.com/v1"
    example: ClassVar[str] = "http://localhost:11434/v1"
    path: ClassVar[str] = "/embeddings"
    key: ClassVar[str] = "OPENAI_API_KEY"
    most_texts: ClassVar[int] = 2048
    most_tokens: ClassVar[int] = 300_000
    asks_input_type: ClassVar[bool] = False

    def body(self, texts: Sequence[str], asked: Asked) -> dict[str, Any]:
        """See `Shape.body`."""
        body = {"model": asked.model, "input": list(texts), "encoding_format": "base64"}
        return body if asked.dimensions is None else body | {"dimensions": asked.dimensions}

    def read(self, body: bytes, count: int) -> Reply:
        """See `Shape.read`."""
        whole = parsed(body)
        return Reply(indexed(whole, count), total_tokens(whole))
