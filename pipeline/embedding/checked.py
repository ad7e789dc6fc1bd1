"""An embedder whose vectors are looked at: what cannot be used is told, text by text."""

from collections.abc import Sequence

from pipeline.embedding.base import Embedder, check
from pipeline.types import Failure, FloatMatrix


class CheckedEmbedder:
    """Embeds without a cache, for texts that are embedded once: chunks on their way in."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder.model
        self._embedder = embedder

    @property
    def dimensions(self) -> int | None:
        """The length of its vectors, where the model or the settings say it."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> tuple[FloatMatrix, dict[int, Failure]]:
        """Return vectors of shape (n, d), float32, in order, and the failures by position.

        Raises TransientError and PermanentError as the embedder does, and PermanentError for
        vectors of the wrong dimension.
        """
        vectors = self._embedder.embed(texts)
        names = [str(position) for position in range(len(texts))]
        return vectors, check(vectors, names, self.model, self.dimensions)
