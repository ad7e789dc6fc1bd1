"""The smallest pieces that a text is cut into, and how good a place for a cut is behind each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

# A word; where a script puts no blanks between words, a sentence or 32 letters of one. Blanks
# belong to what they follow.
_ATOM = re.compile(r"(?:[^\s。！？]{1,32}[。！？]{0,4}|[。！？]{1,32})(?P<blank>\s*)")  # noqa: RUF001 - full stops of other scripts

_SENTENCE = re.compile(r"[.!?…。！？।؟][\"'”’»)\]]*$")  # noqa: RUF001 - of other scripts
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")


class Border(IntEnum):
    """Where a cut falls: the higher, the better it is. A line's end counts as a sentence's."""

    LETTER = 0
    WORD = 1
    SENTENCE = 2
    PARAGRAPH = 3


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of a text, from `start` to `end` without the blanks behind it; and what follows."""

    start: int
    end: int
    border: Border


def atoms_of(text: str) -> Sequence[Atom]:
    """Return a text's pieces, in order: all of it but blanks."""
    return [
        Atom(found.start(), found.start("blank"), _border(found[0], found["blank"]))
        for found in _ATOM.finditer(text)
    ]


def ends_sentence(text: str) -> bool:
    """Return whether a text, without blanks at its end, ends as a sentence does."""
    return _SENTENCE.search(text[-8:]) is not None


def _border(piece: str, blank: str) -> Border:
    if _PARAGRAPH.search(blank):
        return Border.PARAGRAPH
    if "\n" in blank or ends_sentence(piece.rstrip()):
        # A full stop without a blank behind it is within a number, a name or an address.
        return Border.SENTENCE if blank or piece[-1] in "。！？" else Border.LETTER  # noqa: RUF001 - of other scripts
    return Border.WORD if blank else Border.LETTER
