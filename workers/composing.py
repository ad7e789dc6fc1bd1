"""Compose alerts from what the tables hold of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from db import comparisons, runs
from db.models import Run
from db.runs import RunContext
from db.session import Session
from pipeline.alerts.compose import Occasion, RunSummary, about_run
from pipeline.alerts.message import Alert, LostQuestion, WiderSearch
from pipeline.types import AlertKind, Level, Verdict, document_of
from pipeline.verdict.gate import Cause, Finding

WORST = 5
"""Lost questions that an alert names."""


def alert_of(
    session: Session, found: RunContext, kind: AlertKind, link: str | None = None
) -> Alert:
    """Return the alert about a finished run; only of a regression questions are quoted.

    One by itself, as by a floor, is shown beside the last run.
    """
    run = found.run
    reference = (fell_from(run) or run.compared_to) if kind is AlertKind.REGRESSED else None
    return about_run(
        kind,
        _summary(found),
        occasion(f"run-{run.id}-{kind}", link),
        comparison=_comparison(run, reference),
        lost_questions=[] if reference is None else _lost(session, run, reference),
    )


def occasion(name: str, link: str | None = None) -> Occasion:
    """Return one that happens now, with an id that no other installation gives either."""
    return Occasion(f"{name}-{uuid4().hex}", datetime.now(UTC).isoformat(), link)


def for_channel(alert: Alert, channel: str, repeat: int = 1) -> Alert:
    """Return the alert as one channel gets it, with an id of its own."""
    own = f"{alert.idempotency_id}-{channel}"
    return replace(alert, idempotency_id=own, repeat=repeat)


def fell_from(run: Run) -> int | None:
    """Return the run that the first finding says it fell from; None: it is bad by itself."""
    for finding in map(Finding.from_json, run.findings or ()):
        if finding.counts and finding.verdict is Verdict.REGRESSED and finding.reference:
            return finding.reference
    return None


def verdict_of(run: Run) -> Verdict:
    """Return the verdict that every run has that alerts are written for."""
    return Verdict(run.verdict or Verdict.UNMEASURED)


def _comparison(run: Run, reference: int | None) -> Mapping[str, Any] | None:
    """Return the comparison with that run; with the last one, where there is one, for None."""
    at_baseline = reference is not None and reference == run.baseline_run
    return run.baseline_comparison if at_baseline else run.comparison


def _summary(found: RunContext) -> RunSummary:
    run = found.run
    return RunSummary(
        run_id=run.id,
        set_name=found.version.set_name,
        strategy=run.strategy,
        k=run.k,
        level=Level(run.level),
        verdict=verdict_of(run),
        reasons=run.reasons or [],
        findings=[Finding.from_json(finding) for finding in run.findings or ()],
        cause=Cause(run.cause) if run.cause else None,
        ef_search=_wider_search((run.exact or {}).get("ef_search")),
        n_scored=run.n_scored or 0,
        size=run.size,
        git_sha=run.git_sha,
    )


def _wider_search(found: Mapping[str, Any] | None) -> WiderSearch | None:
    """Return the widest that was tried of what `workers.ef_search.walk` found; None: nothing."""
    rungs = found["ladder"] if found else []
    if len(rungs) < 2:  # noqa: PLR2004 - the first is what is
        return None
    first, last = rungs[0], rungs[-1]
    return WiderSearch(
        now=first["ef_search"],
        now_ms=first["ms"],
        wider=last["ef_search"],
        wider_ms=last["ms"],
        loss=last["loss"],
    )


def _lost(session: Session, run: Run, reference: int) -> list[LostQuestion]:
    level, before = Level(run.level), runs.get(session, reference).run
    return [
        LostQuestion(
            text=row.text,
            expected=_best(row.expected, row.missing, level),
            # A wider search than the served one may find it within k: what was served lost it.
            rank=row.first_rank if row.first_rank and row.first_rank > run.k else None,
        )
        for row in comparisons.lost(session, run, before, limit=WORST)
    ]


def _best(expected: Mapping[str, int], missing: Sequence[str], level: Level) -> str:
    """Return the live key, or document, of the highest grade."""
    names = [
        (-grade, document_of(key) if level is Level.DOCUMENT else key)
        for key, grade in expected.items()
    ]
    return min(named for named in names if named[1] not in missing)[1]
