"""Write alerts: which finished run is worth telling, and to whom."""

from collections.abc import Sequence

from db import alerts, runs
from db.runs import RunContext
from db.session import Session
from pipeline.alerts.build import route
from pipeline.alerts.settings import FELL, AlertSettings
from pipeline.types import AlertKind, Verdict
from pipeline.verdict.gate import Gate
from pipeline.verdict.rules import against
from workers.composing import alert_of, fell_from, for_channel, verdict_of
from workers.judging import hold_against
from workers.staleness import write_stale

TOLD = {
    Verdict.REGRESSED: AlertKind.REGRESSED,
    Verdict.UNMEASURED: AlertKind.UNMEASURED,
}
HEALTHY = (Verdict.OK, Verdict.IMPROVED)


def write_alerts(session: Session, found: RunContext, settings: AlertSettings) -> list[int]:
    """Put a finished run's alerts into the outbox, in the transaction that finishes the run.

    Returns the ids to ring after the commit; none when there is nothing to tell, or nobody.
    """
    if not settings.channels:
        return []
    kind = _kind(session, found)
    about_run = [] if kind is None else _write(session, found, kind, settings)
    return [*about_run, *write_stale(session, found, settings)]


def _write(
    session: Session, found: RunContext, kind: AlertKind, settings: AlertSettings
) -> list[int]:
    """Write one for each channel that wants it; a recovery is for those that know of the fall."""
    run = found.run
    alert = alert_of(session, found, kind, settings.link_to(run.id))
    names = route(alert, settings.channels)
    told: dict[str, int] = {}
    if kind in FELL:
        told = alerts.told_in_a_row(session, run.id, verdict_of(run), kind)
    else:
        knowing = alerts.told_bad(session, run.id)
        names = [name for name in names if name in knowing]
    payloads = {name: for_channel(alert, name, 1 + told.get(name, 0)).to_json() for name in names}
    return alerts.add(session, run.id, kind, payloads)


def _kind(session: Session, found: RunContext) -> AlertKind | None:
    verdict = verdict_of(found.run)
    if verdict in TOLD:
        return TOLD[verdict]
    back = verdict in HEALTHY and _is_back(session, found)
    return AlertKind.RECOVERED if back else None


def _is_back(session: Session, found: RunContext) -> bool:
    """Say whether all that was told as bad is over.

    The last run may be a fallen one, and no worse than that is no recovery: the run is held
    against what the first fallen one fell from. What was bad by itself (a floor, a failure) is
    over when the run is well.
    """
    bad = alerts.unrecovered(session, found.run.id)
    references = list(dict.fromkeys(filter(None, map(fell_from, bad))))
    return bool(bad) and (not references or _holds(session, found, references))


def _holds(session: Session, found: RunContext, references: Sequence[int]) -> bool:
    """Say whether a run is no worse than the first of these that it can be compared with."""
    gate = Gate.from_json(found.run.gate)
    for number in references:
        reference = hold_against(session, found, runs.get(session, number).run)
        verdicts = {each.verdict for each in against(gate, reference) if each.counts}
        if Verdict.INCOMPARABLE not in verdicts:
            return Verdict.REGRESSED not in verdicts
    return False
