"""The net loss between two runs, in questions: what the noise rules weigh."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.verdict.compare import Change

HIT = "hit@"

_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Loss:
    """What `n` shared questions lost of a metric, less what they won.

    `net` is in questions, or in questions' worth of a metric that is more than hit or miss.
    `lost` and `won` count hits at k.
    """

    metric: str
    net: float
    n: int
    lost: int
    won: int

    @property
    def words(self) -> str:
        """Return "net 8 of 332 questions lost (9 lost, 1 won)", or the same of a metric."""
        if self.net == self.lost == self.won == 0:
            return f"none of {self.n} questions lost or won"
        which = "won" if self.net < 0 else "lost"
        if self.metric.startswith(HIT):
            net = f"net {abs(self.net):.0f} of {self.n} questions {which}"
            return f"{net} ({self.lost} lost, {self.won} won)"
        net = f"{abs(self.net):.1f} of {self.n} questions' worth of {self.metric} {which}"
        return f"{net} (hits: {self.lost} lost, {self.won} won)"


def loss_of(
    outcome: str, changes: Sequence[Change], *, shared: int, lost: int, won: int
) -> Loss:  # fmt: skip
    """Return the net loss of the gate's outcome over the shared questions.

    Where every question expects one key, recall is hit or miss: it is counted as hits then, which
    are whole and say more. So it is for an outcome that was not compared.
    """
    k = outcome.partition("@")[2]
    by_metric = {change.metric: change for change in changes}
    graded, hit = by_metric.get(outcome), by_metric.get(f"{HIT}{k}")
    if graded is None or (hit is not None and _equal(graded, hit)):
        return Loss(f"{HIT}{k}", lost - won, shared, lost, won)
    return Loss(outcome, -graded.difference * shared, shared, lost, won)


def _equal(one: Change, other: Change) -> bool:
    """Say whether two metrics have the same means on both sides."""
    return abs(one.current - other.current) < _SAME and abs(one.previous - other.previous) < _SAME
