"""Cut a text into chunks of some size, at the ends of paragraphs and sentences where it can be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.chunking.atoms import Atom, Border, atoms_of
from pipeline.errors import UsageError

LEAST = {"characters": 50, "words": 10}
"""The smallest sizes; what is cut is no sentence any more."""


class Unit(StrEnum):
    """What sizes are counted in: characters, blanks within a chunk included, or words."""

    CHARACTERS = "characters"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk's place in its document's text: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut.

    `size`: the most that a chunk holds. `overlap`: the most of it that the chunk before holds too.

    Raises UsageError for a size too small, and for an overlap of more than half of it.
    """

    size: int
    overlap: int = 0
    unit: Unit = Unit.CHARACTERS

    def __post_init__(self) -> None:
        if self.size < LEAST[self.unit]:
            raise UsageError(f"size {self.size}: at least {LEAST[self.unit]} {self.unit.value}")
        if not 0 <= 2 * self.overlap <= self.size:
            raise UsageError(
                f"overlap {self.overlap} with size {self.size}: at most half of the size"
            )

    def __str__(self) -> str:
        name = str(self.size) + (f"+{self.overlap}" if self.overlap else "")
        return name if self.unit is Unit.CHARACTERS else f"{name} words"


def split(text: str, chunking: Chunking) -> list[Span]:
    """Return the chunks of a text, in order: each begins and ends behind the one before.

    A chunk ends at the best border in its second half, and the last such one; the next begins
    within the overlap, at a sentence where one leaves half of it or more, else at a word.
    """
    return list(_Splitter(atoms_of(text), chunking).spans())


class _Splitter:
    """Cuts one text, a number of atom after the other."""

    def __init__(self, atoms: Sequence[Atom], chunking: Chunking) -> None:
        self._atoms = atoms
        self._chunking = chunking

    def spans(self) -> Iterator[Span]:
        first, ended = 0, -1
        while ended < len(self._atoms) - 1:
            ended = self._end(first, ended)
            yield Span(self._atoms[first].start, self._atoms[ended].end)
            first = self._next_start(first, ended)

    def _size(self, first: int, last: int) -> int:
        if self._chunking.unit is Unit.WORDS:
            return last - first + 1
        return self._atoms[last].end - self._atoms[first].start

    def _end(self, first: int, ended: int) -> int:
        """Return the chunk's last atom: behind the end of the chunk before."""
        last = max(first, ended + 1)
        while last + 1 < len(self._atoms) and self._size(first, last + 1) <= self._chunking.size:
            last += 1
        if last == len(self._atoms) - 1:
            return last
        best = last
        for each in range(last, ended, -1):
            if 2 * self._size(first, each) < self._chunking.size:
                break
            if self._atoms[each].border > self._atoms[best].border:
                best = each
        return best

    def _next_start(self, first: int, ended: int) -> int:
        """Return the next chunk's first atom: it has room for one that this chunk has not."""
        start = ended + 1
        if start == len(self._atoms):
            return start
        for each in range(ended, first, -1):
            too_long = self._size(each, ended) > self._chunking.overlap
            if too_long or self._size(each, ended + 1) > self._chunking.size:
                break
            start = each
        return max(range(start, ended + 2), key=lambda atom: self._start_rank(atom, ended))

    def _start_rank(self, atom: int, ended: int) -> tuple[Border, int]:
        """Return how good a start is: at a sentence, else at a word; of these the earliest.

        A sentence that would leave less than half of the overlap is no better than a word.
        """
        overlap = self._size(atom, ended) if atom <= ended else 0
        best = Border.SENTENCE if 2 * overlap >= self._chunking.overlap else Border.WORD
        return min(self._atoms[atom - 1].border, best), -atom
