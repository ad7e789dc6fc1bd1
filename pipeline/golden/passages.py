"""How much of one text stands in another, in any language, whatever became of its white space.

Texts are compared as `squash` writes them, by the hashes of all their windows of some characters
(shingles; Broder, "On the resemblance and containment of documents", 1997). A window's hash is a
polynomial modulo 2^64 (Karp and Rabin, 1987), so that numpy takes all windows of a text at once.
"""

import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Runs = NDArray[np.int64]

WINDOW = 16
"""Characters that two texts must have in common in a row to count, where they are long enough."""

SHORTEST_WINDOW = 3

_MOST_REPEATS = 8

_BASE = 0x9E3779B97F4A7C15
_MIXER = 0xC2B2AE3D27D4EB4F
_MODULUS = 2**64

_INVISIBLE = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff]+")


def squash(text: str) -> str:
    """Return the text without white space and invisible characters, in one form of each letter.

    NFKC and case-folded: chunkers join lines, and extractors write ligatures, as they please.
    """
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold()


def window_of(length: int) -> int:
    """Return the length of the windows for a text of so many characters: shorter for short ones."""
    return max(SHORTEST_WINDOW, min(WINDOW, length // 8))


def window_hashes(squashed: str, window: int) -> Hashes:
    """Return the hash of each window, by where it begins: shape (max(0, length - window + 1),)."""
    codes = np.frombuffer(squashed.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    if len(codes) < window:
        return np.empty(0, np.uint64)
    powers, inverses = _powers(1 << (len(codes) - 1).bit_length())
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum((codes + np.uint64(1)) * np.uint64(_MIXER) * powers[: len(codes)], out=sums[1:])
    hashes: Hashes = (sums[window:] - sums[:-window]) * inverses[: len(codes) - window + 1]
    # The low bits of a product depend on the low bits of its factors alone.
    return (hashes ^ (hashes >> np.uint64(32))) * np.uint64(_MIXER)


@lru_cache(maxsize=32)
def _powers(length: int) -> tuple[Hashes, Hashes]:
    """Return the powers of the base and of its inverse modulo 2^64, from 0: shape (length,)."""
    both = []
    for base in (_BASE, pow(_BASE, -1, _MODULUS)):
        factors = np.full(length, base, np.uint64)
        factors[0] = 1
        both.append(np.cumprod(factors, dtype=np.uint64))
    return both[0], both[1]


def aligned(text: str, other: str, window: int) -> Runs:
    """Return the passages of a squashed text that stand in another one, in the same order.

    As difflib does: the longest passage that both have, then the same to its left and to its right,
    down to passages of `window` characters. A text that is shorter is there whole, or not at all.
    A passage is where it begins in the one, where in the other, and its length: shape (n, 3).
    """
    whole = other.find(text)
    if whole >= 0 or len(text) <= window:
        return np.array([[0, whole, len(text)]] if whole >= 0 else [], np.int64).reshape(-1, 3)
    chosen: list[list[int]] = []
    regions = [(_runs(text, other, window), 0, len(text), 0, len(other))]
    while regions:
        runs, *bounds = regions.pop()
        runs = _clipped(runs, *bounds)
        runs = runs[runs[:, 2] >= window]
        if len(runs):
            begin, end, other_begin, other_end = bounds
            first, there, length = runs[runs[:, 2].argmax()].tolist()
            before = _equal(text[begin:first][::-1], other[other_begin:there][::-1])
            after = _equal(text[first + length : end], other[there + length : other_end])
            first, there, length = first - before, there - before, before + length + after
            chosen.append([first, there, length])
            regions.append((runs, begin, first, other_begin, there))
            regions.append((runs, first + length, end, there + length, other_end))
    return np.array(sorted(chosen), np.int64).reshape(-1, 3)


def _equal(text: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginnings."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(text), len(other)))


def _runs(text: str, other: str, window: int) -> Runs:
    """Return the passages that both texts have: where in each, and how long, shape (n, 3)."""
    here, there = _equal_windows(window_hashes(text, window), window_hashes(other, window))
    order = np.lexsort((here, there - here))
    here, there = here[order], there[order]
    goes_on = (np.diff(here) == 1) & (np.diff(there) == 1)
    starts = np.flatnonzero(np.append(True, ~goes_on)[: len(here)])
    lengths = np.diff(np.append(starts, len(here))) + window - 1
    return np.column_stack([here[starts], there[starts], lengths])


def _equal_windows(text: Hashes, other: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of windows that are equal, in the one and in the other.

    Of those that the other has too often, as in a ruled table, only the first few.
    """
    order = np.argsort(other, kind="stable")
    first = np.searchsorted(other, text, side="left", sorter=order)
    last = np.searchsorted(other, text, side="right", sorter=order)
    counts = np.minimum(last - first, _MOST_REPEATS)
    here = np.repeat(np.arange(len(text)), counts)
    within = np.arange(len(here)) - np.repeat(np.cumsum(counts) - counts, counts)
    return here, order[np.repeat(first, counts) + within]


def _clipped(runs: Runs, begin: int, end: int, other_begin: int, other_end: int) -> Runs:
    """Cut the passages to what lies within the bounds of both texts."""
    first, there, length = runs.T
    cut = np.maximum(0, np.maximum(begin - first, other_begin - there))
    left = np.minimum(length, np.minimum(end - first, other_end - there)) - cut
    return np.column_stack([first + cut, there + cut, left])
