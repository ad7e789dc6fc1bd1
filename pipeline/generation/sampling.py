"""Which chunks questions are written from, and what is asked of them: reproducible by a seed."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.languages import source_language
from pipeline.generation.shingles import SAME_TEXT, Shingles, shingles_of
from pipeline.types import Kind

BLOCK = 256
"""Vectors that are compared with at once."""


@dataclass(frozen=True, slots=True)
class DrawnChunk:
    """A chunk, as it was drawn.

    `place`: document id and chunk index, as the database has them; `vector`: its embedding, float32
    of shape (dimensions,), if it has one.
    """

    chunk: SourceChunk
    place: tuple[object, object] = ("", "")
    vector: NDArray[np.float32] | None = field(default=None, compare=False)


class Distinct:
    """Takes chunks as long as they say something new.

    The same is said by those whose vectors have a cosine of `near_duplicate` and more, and by
    those that share SAME_TEXT of their shingles: a cut or an added line changes a vector a lot.
    """

    def __init__(self, near_duplicate: float) -> None:
        self._near = near_duplicate
        self._blocks: list[NDArray[np.float32]] = []
        self._newest: list[NDArray[np.float32]] = []
        self._shingles = Shingles()

    def take(self, drawn: DrawnChunk) -> bool:
        """Take a chunk, and return True, where none that was taken says the same."""
        shingles = shingles_of(drawn.chunk.content)
        direction = _direction(drawn.vector)
        if self._shingles.largest_share(shingles) >= SAME_TEXT or self._is_near(direction):
            return False
        self._keep(shingles, direction)
        return True

    def remember(self, drawn: DrawnChunk) -> None:
        """Take a chunk whatever it says: none that says the same is taken after it."""
        self._keep(shingles_of(drawn.chunk.content), _direction(drawn.vector))

    def _keep(self, shingles: NDArray[np.uint64], direction: NDArray[np.float32] | None) -> None:
        self._shingles.add(shingles)
        if direction is None:
            return
        self._newest.append(direction)
        if len(self._newest) == BLOCK:
            self._blocks.append(np.stack(self._newest))
            self._newest = []

    def _is_near(self, direction: NDArray[np.float32] | None) -> bool:
        if direction is None:
            return False
        blocks = [*self._blocks, np.stack(self._newest)] if self._newest else self._blocks
        return any(bool(np.max(block @ direction) >= self._near) for block in blocks)


def _direction(vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    if vector is None:
        return None
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else None


def categories(mix: Mapping[str, int], seed: int) -> Iterator[str]:
    """Yield categories without end: in each round all of the mix, in an order of its own."""
    shuffle = random.Random(seed)  # noqa: S311 - reproducible, not secret
    deck = [category for category, weight in mix.items() for _ in range(weight)]
    while True:
        shuffle.shuffle(deck)
        yield from deck


def instead_of(asked: Sequence[str], given: Sequence[str]) -> list[str | None]:
    """Return, for each category given, the one asked for that it stands in for; None: its own.

    Their order is the model's: only how often each was asked for is compared.
    """
    missing = Counter(asked) - Counter(given)
    left, unmet = Counter(asked), missing.elements()
    found: list[str | None] = []
    for category in given:
        found.append(None if left[category] else next(unmet, None))
        left[category] = max(left[category] - 1, 0)
    return found


def ask_for(
    chunks: Sequence[SourceChunk],
    wanted: Sequence[str],
    *,
    kind: Kind = Kind.ANSWERABLE,
    forbidden: Sequence[str] = (),
) -> Ask:
    """Return the request for questions of the `wanted` categories, in the chunks' language.

    That is the declared one, unless their text is certain to be in another.
    """
    declared = chunks[0].language
    text = "\n".join(chunk.content for chunk in chunks)
    return Ask(
        chunks=chunks, categories=wanted, kind=kind, forbidden=forbidden,
        language=source_language(declared, text) if declared else None,
    )  # fmt: skip
