"""Which chunks questions are written from, and what is asked of them: reproducible by a seed."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.words import tokens
from pipeline.text import normalised
from pipeline.types import Kind

SHINGLE = 16
"""Characters. Two texts that share this many in a row have copied: chance hardly brings it."""

SAME_TEXT = 0.7
"""Share of the shorter text's shingles from which two chunks say the same."""

BLOCK = 256
"""Vectors that are compared with at once."""

DISTINCTIVE = 5
"""Terms of a chunk that `--forbid-terms` keeps out of its questions."""

LONG_ENOUGH = 4
"""Characters of a word that may tell a chunk from others."""


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
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def take(self, drawn: DrawnChunk) -> bool:
        """Take a chunk, and return True, where none that was taken says the same."""
        shingles = _shingles(drawn.chunk.content)
        direction = _direction(drawn.vector)
        if self._copies(shingles) or self._is_near(direction):
            return False
        for shingle in shingles:
            self._holders[shingle].append(len(self._sizes))
        self._sizes.append(len(shingles))
        if direction is not None:
            self._keep(direction)
        return True

    def _keep(self, direction: NDArray[np.float32]) -> None:
        self._newest.append(direction)
        if len(self._newest) == BLOCK:
            self._blocks.append(np.stack(self._newest))
            self._newest = []

    def _copies(self, shingles: AbstractSet[int]) -> bool:
        shared = Counter(holder for each in shingles for holder in self._holders.get(each, ()))
        return any(
            count >= SAME_TEXT * min(self._sizes[holder], len(shingles))
            for holder, count in shared.items()
        )

    def _is_near(self, direction: NDArray[np.float32] | None) -> bool:
        if direction is None:
            return False
        blocks = [*self._blocks, np.stack(self._newest)] if self._newest else self._blocks
        return any(bool(np.max(block @ direction) >= self._near) for block in blocks)


def _shingles(text: str) -> set[int]:
    plain = normalised(text).casefold()
    return {hash(plain[start : start + SHINGLE])
            for start in range(max(1, len(plain) - SHINGLE + 1))}  # fmt: skip


def _direction(vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    if vector is None:
        return None
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else None


def distinct(
    drawn: Iterable[DrawnChunk], wanted: int, *, near_duplicate: float, skipped: AbstractSet[str]
) -> list[DrawnChunk]:
    """Return the first `wanted` chunks that each say something new, without those of `skipped`.

    Fewer where there are no more.
    """
    taken = Distinct(near_duplicate)
    chosen: list[DrawnChunk] = []
    for each in drawn:
        if len(chosen) >= wanted:
            break
        if each.chunk.key not in skipped and taken.take(each):
            chosen.append(each)
    return chosen


def categories(mix: Mapping[str, int], seed: int) -> Iterator[str]:
    """Yield categories without end: in each round all of the mix, in an order of its own."""
    shuffle = random.Random(seed)  # noqa: S311 - reproducible, not secret
    deck = [category for category, weight in mix.items() for _ in range(weight)]
    while True:
        shuffle.shuffle(deck)
        yield from deck


def ask_for(
    chunks: Sequence[SourceChunk],
    wanted: Sequence[str],
    *,
    kind: Kind = Kind.ANSWERABLE,
    forbidden: Sequence[str] = (),
) -> Ask:
    """Return the request for questions of the `wanted` categories, in the chunks' language."""
    return Ask(
        chunks=chunks, categories=wanted, kind=kind, language=chunks[0].language,
        forbidden=forbidden,
    )  # fmt: skip


def distinctive_terms(chunk: SourceChunk, others: Mapping[str, int]) -> list[str]:
    """Return the words that this chunk has more than others have, the most telling first.

    By term frequency times 1 / document frequency; `others` counts for each word the chunks that
    hold it, this one included. Words shorter than LONG_ENOUGH are left out, and with them all of
    scripts without blanks, as are those that stand once in the chunk and in others too.
    """
    counts = Counter(token for token in tokens(chunk.content) if len(token) >= LONG_ENOUGH)
    scores = {
        word: count / others.get(word, 1)
        for word, count in counts.items()
        if count > 1 or others.get(word, 1) == 1
    }
    return sorted(scores, key=lambda word: (-scores[word], word))[:DISTINCTIVE]


def document_frequencies(chunks: Iterable[SourceChunk]) -> Counter[str]:
    """Count for each word the chunks that hold it."""
    return Counter(word for chunk in chunks for word in set(tokens(chunk.content)))
