"""Where the texts that were judged are in a corpus that was cut into chunks anew.

Made for one pass over the corpus: `Search` is shown each chunk once and keeps, of each judged text,
the chunks that hold some of it. Memory grows with what is searched for, not with the corpus.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.golden.passages import aligned, squash, window_of
from pipeline.golden.shared_windows import SharedWindows
from pipeline.types import KeyState, document_of

KEPT = 0.8
"""Share of the judged text that a key's chunk must still hold to be scored: a small edit."""

ALIKE = 0.5
"""Share of the judged text that must be there at all; under it the text is lost."""

PIECE = 0.1
"""Share of the judged text from which a chunk counts as one of its pieces."""

Bits = NDArray[np.uint8]

_TRACE = PIECE / 4
_COMMON_IN_SHORT = 8
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class Evidence:
    """A chunk key and the text that its chunk had when it was judged.

    `tenant`: whose chunks may hold it, and those of nobody; None: anybody's.
    """

    key: str
    text: str
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk that holds a share of the judged text's characters (white space left out)."""

    key: str
    share: float


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a judged text; see `KeyState`.

    `places`: where it is now, in the order of the text; of a `CHANGED` one the chunk that is most
    like it. `kept`: the share of it that its own key's chunk holds. `ambiguous`: the places are of
    several documents, or apart in one, that hold as much of it, and only one may be meant.
    """

    state: KeyState
    places: Sequence[Place] = ()
    kept: float = 0.0
    ambiguous: bool = False

    @property
    def usable(self) -> bool:
        """Whether a hit on the key still is a hit on what was judged."""
        return self.kept >= KEPT

    @property
    def safe(self) -> bool:
        """Whether the whole text is at the places, so that nobody has to look."""
        return self.state in {KeyState.MOVED, KeyState.MERGED} and not self.ambiguous


@dataclass(frozen=True, slots=True)
class _Part:
    """What one chunk holds of a judged text; `bits` are the characters, packed.

    `whole`: all of it in one piece. `exact`: nothing else. `cut`: it begins and ends where the
    judged text or the chunk does, as a piece does that was cut out, and a common phrase does not.
    """

    key: str
    share: float
    bits: Bits
    whole: bool = False
    exact: bool = False
    cut: bool = False

    @property
    def rank(self) -> tuple[bool, bool, float]:
        return self.exact, self.whole, self.share


class Search:
    """A search for judged texts among chunks, each of which is shown to `see` once."""

    def __init__(self, judged: Sequence[Evidence]) -> None:
        self._judged = judged
        self._texts = [squash(each.text) for each in judged]
        self._parts: list[list[_Part]] = [[] for _ in judged]
        self._candidates = SharedWindows([document_of(each.key) for each in judged], self._texts)
        self._by_key: dict[str, list[int]] = {}
        for number, each in enumerate(judged):
            self._by_key.setdefault(each.key, []).append(number)

    def see(self, key: str, content: str, tenant: str | None = None) -> None:
        """Note which of the judged texts a chunk, of a tenant or of none, holds some of."""
        squashed = squash(content)
        own = self._by_key.get(key, ())
        for number in {*own, *self._candidates.of(document_of(key), squashed)}:
            if _is_other(self._judged[number].tenant, tenant):
                continue
            part = _part(key, squashed, self._texts[number])
            if part is not None and (part.share >= _TRACE or number in own):
                self._keep(number, part)

    def _keep(self, number: int, part: _Part) -> None:
        parts = self._parts[number]
        parts.append(part)
        if len(parts) > 2 * _MOST_PARTS:
            parts[:] = _best(self._judged[number].key, parts)

    def found(self) -> Iterator[Found]:
        """Yield what became of each judged text, in the order given."""
        for judged, text, parts in zip(self._judged, self._texts, self._parts, strict=True):
            yield _classify(judged.key, len(text), _best(judged.key, parts))


def _is_other(tenant: str | None, of_chunk: str | None) -> bool:
    return None not in {tenant, of_chunk} and tenant != of_chunk


def _best(key: str, parts: Sequence[_Part]) -> list[_Part]:
    """Return the parts to remember, the same ones in whatever order the chunks came."""
    document = document_of(key)
    return sorted(
        parts,
        key=lambda part: (document_of(part.key) == document, *part.rank, part.key),
        reverse=True,
    )[:_MOST_PARTS]


def _part(key: str, squashed: str, text: str) -> _Part | None:
    """Return what a chunk holds of a judged text; None: nothing that says anything."""
    if squashed == text:
        return _Part(key, 1.0, _packed(len(text), [(0, 0, len(text))]), whole=True, exact=True)
    window = window_of(len(text))
    runs = aligned(text, squashed, window)
    common = int(runs[:, 2].sum())
    # The few letters of a short window are in any long text.
    by_chance = window < _COMMON_IN_SHORT and common < ALIKE * len(squashed)
    whole = bool(text) and text in squashed
    if not common or (by_chance and not whole):
        return None
    (begin, other_begin, _), (last, other_last, length) = runs[0].tolist(), runs[-1].tolist()
    end, other_end = last + length, other_last + length
    return _Part(
        key,
        common / len(text),
        _packed(len(text), runs.tolist()),
        whole=whole,
        cut=min(begin, other_begin) < window
        and min(len(text) - end, len(squashed) - other_end) < window
        and common >= KEPT * (end - begin),
    )


def _packed(length: int, runs: Iterable[Sequence[int]]) -> Bits:
    mask = np.zeros(length, np.bool_)
    for first, _, size in runs:
        mask[first : first + size] = True
    return np.packbits(mask)


def _classify(key: str, length: int, parts: Sequence[_Part]) -> Found:
    own = [part for part in parts if part.key == key]
    kept = max((part.share for part in own), default=0.0)
    if any(part.exact for part in own):
        return Found(KeyState.LIVE, [Place(key, 1.0)], 1.0)
    found = [_within(key, length, here, kept) for here in _documents(key, length, parts)]
    if len(found) <= 1:
        return found[0] if found else Found(KeyState.LOST, (), kept)
    places = [place for each in found for place in each.places]
    return Found(found[0].state, places, kept, ambiguous=bool(places))


def _documents(key: str, length: int, parts: Sequence[_Part]) -> list[list[_Part]]:
    """Return the parts by document, of those documents alone where the text is.

    Its own, unless another one has more; several where others have as much as each other.
    """
    by_document: dict[str, list[_Part]] = {}
    for part in sorted(parts, key=lambda part: part.key):
        by_document.setdefault(document_of(part.key), []).append(part)
    ranks = {
        name: (any(p.exact for p in here), any(p.whole for p in here), _union(length, here))
        for name, here in by_document.items()
    }
    own = document_of(key)
    most = max(ranks.values(), default=None)
    if own in ranks and (ranks[own][-1] >= KEPT or ranks[own] == most):
        return [by_document[own]]
    return [by_document[name] for name, rank in ranks.items() if rank == most]


def _within(key: str, length: int, parts: Sequence[_Part], kept: float) -> Found:
    """Return what became of a text that is in one document, if anywhere."""
    if exact := [part for part in parts if part.exact]:
        return Found(KeyState.MOVED, [Place(_nearest(key, exact), 1.0)], kept)
    if whole := [part for part in parts if part.whole]:
        return _merged(key, whole, kept)
    pieces = _pieces(length, parts)
    best = max(pieces, key=lambda part: (part.share, part.key == key), default=None)
    if best is None or _union(length, pieces) < ALIKE:
        return Found(KeyState.LOST, (), kept)
    if len(pieces) > 1 and _union(length, pieces) - best.share >= (1 - best.share) / 2:
        return Found(KeyState.SPLIT, _places([p for p in pieces if p.share >= PIECE]), kept)
    state = KeyState.CHANGED if best.share >= ALIKE else KeyState.LOST
    return Found(state, _places([best]) if state is KeyState.CHANGED else (), kept)


def _pieces(length: int, parts: Sequence[_Part]) -> list[_Part]:
    """Return the parts that were cut out of the text, and others that bring what these lack."""
    pieces = [part for part in parts if part.cut]
    for part in sorted(parts, key=lambda part: -part.share):
        if not part.cut and _union(length, [*pieces, part]) - _union(length, pieces) >= PIECE:
            pieces.append(part)
    return pieces


def _union(length: int, parts: Sequence[_Part]) -> float:
    """Return the share of the text that the parts hold together."""
    if not parts or not length:
        return float(bool(parts))
    bits = np.bitwise_or.reduce([part.bits for part in parts])
    return float(np.unpackbits(bits, count=length).mean())


def _merged(key: str, whole: Sequence[_Part], kept: float) -> Found:
    """Return the chunks that hold the whole text: neighbours do, where chunks overlap.

    A short text that other chunks quote too has more than one such place: the key's own, or else
    nobody knows which is meant.
    """
    places = _places(whole)
    groups: list[list[Place]] = []
    for place in sorted(places, key=lambda place: _index(place.key)):
        if groups and _index(place.key) - _index(groups[-1][-1].key) <= 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    of_key = [group for group in groups if any(place.key == key for place in group)]
    if len(groups) == 1 or of_key:
        return Found(KeyState.MERGED, (of_key or groups)[0], kept)
    return Found(KeyState.MERGED, places, kept, ambiguous=True)


def _places(parts: Sequence[_Part]) -> list[Place]:
    """Return the parts' chunks in the order of the text, each once."""
    first = {part.key: part for part in sorted(parts, key=lambda part: part.share)}
    begin = {key: int(np.unpackbits(part.bits).argmax()) for key, part in first.items()}
    ordered = sorted(first.values(), key=lambda part: (begin[part.key], -part.share, part.key))
    return [Place(part.key, part.share) for part in ordered]


def _nearest(key: str, parts: Sequence[_Part]) -> str:
    """Return the chunk whose index is nearest to the key's, of several with the same text."""
    return min((abs(_index(part.key) - _index(key)), part.key) for part in parts)[1]


def _index(key: str) -> int:
    digits = key.rpartition(":")[2]
    return int(digits) if digits.isdecimal() else 0
