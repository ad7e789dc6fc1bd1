"""The alert: everything that a message about a run or a golden set needs, as plain data.

It is what an outbox row stores and what the generic webhook sends, so it refers to nothing that
could change before it is delivered.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import CategoryChange, Change, ExactComparison
from pipeline.verdict.gate import Cause, Finding, Rule


class Severity(StrEnum):
    """How much it matters, least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    def reaches(self, least: "Severity") -> bool:
        """Return whether this is at least as severe as `least`."""
        order = list(Severity)
        return order.index(self) >= order.index(least)


@dataclass(frozen=True, slots=True)
class LostQuestion:
    """A question whose expected chunk was in the top k before and is not now.

    `rank` is where it is now, from 1; None: not as deep as was looked.
    """

    text: str
    expected: str
    rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderSearch:
    """What a larger hnsw.ef_search than `now` would do: milliseconds a question, recall it loses.

    `loss` is the index loss at `wider`, a share.
    """

    now: int
    now_ms: float
    wider: int
    wider_ms: float
    loss: float


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
_LINK = re.compile(r"https?://[!-~]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert to one channel; `pipeline.alerts.compose` makes it.

    `repeat` counts the runs in a row that the channel was told of with this kind, from 1: the
    first is told in full, the others in a line. `created_at` is ISO 8601 with an offset. What
    does not apply is None or empty: an alert about a golden set has no run. docs/alerts.md lists
    the fields for receivers.

    Raises ValueError for an idempotency id that is not of letters, digits, - and _ (it goes into
    headers), a time without an offset, and a link that is no http or https URL in ASCII.
    """

    kind: AlertKind
    severity: Severity
    idempotency_id: str
    created_at: str
    set_name: str
    repeat: int = 1
    strategy: str | None = None
    k: int | None = None
    level: Level | None = None
    run_id: int | None = None
    compared_to: int | None = None
    verdict: Verdict | None = None
    cause: Cause | None = None
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    lost: int | None = None
    won: int | None = None
    shared: int | None = None
    n_scored: int | None = None
    size: int | None = None
    exact: ExactComparison | None = None
    ef_search: WiderSearch | None = None
    categories: tuple[CategoryChange, ...] = ()
    lost_questions: tuple[LostQuestion, ...] = ()
    corpus: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    expected_keys: int | None = None
    missing_keys: int | None = None
    reproduce: str | None = None
    link: str | None = None
    git_sha: str | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.idempotency_id):
            raise ValueError("an idempotency id is of letters, digits, - and _, 200 at most")
        if datetime.fromisoformat(self.created_at).tzinfo is None:
            raise ValueError(f"created_at has no offset from UTC: {self.created_at}")
        if self.repeat < 1:
            raise ValueError(f"repeat counts from 1, not {self.repeat}")
        if self.link is not None and not _LINK.fullmatch(self.link):
            raise ValueError("link is not an http or https URL in ASCII")

    @property
    def spoke(self) -> Sequence[Finding]:
        """What made the verdict, in order."""
        return [each for each in self.findings if each.counts and each.verdict is self.verdict]

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules that made the verdict."""
        return frozenset(each.rule for each in self.spoke)

    def to_json(self) -> dict[str, Any]:
        """Return what the outbox stores: JSON types only, at full precision."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        values["changes"] = [change.to_json() for change in self.changes]
        values["exact"] = self.exact.to_json() if self.exact else None
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; raises ValueError, TypeError or KeyError for anything else."""
        typed = {
            "kind": AlertKind(values["kind"]),
            "severity": Severity(values["severity"]),
            **{name: _given(values, name, of) for name, of in _SINGLE.items()},
            **{name: tuple(map(of, values.get(name, ()))) for name, of in _MANY.items()},
        }
        return cls(**{**values, **typed})


_SINGLE: Mapping[str, Callable[[Any], Any]] = {
    "level": Level,
    "verdict": Verdict,
    "cause": Cause,
    "exact": ExactComparison.from_json,
    "ef_search": lambda values: WiderSearch(**values),
}
_MANY: Mapping[str, Callable[[Any], Any]] = {
    "reasons": str,
    "findings": Finding.from_json,
    "changes": Change.from_json,
    "categories": lambda values: CategoryChange(**values),
    "lost_questions": lambda values: LostQuestion(**values),
    "corpus": str,
    "setup": str,
}


def _given(values: Mapping[str, Any], name: str, of: Callable[[Any], Any]) -> object:
    """Return a field that may be None, or, in a row from before it came, absent."""
    return None if values.get(name) is None else of(values[name])
