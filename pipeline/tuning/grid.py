"""Which settings of a hybrid are tried: weights x formula x depth."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.retrieval.fusion import Formula
from pipeline.retrieval.strategies import HybridStrategy

RRF_KS = (1, 5, 10, 20, 40, 60, 100, 200)
DEPTHS = (10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, slots=True)
class HybridSetting:
    """One way to fuse: a weight for each arm, the formula, and the candidates taken of each arm."""

    weights: tuple[float, ...]
    formula: Formula
    depth: int

    @classmethod
    def of(cls, strategy: HybridStrategy, depth: int) -> "HybridSetting":
        """Return a strategy's own; `depth`: what its arms were really asked for."""
        formula = strategy.formula
        if formula.method == "rrf":
            formula = Formula(rrf_k=formula.rrf_k)
        else:
            formula = Formula("weighted", normalize=formula.normalize)
        return cls(tuple(strategy.arms.values()), formula, depth)

    def __str__(self) -> str:
        weights = ":".join(f"{weight:g}" for weight in self.weights)
        formula = self.formula
        how = f"rrf {formula.rrf_k}" if formula.method == "rrf" else formula.normalize
        return f"{weights} {how} depth {self.depth}"

    def fuses_as(self, other: "HybridSetting") -> bool:
        """Whether both give every ranking the same: their weights are in one proportion."""
        shares = ([weight / sum(each.weights) for weight in each.weights] for each in (self, other))
        same = (self.formula, self.depth) == (other.formula, other.depth)
        return same and all(map(math.isclose, *shares))


def grid(present: HybridSetting, least: int) -> list[HybridSetting]:
    """Return the settings to try, the present one first.

    Depths lie between `least`, the candidates that a result takes, and the present one: deeper
    rankings are not known.
    """
    depths = sorted({present.depth, *(d for d in DEPTHS if least <= d < present.depth)})
    tried = (
        HybridSetting(weights, formula, depth)
        for depth, formula, weights in itertools.product(
            depths, _formulas(present.formula), _proportions(len(present.weights))
        )
    )
    return [present, *(each for each in tried if not each.fuses_as(present))]


def _formulas(present: Formula) -> list[Formula]:
    usual = [
        *(Formula(rrf_k=constant) for constant in RRF_KS),
        Formula("weighted", normalize="min_max"),
        Formula("weighted", normalize="z_score"),
    ]
    return list(dict.fromkeys([*usual, present]))


def _proportions(arms: int) -> Sequence[tuple[float, ...]]:
    """Return weights that add up to 1, in equal steps: of 0.1 for two arms, wider for more."""
    steps = {2: 10, 3: 8}.get(arms, arms + 2)
    return [tuple(part / steps for part in parts) for parts in _compositions(steps, arms)]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a number as a sum of so many numbers above zero, in their order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for rest in _compositions(total - first, parts - 1):
            yield first, *rest
