"""The comparison of two runs, spelled out in plain Python: an oracle for the SQL."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from pipeline.types import Outcome
from pipeline.verdict.compare import Pairing


@dataclass(frozen=True)
class Asked:
    """One answerable question of a run and what became of it."""

    question_id: int
    content_hash: str
    text: str
    tenant: str | None
    outcome: Outcome
    missing: tuple[str, ...]
    measured: Mapping[str, float]

    def is_known_to(self, others: Sequence["Asked"]) -> bool:
        """Return whether the other run asked this question too, maybe with other answers."""
        return any(
            other.question_id == self.question_id
            or (other.text, other.tenant) == (self.text, self.tenant)
            for other in others
        )


Pair = tuple[Asked, Asked]


def pairs_of(current: Sequence[Asked], reference: Sequence[Asked]) -> list[Pair]:
    """Pair questions of equal content, the first with the first, the second with the second."""
    waiting: defaultdict[str, list[Asked]] = defaultdict(list)
    for was in reference:
        waiting[was.content_hash].append(was)
    return [(now, waiting[now.content_hash].pop(0)) for now in current if waiting[now.content_hash]]


def shared_of(pairs: Sequence[Pair]) -> list[Pair]:
    return [
        (now, was)
        for now, was in pairs
        if now.outcome == was.outcome == Outcome.SCORED and now.missing == was.missing
    ]


def pairing_of(current: Sequence[Asked], reference: Sequence[Asked]) -> Pairing:
    pairs = pairs_of(current, reference)
    unpaired_now = _without(current, [now for now, _ in pairs])
    unpaired_was = _without(reference, [was for _, was in pairs])
    scored = [(now, was) for now, was in pairs if now.outcome == was.outcome == Outcome.SCORED]
    changed = sum(now.is_known_to(reference) for now in unpaired_now)
    return Pairing(
        shared=len(shared_of(pairs)),
        new=len(unpaired_now) - changed,
        changed=changed,
        gone=sum(not was.is_known_to(current) for was in unpaired_was),
        relived=len(scored) - len(shared_of(pairs)),
        unscored=len(pairs) - len(scored),
    )


def means_of(pairs: Sequence[Pair], measure: str) -> tuple[float, float]:
    now = fsum(current.measured[measure] for current, _ in pairs) / len(pairs)
    was = fsum(reference.measured[measure] for _, reference in pairs) / len(pairs)
    return now, was


def _without(asked: Sequence[Asked], paired: Sequence[Asked]) -> list[Asked]:
    """Return those that are not among the paired, by identity: repeated ones are equal."""
    taken = {id(each) for each in paired}
    return [each for each in asked if id(each) not in taken]
