"""Make alerts from what is known of a run or of a golden set: plain data, no rows of tables."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.alerts.message import Alert, CategoryDrop, LostQuestion, Severity
from pipeline.safe_text import clean
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import Change

MOST_SHOWN = 5
"""Categories, and lost questions, that an alert holds."""

LONGEST_TEXT = 500
"""Characters of a question, a key or a reason that an alert holds."""

SEVERITIES = {
    AlertKind.REGRESSED: Severity.CRITICAL,
    AlertKind.UNMEASURED: Severity.WARNING,
    AlertKind.RECOVERED: Severity.INFO,
    AlertKind.GOLDEN_STALE: Severity.WARNING,
}


@dataclass(frozen=True, slots=True)
class Occasion:
    """What the caller knows of the alert itself.

    `idempotency_id` must be the same whenever the same thing is told; `created_at` is ISO 8601
    with an offset; `repeat` counts runs in a row with this kind, from 1; `link` leads to the run.
    """

    idempotency_id: str
    created_at: str
    repeat: int = 1
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What every alert about a run says of it, as its record holds it; `size` in questions."""

    run_id: int
    set_name: str
    strategy: str
    k: int
    level: Level
    verdict: Verdict
    reasons: Sequence[str]
    n_scored: int
    size: int
    compared_to: int | None = None
    git_sha: str | None = None


def about_run(
    kind: AlertKind,
    run: RunSummary,
    occasion: Occasion,
    *,
    comparison: Mapping[str, Any] | None = None,
    categories: Sequence[CategoryDrop] = (),
    lost_questions: Sequence[LostQuestion] = (),
) -> Alert:
    """Return the alert about a finished run.

    `comparison` is what `Comparison.to_json` stored, None for a run that was not compared. Of
    categories (compared over shared questions, as the run is) and of lost questions the worst
    are kept.
    """
    compared = _compared(comparison) if comparison is not None else {}
    return Alert(
        kind=kind,
        severity=SEVERITIES[kind],
        idempotency_id=occasion.idempotency_id,
        created_at=occasion.created_at,
        repeat=occasion.repeat,
        link=occasion.link,
        set_name=run.set_name,
        strategy=run.strategy,
        k=run.k,
        level=run.level,
        run_id=run.run_id,
        compared_to=run.compared_to,
        verdict=run.verdict,
        reasons=tuple(map(_short, run.reasons)),
        n_scored=run.n_scored,
        size=run.size,
        categories=_worst_categories(categories),
        lost_questions=_worst_questions(lost_questions),
        reproduce=eval_command(run),
        git_sha=run.git_sha,
        **compared,
    )


def about_golden_set(
    set_name: str, reasons: Sequence[str], occasion: Occasion, *, reproduce: str | None = None
) -> Alert:
    """Return the alert that a golden set is stale, for these reasons."""
    return Alert(
        kind=AlertKind.GOLDEN_STALE,
        severity=SEVERITIES[AlertKind.GOLDEN_STALE],
        idempotency_id=occasion.idempotency_id,
        created_at=occasion.created_at,
        repeat=occasion.repeat,
        link=occasion.link,
        set_name=set_name,
        reasons=tuple(map(_short, reasons)),
        reproduce=reproduce,
    )


def eval_command(run: RunSummary) -> str:
    """Return the command, quoted for a shell, that measures the same thing again."""
    words = ["recallwatch", "eval", "--set", run.set_name, "--strategy", run.strategy]
    return shlex.join([*words, "-k", str(run.k), "--level", run.level.value])


def _compared(comparison: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "changes": tuple(Change.from_json(change) for change in comparison["changes"]),
        "lost": comparison["lost"],
        "won": comparison["won"],
        "shared": comparison["pairing"]["shared"],
        "corpus": tuple(comparison["corpus"]),
    }


def _worst_categories(categories: Sequence[CategoryDrop]) -> tuple[CategoryDrop, ...]:
    fell = [category for category in categories if category.difference < 0]
    worst_first = sorted(fell, key=lambda category: (category.difference, category.name))
    return tuple(worst_first[:MOST_SHOWN])


def _worst_questions(questions: Sequence[LostQuestion]) -> tuple[LostQuestion, ...]:
    """Put those that are not found at all first, then the deepest."""
    deepest = sorted(questions, key=lambda q: (q.rank is not None, -(q.rank or 0)))
    return tuple(
        LostQuestion(_short(q.text), _short(q.expected), q.rank) for q in deepest[:MOST_SHOWN]
    )


def _short(text: str) -> str:
    cleaned = clean(text)
    return cleaned if len(cleaned) <= LONGEST_TEXT else f"{cleaned[: LONGEST_TEXT - 1]}…"
