"""Write alerts: which finished run is worth telling, to whom, and what."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from db import alerts, comparisons, runs
from db.models import Run
from db.runs import RunContext
from db.session import Session
from pipeline.alerts.build import route
from pipeline.alerts.compose import Occasion, RunSummary, about_run
from pipeline.alerts.message import Alert, CategoryDrop, LostQuestion
from pipeline.alerts.settings import AlertSettings
from pipeline.types import AlertKind, Level, Verdict, document_of
from pipeline.verdict.compare import Comparison
from pipeline.verdict.rules import Gate, judge

WORST = 5
"""Lost questions that an alert names."""

TOLD = {
    Verdict.REGRESSED: AlertKind.REGRESSED,
    Verdict.UNMEASURED: AlertKind.UNMEASURED,
}
HEALTHY = (Verdict.OK, Verdict.IMPROVED)


def write_alerts(session: Session, found: RunContext, settings: AlertSettings) -> list[int]:
    """Put a finished run's alert into the outbox, in the transaction that finishes the run.

    Returns the ids to ring after the commit; none when there is nothing to tell, or nobody.
    """
    if not settings.channels:
        return []
    kind = _kind(session, found)
    if kind is None:
        return []
    alert = _alert(session, found, kind)
    return alerts.add(session, found.run.id, route(alert, settings.channels), kind, alert.to_json())


def _kind(session: Session, found: RunContext) -> AlertKind | None:
    verdict = _verdict(found.run)
    if verdict in TOLD:
        return TOLD[verdict]
    back = verdict in HEALTHY and _is_back(session, found.run)
    return AlertKind.RECOVERED if back else None


def _is_back(session: Session, run: Run) -> bool:
    """Say whether all that was told as bad is over.

    The last run may be a fallen one, and no worse than that is no recovery: the run is held
    against what the first fallen one fell from.
    """
    bad = alerts.unrecovered(session, run.id)
    drop = next(filter(None, map(_drop, bad)), None)
    if drop is None:
        return bool(bad)
    reference = runs.get(session, drop["reference"]).run
    against = comparisons.compare(session, run, reference)
    return judge(Gate.from_json(run.gate), against).verdict in HEALTHY


def _drop(run: Run) -> Mapping[str, Any] | None:
    """Return the comparison that makes a run regressed: with the last run, else the baseline."""
    gate = Gate.from_json(run.gate)
    for stored in (run.comparison, run.baseline_comparison):
        if stored and judge(gate, Comparison.from_json(stored)).verdict is Verdict.REGRESSED:
            return stored
    return None


def _verdict(run: Run) -> Verdict:
    """Return the verdict that every run has that alerts are written for."""
    return Verdict(run.verdict or Verdict.UNMEASURED)


def _alert(session: Session, found: RunContext, kind: AlertKind) -> Alert:
    run = found.run
    occasion = Occasion(
        idempotency_id=f"run-{run.id}-{kind}",
        created_at=datetime.now(UTC).isoformat(),
        repeat=alerts.in_a_row(session, run.id, _verdict(run)),
    )
    drop = _drop(run) if kind is AlertKind.REGRESSED else None
    if drop is None:
        summary = _summary(found, run.compared_to)
        return about_run(kind, summary, occasion, comparison=run.comparison)
    reference = runs.get(session, drop["reference"]).run
    return about_run(
        kind,
        _summary(found, reference.id),
        occasion,
        comparison=drop,
        categories=_categories(session, run, reference),
        lost_questions=_lost(session, run, reference),
    )


def _summary(found: RunContext, compared_to: int | None) -> RunSummary:
    run = found.run
    return RunSummary(
        run_id=run.id,
        set_name=found.version.set_name,
        strategy=run.strategy,
        k=run.k,
        level=Level(run.level),
        verdict=_verdict(run),
        reasons=run.reasons or [],
        n_scored=run.n_scored or 0,
        size=run.size,
        compared_to=compared_to,
        git_sha=run.git_sha,
    )


def _categories(session: Session, run: Run, reference: Run) -> list[CategoryDrop]:
    """Compare by category on the first of the gate's metrics."""
    metric = run.gate["metrics"][0]
    return [CategoryDrop(*row) for row in comparisons.by_category(session, run, reference, metric)]


def _lost(session: Session, run: Run, reference: Run) -> list[LostQuestion]:
    level = Level(run.level)
    return [
        LostQuestion(
            text=row.text,
            expected=_best(row.expected, row.missing, level),
            # A wider search than the served one may find it within k: what was served lost it.
            rank=row.first_rank if row.first_rank and row.first_rank > run.k else None,
        )
        for row in comparisons.lost(session, run, reference, limit=WORST)
    ]


def _best(expected: Mapping[str, int], missing: Sequence[str], level: Level) -> str:
    """Return the live key, or document, of the highest grade."""
    names = [
        (-grade, document_of(key) if level is Level.DOCUMENT else key)
        for key, grade in expected.items()
    ]
    return min(named for named in names if named[1] not in missing)[1]
