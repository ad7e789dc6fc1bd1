"""Make alerts from what is known of a run or of a golden set: plain data, no rows of tables."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.alerts.message import Alert, LostQuestion, Severity, WiderSearch
from pipeline.safe_text import clean
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import CategoryChange, Change, ExactComparison
from pipeline.verdict.gate import Cause, Finding, Rule

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
"""Of a kind as a rule; a regression by nothing but a category's drop is a warning too."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What the caller knows of the alert itself.

    `idempotency_id` is the alert's own, in every installation, and the same each time it is sent;
    `created_at` is ISO 8601 with an offset; `link` leads to the run.
    """

    idempotency_id: str
    created_at: str
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What every alert about a run says of it, as its record holds it; `size` in questions.

    `ef_search` says what a wider search would do, where the index misses too much.
    """

    run_id: int
    set_name: str
    strategy: str
    k: int
    level: Level
    verdict: Verdict
    reasons: Sequence[str]
    n_scored: int
    size: int
    findings: Sequence[Finding] = ()
    cause: Cause | None = None
    ef_search: WiderSearch | None = None
    git_sha: str | None = None


def about_run(
    kind: AlertKind,
    run: RunSummary,
    occasion: Occasion,
    *,
    comparison: Mapping[str, Any] | None = None,
    lost_questions: Sequence[LostQuestion] = (),
) -> Alert:
    """Return the alert about a finished run, for a channel that is told of it the first time.

    `comparison` is what `Comparison.to_json` stored, None for a run that was not compared. Of its
    categories, and of lost questions, the worst are kept.
    """
    alert = Alert(
        kind=kind,
        severity=SEVERITIES[kind],
        idempotency_id=occasion.idempotency_id,
        created_at=occasion.created_at,
        link=occasion.link,
        set_name=run.set_name,
        strategy=run.strategy,
        k=run.k,
        level=run.level,
        run_id=run.run_id,
        verdict=run.verdict,
        cause=run.cause,
        reasons=tuple(map(_short, run.reasons)),
        findings=tuple(replace(each, text=_short(each.text)) for each in run.findings),
        n_scored=run.n_scored,
        size=run.size,
        ef_search=run.ef_search,
        lost_questions=_worst_questions(lost_questions),
        reproduce=eval_command(run),
        git_sha=run.git_sha,
        **(_compared(comparison) if comparison is not None else {}),
    )
    mild = kind is AlertKind.REGRESSED and alert.rules == {Rule.CATEGORY}
    return replace(alert, severity=Severity.WARNING) if mild else alert


def about_golden_set(
    set_name: str,
    reasons: Sequence[str],
    occasion: Occasion,
    *,
    expected_keys: int | None = None,
    missing_keys: int | None = None,
    reproduce: str | None = None,
) -> Alert:
    """Return the alert that a golden set is stale, for these reasons."""
    return Alert(
        kind=AlertKind.GOLDEN_STALE,
        severity=SEVERITIES[AlertKind.GOLDEN_STALE],
        idempotency_id=occasion.idempotency_id,
        created_at=occasion.created_at,
        link=occasion.link,
        set_name=set_name,
        reasons=tuple(map(_short, reasons)),
        expected_keys=expected_keys,
        missing_keys=missing_keys,
        reproduce=reproduce,
    )


def eval_command(run: RunSummary) -> str:
    """Return the command, quoted for a shell, that measures the same thing again."""
    return eval_line(run.set_name, run.strategy, run.k, run.level)


def eval_line(set_name: str, strategy: str, k: int, level: Level) -> str:
    """Return the same for a run that is not summed up."""
    words = ["recallwatch", "eval", "--set", set_name, "--strategy", strategy]
    return shlex.join([*words, "-k", str(k), "--level", level.value])


def _compared(comparison: Mapping[str, Any]) -> dict[str, Any]:
    exact = comparison["exact"]
    return {
        "compared_to": comparison["reference"],
        "changes": tuple(Change.from_json(change) for change in comparison["changes"]),
        "lost": comparison["lost"],
        "won": comparison["won"],
        "shared": comparison["pairing"]["shared"],
        "exact": ExactComparison.from_json(exact) if exact else None,
        "categories": _worst_categories(
            [CategoryChange(**category) for category in comparison["categories"]]
        ),
        "corpus": tuple(comparison["corpus"]),
        "setup": tuple(map(_short, comparison["setup"])),
    }


def _worst_categories(categories: Sequence[CategoryChange]) -> tuple[CategoryChange, ...]:
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
