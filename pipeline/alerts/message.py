"""The alert: everything that a message about a run or a golden set needs, as plain data.

It is what an outbox row stores and what the generic webhook sends, so it refers to nothing that
could change before it is delivered.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import Change


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
class CategoryDrop:
    """How the gate's metric moved within a category, over its `n` shared questions."""

    name: str
    difference: float
    n: int


@dataclass(frozen=True, slots=True)
class LostQuestion:
    """A question whose expected chunk was in the top k before and is not now.

    `rank` is where it is now, from 1; None: not as deep as was looked.
    """

    text: str
    expected: str
    rank: int | None


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
_LINK = re.compile(r"https?://[!-~]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert, for one or several channels; `pipeline.alerts.compose` makes it.

    `repeat` counts runs in a row with the same kind, from 1: the first is told in full, the
    others in a line. `created_at` is ISO 8601 with an offset. What does not apply is None or
    empty: an alert about a golden set has no run.

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
    reasons: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    lost: int | None = None
    won: int | None = None
    shared: int | None = None
    n_scored: int | None = None
    size: int | None = None
    categories: tuple[CategoryDrop, ...] = ()
    lost_questions: tuple[LostQuestion, ...] = ()
    corpus: tuple[str, ...] = ()
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

    def to_json(self) -> dict[str, Any]:
        """Return what the outbox stores: JSON types only, at full precision."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        values["changes"] = [change.to_json() for change in self.changes]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; raises ValueError, TypeError or KeyError for anything else."""
        level, verdict = values["level"], values["verdict"]
        typed = {
            "kind": AlertKind(values["kind"]),
            "severity": Severity(values["severity"]),
            "level": None if level is None else Level(level),
            "verdict": None if verdict is None else Verdict(verdict),
            "reasons": tuple(values["reasons"]),
            "changes": tuple(Change.from_json(change) for change in values["changes"]),
            "categories": tuple(CategoryDrop(**drop) for drop in values["categories"]),
            "lost_questions": tuple(LostQuestion(**q) for q in values["lost_questions"]),
            "corpus": tuple(values["corpus"]),
        }
        return cls(**{**values, **typed})
