"""The local embedder: wordllama, a small static model whose weights its package brings along."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.embedding.base import FREE, Budget, Keep
from pipeline.errors import PermanentError, SettingsError
from pipeline.types import FloatMatrix

MODEL = "wordllama-l2-supercat-256"
DIMENSIONS = (64, 128, 256)

MAX_CHARACTERS = 100_000
"""What is read of a text: some 25,000 tokens of English, far beyond any sensible chunk."""

_GROUP_TEXTS = 64
_GROUP_CHARACTERS = 131_072
"""The library holds 1 KB a token, padding included: this keeps a group to some 100 MB."""


class LocalEmbedder:
    """Means of wordllama's token vectors, without a server or a key.

    A blank text has a vector of zeros. Fewer dimensions than 256 are the first ones of the full
    vector: the model is trained for that (Matryoshka). Raises SettingsError for other numbers.
    """

    def __init__(self, dimensions: int | None = None) -> None:
        self.model = MODEL
        self.dimensions = DIMENSIONS[-1] if dimensions is None else dimensions
        if self.dimensions not in DIMENSIONS:
            raise SettingsError(
                f"embedding.dimensions is {dimensions}: the local model has 64, 128 or 256"
            )

    def embed(
        self,
        texts: Sequence[str],
        *,
        keep: Keep | None = None,
        budget: Budget = FREE,  # noqa: ARG002 - it costs nothing
    ) -> FloatMatrix:
        """Return vectors of shape (n, dimensions), float32, not normalised.

        A vector depends on nothing but its text, to the last bit. Only the first MAX_CHARACTERS of
        a text are read. Raises PermanentError when the model's files are missing.
        """
        read = [text[:MAX_CHARACTERS] for text in texts]
        vectors = np.empty((len(read), self.dimensions), dtype=np.float32)
        for positions in _alike(read):
            whole = _load().embed([read[i] for i in positions])
            vectors[positions] = whole[:, : self.dimensions]
        if keep is not None:
            keep(texts, vectors)
        return vectors


def _alike(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the positions of texts of like length: the library pads a group to its longest."""
    group: list[int] = []
    for i in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        padded = (len(group) + 1) * len(texts[i])
        if group and (len(group) == _GROUP_TEXTS or padded > _GROUP_CHARACTERS):
            yield group
            group = []
        group.append(i)
    if group:
        yield group


@cache
def _load() -> Any:  # noqa: ANN401 - the library has no types
    """Load the model, once a process (0.3 s), from the files inside its own package."""
    with _root_logger_kept():
        import wordllama  # noqa: PLC0415 - slow, and most commands embed nothing
    folder = Path(wordllama.__file__).parent
    try:
        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    except FileNotFoundError as error:
        raise PermanentError(
            f"the local embedding model is not installed in full: reinstall wordllama ({error})"
        ) from error


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what importing wordllama does to the root logger: a handler, and level INFO."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
