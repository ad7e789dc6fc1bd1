"""The measures, as named values: `recall@5` is a name and a cutoff, nothing else.

The idea is ir_measures' (MacAvaney, Macdonald and Ounis, ECIR 2022): a measure that is a value can
be parsed, printed, compared, sorted and used as a key. What each one computes is in `formulas`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CONVENTION = "rw-1"
"""The version of the metric conventions, stored with every run; runs compare only within one."""

NAMES = ("hit", "recall", "precision", "mrr", "map", "ndcg", "judged", "duplicates")
"""The measures of a question that every run records."""

EXPONENTIAL = "ndcg_exp"
"""nDCG with the gain 2^grade - 1, recorded on request."""

_ABOUT_THE_RANKING = ("judged", "duplicates")
_KNOWN = (*NAMES, EXPONENTIAL)
_WRITTEN = re.compile(r"(?P<name>[a-z_]+)@(?P<k>[1-9][0-9]*)")


@dataclass(frozen=True, order=True)
class Measure:
    """A measure by its name and its cutoff `k` (ranks, >= 1); `str()` gives `recall@5`.

    Raises ValueError for a name that is not known and for a cutoff below 1.
    """

    name: str
    k: int

    def __post_init__(self) -> None:
        if self.name not in _KNOWN:
            raise ValueError(f"unknown measure {self.name!r}: known are {', '.join(_KNOWN)}")
        if self.k < 1:
            raise ValueError(f"{self.name} has the cutoff {self.k}: it must be 1 or more")

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"

    @classmethod
    def parse(cls, text: str) -> "Measure":
        """Read a measure as `str()` writes it. Raises ValueError naming the known measures."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            raise ValueError(
                f"{text!r} is not a measure: write a name and a cutoff, like recall@5; "
                f"known names are {', '.join(_KNOWN)}"
            )
        return cls(written["name"], int(written["k"]))


def measures_for(
    k: int, cutoffs: Sequence[int], *, exponential: bool = False
) -> tuple[Measure, ...]:
    """Return what a run at `k` records: each measure at every cutoff <= k, and at k itself.

    The order is fixed: name by name as in `NAMES`, with `ndcg_exp` (if `exponential`) after `ndcg`,
    cutoffs ascending and without repeats. `judged` and `duplicates` describe the ranking as a
    whole, so they stand last and at k only. Raises ValueError when k or a cutoff is below 1.
    """
    depths = sorted({k, *(cutoff for cutoff in cutoffs if cutoff <= k)})
    quality = [name for name in NAMES if name not in _ABOUT_THE_RANKING]
    if exponential:
        quality.append(EXPONENTIAL)
    return (
        *(Measure(name, depth) for name in quality for depth in depths),
        *(Measure(name, k) for name in _ABOUT_THE_RANKING),
    )
