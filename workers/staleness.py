"""Tell, now and then, that a golden set no longer fits its corpus or that nobody looks after it."""

from db import alerts, golden
from db.alerts import ToldStale
from db.runs import RunContext
from db.session import Session
from pipeline.alerts.build import route
from pipeline.alerts.compose import about_golden_set
from pipeline.alerts.message import Alert
from pipeline.alerts.settings import AlertSettings
from pipeline.types import AlertKind, Level
from workers.composing import for_channel, occasion

QUIET_DAYS = 30
"""Days for which a channel that was told is not told again, unless it gets worse."""

MOST_OLD = 0.5
"""Share of a set's questions that may be old."""


def write_stale(session: Session, found: RunContext, settings: AlertSettings) -> list[int]:
    """Put an alert that the golden set is stale into the outbox; return the ids to ring.

    Any run of a batch that was measured finds the same: the alert hangs on the batch's first run,
    so that the outbox takes one of a batch.
    """
    if found.run.facts is None or not _anybody(settings):
        return []
    alert = _alert(session, found, found.run.facts["missing_keys"], settings)
    if alert is None:
        return []
    told = alerts.told_stale(session, found.version.set_name)
    payloads = {
        name: for_channel(alert, name).to_json()
        for name in route(alert, settings.channels)
        if _is_news(alert, told.get(name), settings.stale_keys)
    }
    first = alerts.first_of_batch(session, found.batch.id)
    return alerts.add(session, first, alert.kind, payloads)


def _anybody(settings: AlertSettings) -> bool:
    return any(AlertKind.GOLDEN_STALE in channel.on for channel in settings.channels.values())


def _alert(
    session: Session, found: RunContext, missing: int, settings: AlertSettings
) -> Alert | None:
    """Return what is to be told of the run's set, None when it is as it should be."""
    version, level = found.version, Level(found.run.level)
    expected = golden.expected_count(session, version.id, level) if missing else None
    reasons = []
    if expected and missing / expected > settings.stale_keys:
        reasons.append(
            f"{missing} of {expected} expected {_named(level)} are no longer in the corpus"
        )
    if settings.stale_days:
        old, total = golden.count_unchanged(session, version.id, settings.stale_days)
        if old > MOST_OLD * total:
            reasons.append(
                f"{old} of {total} questions were not changed for {settings.stale_days} days"
            )
    if not reasons:
        return None
    return about_golden_set(
        version.set_name,
        reasons,
        occasion(f"version-{version.id}-{AlertKind.GOLDEN_STALE}"),
        expected_keys=expected,
        missing_keys=missing,
        reproduce=f"recallwatch runs export {found.run.id}" if missing else None,
    )


def _named(level: Level) -> str:
    return "keys" if level is Level.CHUNK else "documents"


def _is_news(alert: Alert, told: ToldStale | None, more: float) -> bool:
    """Say whether a channel was not told lately, or `more` of the keys are gone since."""
    if told is None or told.days >= QUIET_DAYS:
        return True
    return (alert.missing_keys or 0) / (alert.expected_keys or 1) - told.share > more
