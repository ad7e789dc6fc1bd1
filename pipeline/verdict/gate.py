"""The gate as a run stores it, and what its rules found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from pipeline.types import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rules a run is judged by; metrics are names at a cutoff, as recall@5.

    See `pipeline.verdict.settings.GateRules`, which says what each means.
    """

    rule: str
    outcome: str
    alpha: float
    watch_alpha: float
    tolerance: float
    max_drop: float
    metrics: Sequence[str]
    floor: Mapping[str, float]
    category_max_drop: float | None
    category_min: int
    must_pass: bool
    min_shared: float
    max_failed: float
    max_ineligible: float

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` wrote into the run record."""
        return cls(**values)


class Rule(StrEnum):
    """The rules of a gate, by the names that settings, records and messages use."""

    NOISE = "noise"
    BLIND_SPOT = "blind_spot"
    INTERVAL = "interval"
    EXACT = "exact"
    INDEX = "index"
    THRESHOLD = "threshold"
    FLOOR = "floor"
    CATEGORY = "category_max_drop"
    MUST_PASS = "must_pass"  # noqa: S105 - a rule's name
    MIN_SHARED = "min_shared"
    MAX_FAILED = "max_failed"
    MAX_INELIGIBLE = "max_ineligible"
    LEAK = "leak"
    FIRST = "first"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """What a regression comes from, as far as exact search tells.

    `CORPUS`: exact search finds less too, so texts, vectors or questions' embedding changed.
    `INDEX`: exact search finds what it found; the index misses more.
    """

    CORPUS = "corpus"
    INDEX = "index"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule says of a run: its own verdict, one line, and the figures behind it.

    `counts`: whether the run's verdict hangs on it, or it is only shown beside. `warning`: to be
    read even where the verdict is ok. `reference` is the run it was held against, None where the
    rule needs none.
    """

    rule: Rule
    verdict: Verdict
    text: str
    counts: bool = True
    warning: bool = False
    reference: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what the run record stores."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        typed = {"rule": Rule(values["rule"]), "verdict": Verdict(values["verdict"])}
        return cls(**{**values, **typed})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, what each rule said, and where a regression comes from."""

    verdict: Verdict
    findings: Sequence[Finding]
    cause: Cause | None = None

    @property
    def reasons(self) -> list[str]:
        """One line a rule that spoke."""
        return [finding.text for finding in self.findings]
