"""Where judged texts stand in documents, and how much of them some chunks hold.

Places are counted in a document's letters: its text as `squash` writes it, without white space, so
that no chunker's line breaks make a difference.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.golden.passages import aligned, squash, window_of

_WORD = re.compile(r"\S+")

Passage = tuple[int, int]
"""First letter, and the one behind the last."""


class Letters:
    """A document's text without white space, and where its places are in that."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = [found.span() for found in _WORD.finditer(text)]
        self._starts = [start for start, _ in self._words]
        squashed = [squash(text[start:end]) for start, end in self._words]
        self._before = [0]
        for word in squashed:
            self._before.append(self._before[-1] + len(word))
        self.squashed = "".join(squashed)

    def at(self, offset: int) -> int:
        """Return how many letters stand before an offset of the text."""
        word = bisect_right(self._starts, offset) - 1
        if word < 0:
            return 0
        start, end = self._words[word]
        if offset >= end:
            return self._before[word + 1]
        return self._before[word] + len(squash(self._text[start:offset]))

    def passages_of(self, text: str) -> list[Passage]:
        """Return where a text, or what there is of it, stands: passages that follow each other."""
        judged = squash(text)
        if not judged:
            return []
        runs = aligned(judged, self.squashed, window_of(len(judged)))
        return [(there, there + length) for _, there, length in runs.tolist()]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a judged text stands: a document's number, and the passages there."""

    document: int
    passages: Sequence[Passage]

    @property
    def length(self) -> int:
        """How many letters it has."""
        return sum(last - first for first, last in self.passages)

    @property
    def ends(self) -> Passage:
        """Where its first passage begins and its last one ends."""
        return self.passages[0][0], self.passages[-1][1]


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk as a passage of a document, which it is named by its number."""

    document: int
    first: int
    last: int

    @property
    def length(self) -> int:
        """How many letters it has."""
        return self.last - self.first


def share_held(places: Sequence[Place], pieces: Sequence[Piece]) -> float:
    """Return the share of a judged text that chunks hold together, from 0 to 1.

    Of a text that stands at several places, at the one that they hold most of.
    """
    return max((_held(place, pieces) / place.length for place in places), default=0.0)


def _held(place: Place, pieces: Sequence[Piece]) -> int:
    own = [(piece.first, piece.last) for piece in pieces if piece.document == place.document]
    merged = _merged(own)
    return sum(
        max(0, min(last, end) - max(first, start))
        for first, last in place.passages
        for start, end in merged
    )


def _merged(passages: Iterable[Passage]) -> list[Passage]:
    """Return the same letters in passages that do not overlap."""
    merged: list[Passage] = []
    for first, last in sorted(passages):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def within_budget(ranking: Sequence[Piece], budget: int) -> list[Piece]:
    """Return the first chunks of a ranking, of so many letters in all; the last one is cut."""
    kept: list[Piece] = []
    for piece in ranking:
        if budget <= 0:
            break
        length = min(piece.length, budget)
        kept.append(Piece(piece.document, piece.first, piece.first + length))
        budget -= length
    return kept


def first_match(
    evidence: Sequence[Sequence[Place]], ranking: Sequence[Piece], share: float
) -> int | None:
    """Return the rank of the first chunk that has to do with a judged text; None: there is none.

    Such a chunk holds that share of the text, or is itself, by that share, a part of it.
    """
    for rank, piece in enumerate(ranking, start=1):
        if any(_matches(place, piece, share) for places in evidence for place in places):
            return rank
    return None


def _matches(place: Place, piece: Piece, share: float) -> bool:
    least = share * min(place.length, piece.length)
    return piece.length > 0 and _held(place, [piece]) >= least


def rank_held(places: Sequence[Place], ranking: Sequence[Piece], share: float) -> int | None:
    """Return the rank from which a ranking's chunks hold a share of a judged text; None: never."""
    documents = {place.document for place in places}
    for rank, piece in enumerate(ranking, start=1):
        if piece.document in documents and share_held(places, ranking[:rank]) >= share:
            return rank
    return None
