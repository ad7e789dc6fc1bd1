"""The measures once more, slowly: one question and one measure at a time, from the definitions.

Nothing here is shared with the code under test but the splitting of keys.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.types import Level, document_of


@dataclass(frozen=True)
class Slot:
    """One place of a ranking: the grade of its key (None when unjudged), and whether it repeats."""

    grade: int | None
    repeats: bool


@dataclass(frozen=True)
class Seen:
    """A ranking cut to the cutoff `k`, and the grades of all expected keys."""

    slots: Sequence[Slot]
    grades: Sequence[int]
    k: int
    threshold: int

    def credited(self, rank: int) -> int:
        """Return the grade credited at a rank (from 1), 0 when there is none."""
        if rank > len(self.slots):
            return 0
        slot = self.slots[rank - 1]
        return 0 if slot.repeats or slot.grade is None else max(slot.grade, 0)

    def relevant(self, rank: int) -> bool:
        """Return whether a relevant key is credited at a rank."""
        return self.credited(rank) >= self.threshold

    def found(self, rank: int) -> int:
        """Return how many relevant keys stand at a rank or above."""
        return sum(self.relevant(above) for above in range(1, rank + 1))

    def total(self) -> int:
        """Return how many relevant keys there are to find."""
        return sum(grade >= self.threshold for grade in self.grades)


def _mrr(seen: Seen) -> float:
    return next((1 / rank for rank in range(1, seen.k + 1) if seen.relevant(rank)), 0.0)


def _map(seen: Seen) -> float:
    ranks = [rank for rank in range(1, seen.k + 1) if seen.relevant(rank)]
    return sum(seen.found(rank) / rank for rank in ranks) / seen.total()


def _ndcg(seen: Seen, gain: Callable[[int], float]) -> float:
    best = sorted((grade for grade in seen.grades if grade > 0), reverse=True)[: seen.k]
    ideal = sum(gain(grade) / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))
    ranks = range(1, seen.k + 1)
    return sum(gain(seen.credited(rank)) / math.log2(rank + 1) for rank in ranks) / ideal


def _share(seen: Seen, counts: Callable[[Slot], bool]) -> float:
    return sum(counts(slot) for slot in seen.slots) / len(seen.slots) if seen.slots else 0.0


DEFINITIONS: Mapping[str, Callable[[Seen], float]] = {
    "hit": lambda seen: float(seen.found(seen.k) > 0),
    "recall": lambda seen: seen.found(seen.k) / seen.total(),
    "precision": lambda seen: seen.found(seen.k) / seen.k,
    "mrr": _mrr,
    "map": _map,
    "ndcg": lambda seen: _ndcg(seen, float),
    "ndcg_exp": lambda seen: _ndcg(seen, lambda grade: 2.0**grade - 1),
    "judged": lambda seen: _share(seen, lambda slot: slot.grade is not None),
    "duplicates": lambda seen: _share(seen, lambda slot: slot.repeats),
}


def _documents(expected: Mapping[str, int]) -> dict[str, int]:
    return {
        document: max(grade for key, grade in expected.items() if document_of(key) == document)
        for document in {document_of(key) for key in expected}
    }


def _first_of_each(keys: Sequence[str]) -> list[str]:
    documents = [document_of(key) for key in keys]
    return [name for at, name in enumerate(documents) if name not in documents[:at]]


def define(
    name: str,
    k: int,
    expected: Mapping[str, int],
    keys: Sequence[str],
    level: Level,
    threshold: int,
) -> float:
    """Return a measure of one ranking against judgments that are all live."""
    if level is Level.DOCUMENT:
        expected, keys = _documents(expected), _first_of_each(keys)
    slots = [Slot(expected.get(key), key in keys[:at]) for at, key in enumerate(keys[:k])]
    return DEFINITIONS[name](Seen(slots, list(expected.values()), k, threshold))
