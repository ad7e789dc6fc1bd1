"""Which texts copy each other, told by runs of characters: a sample of them, in little memory."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from pipeline.text import normalised

SHINGLE = 16
"""Characters. Two texts that share this many in a row have copied: chance hardly brings it."""

SAME_TEXT = 0.7
"""Share of the shorter text's shingles from which two texts say the same."""

_SAMPLED_BITS = 3
"""A shingle is sampled where so many leading bits of its hash are 0: one of eight is.

The same of every text (Manber, "Finding similar files in a large file system", USENIX 1994), so
that shares can be told. It is 12 bytes, hence a text of 1,500 characters 2 KB.
"""

# Multilinear hashing: a constant for each place, drawn once, so that a seed draws the same chunks
# in every process.
_FACTORS = np.random.default_rng(2024).integers(1, 2**64, SHINGLE, dtype=np.uint64) | np.uint64(1)

Hashes = NDArray[np.uint64]
Block = tuple[Hashes, NDArray[np.int32]]
"""Sorted hashes of some texts, and for each which text it is of."""


class Shingles:
    """The sampled shingles of many texts."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._blocks: list[Block] = []

    def add(self, shingles: Hashes) -> None:
        """Keep a text's `shingles_of`."""
        holders = np.full(len(shingles), len(self._sizes), dtype=np.int32)
        self._sizes.append(len(shingles))
        self._blocks.append((shingles, holders))
        # Each block is longer than the next, so that there are few to look through.
        while len(self._blocks) > 1 and len(self._blocks[-1][0]) >= len(self._blocks[-2][0]):
            self._blocks.append(_merged(self._blocks.pop(), self._blocks.pop()))

    def largest_share(self, shingles: Hashes) -> float:
        """Return what one text and this one share at most, of the shorter one's shingles; or 0."""
        shared: Counter[int] = Counter()
        for hashes, holders in self._blocks:
            first = np.searchsorted(hashes, shingles, "left")
            behind = np.searchsorted(hashes, shingles, "right")
            for place in np.flatnonzero(behind > first):
                shared.update(holders[first[place] : behind[place]].tolist())
        return max(
            (count / min(self._sizes[each], len(shingles)) for each, count in shared.items()),
            default=0.0,
        )


def shingles_of(text: str) -> Hashes:
    """Return the hashes of a text's sampled shingles, sorted, at least one."""
    plain = normalised(text).casefold().ljust(SHINGLE)
    letters = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    runs = np.lib.stride_tricks.sliding_window_view(letters, SHINGLE)
    hashes = np.unique((runs * _FACTORS).sum(axis=1, dtype=np.uint64))
    # Sorted, those that begin with zeros stand first.
    sampled = np.searchsorted(hashes, np.uint64(1 << (64 - _SAMPLED_BITS)))
    return hashes[: max(1, sampled)].copy()


def _merged(one: Block, other: Block) -> Block:
    hashes = np.concatenate([one[0], other[0]])
    holders = np.concatenate([one[1], other[1]])
    order = np.argsort(hashes)
    return hashes[order], holders[order]
