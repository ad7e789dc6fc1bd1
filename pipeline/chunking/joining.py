"""Documents put back together from chunks that may overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.chunking.atoms import ends_sentence
from pipeline.chunking.splitting import Span

SHORTEST_OVERLAP = 16
"""Characters that a chunk and the one before must share to be an overlap: fewer may be chance."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A document's text, and where in it each of its chunks is."""

    text: str
    spans: Sequence[Span]


def join(chunks: Sequence[str]) -> Joined:
    """Put a document together from its chunks, in order.

    What a chunk begins with and the one before ends with stands there once. What stood between
    chunks that do not overlap is not known: a blank within a sentence, else an empty line.
    """
    parts: list[str] = []
    spans: list[Span] = []
    length, before = 0, ""
    for chunk in chunks:
        shared = _overlap(before, chunk)
        if chunk and before and not shared:
            between = _between(before, chunk)
            parts.append(between)
            length += len(between)
        start = length - shared
        parts.append(chunk[shared:])
        length = start + len(chunk)
        spans.append(Span(start, length))
        before = chunk or before
    return Joined("".join(parts), spans)


def _overlap(before: str, chunk: str) -> int:
    """Return how many characters the end of the one and the beginning of the other share."""
    anchor = chunk[:SHORTEST_OVERLAP]
    if len(anchor) < SHORTEST_OVERLAP:
        return 0
    place = before.find(anchor, max(0, len(before) - len(chunk)))
    while place >= 0:
        if chunk.startswith(before[place:]):
            return len(before) - place
        place = before.find(anchor, place + 1)
    return 0


def _between(before: str, chunk: str) -> str:
    goes_on = chunk[:1].islower() and not ends_sentence(before.rstrip())
    return " " if goes_on else "\n\n"
