"""Which of many judged texts a chunk may hold some of, without comparing it with each."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.golden.passages import SHORTEST_WINDOW, WINDOW, Hashes, window_hashes

_SHORT = 2 * WINDOW
_SAMPLES = 64
_CROWD = 64
_ENOUGH = 3
_FEWEST = 0.04
"""Share of a text's remembered windows that a chunk must have: fewer are a phrase or two."""


class SharedWindows:
    """The judged texts' windows, to find those texts that have one in common with a chunk.

    Of each text some windows are remembered, so close together that a piece has one. Those that
    many texts have, as a page's header, are forgotten where a text has others; where it has not,
    they only point to texts of the chunk's own document.
    """

    def __init__(self, documents: Sequence[str], texts: Sequence[str]) -> None:
        """Take the squashed texts, and of each the document that it was in."""
        names = {name: number for number, name in enumerate(dict.fromkeys(documents))}
        self._names = names
        self._document = np.array([names[name] for name in documents], np.int64)
        self._short: dict[str, ShortTexts] = {}
        self._exact: dict[str, list[int]] = {}
        hashes, owners = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for number, text in enumerate(texts):
            self._exact.setdefault(text, []).append(number)
            if len(text) < _SHORT:
                self._short.setdefault(documents[number], ShortTexts()).add(number, text)
                continue
            sample = _sample(text)
            hashes.append(sample)
            owners.append(np.full(len(sample), number))
        self._hashes, self._owners = _telling(np.concatenate(hashes), np.concatenate(owners))
        self._needed = _FEWEST * np.bincount(self._owners, minlength=len(texts))
        # A table of the hashes' first bits tells nearly all windows of a chunk apart at once.
        bits = min(24, max(16, (8 * len(self._hashes)).bit_length()))
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, np.bool_)
        self._table[self._hashes >> self._shift] = True

    def of(self, document: str, squashed: str) -> Iterator[int]:
        """Yield the numbers of the texts, some of them more than once."""
        yield from self._exact.get(squashed, ())
        if document in self._short:
            yield from self._short[document].of(squashed)
        hashes = window_hashes(squashed, WINDOW)
        some = np.unique(hashes[self._table[hashes >> self._shift]])
        first = np.searchsorted(self._hashes, some, side="left").tolist()
        last = np.searchsorted(self._hashes, some, side="right").tolist()
        owners = [self._near(document, *ends) for ends in zip(first, last, strict=True)]
        if owners:
            numbers, shared = np.unique(np.concatenate(owners), return_counts=True)
            yield from numbers[shared >= self._needed[numbers]].tolist()

    def _near(self, document: str, first: int, last: int) -> NDArray[np.int64]:
        """Return whose a window is; of a crowd only those of the document."""
        owners = self._owners[first:last]
        if last - first > _CROWD:
            owners = owners[self._document[owners] == self._names.get(document, -1)]
        return owners


class ShortTexts:
    """The short texts of a document: many chunks have a few of their letters."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._by_window: dict[str, list[int]] = {}

    def add(self, number: int, text: str) -> None:
        """Remember a squashed text."""
        self._texts[number] = text
        for window in _all_windows(text):
            self._by_window.setdefault(window, []).append(number)

    def of(self, squashed: str) -> Iterator[int]:
        """Yield the texts that a chunk has whole, or that may make up half of a short chunk."""
        yield from (number for number, text in self._texts.items() if text in squashed)
        if len(squashed) >= 2 * _SHORT:
            return
        windows = _all_windows(squashed)
        shared = Counter(n for window in windows for n in self._by_window.get(window, ()))
        # Half of a chunk in pieces of one window each has so many of its windows.
        needed = min(len(windows), len(squashed) / (2 * SHORTEST_WINDOW))
        yield from (number for number, count in shared.items() if count >= needed)


def _all_windows(text: str) -> set[str]:
    return {text[n : n + SHORTEST_WINDOW] for n in range(len(text) - SHORTEST_WINDOW + 1)}


def _telling(hashes: Hashes, owners: NDArray[np.int64]) -> tuple[Hashes, NDArray[np.int64]]:
    """Return, by hash, the windows that tell texts apart, and the others of texts without any."""
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    rare = counts[which] <= _CROWD
    some = np.bincount(owners[rare], minlength=int(owners.max(initial=0)) + 1) >= _ENOUGH
    kept = rare | ~some[owners]
    return hashes[kept], owners[kept]


def _sample(text: str) -> Hashes:
    """Return the hashes of windows spread evenly over a text, its last one among them."""
    hashes = window_hashes(text, WINDOW)
    step = max(WINDOW // 4, len(hashes) // _SAMPLES)
    sample: Hashes = np.append(hashes[::step], hashes[-1:])
    return sample
