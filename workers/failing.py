"""End runs that cannot be measured: the reason is stored, and told."""

from collections.abc import Sequence

import structlog

from db import run_states, runs, shards
from db.session import Session, apart
from db.shards import Claim
from workers import doorbell
from workers.context import Context
from workers.outbox import write_alerts

log = structlog.get_logger(__name__)


def fail_runs(ctx: Context, run_ids: Sequence[int], reason: str) -> list[int]:
    """End unfinished runs as unmeasured, and ring for their alerts; return those it ended."""
    with ctx.database.begin() as session:
        ended, alert_ids = fail_within(ctx, session, run_ids, reason)
    doorbell.deliver(alert_ids)
    return ended


def fail_claimed(ctx: Context, claim: Claim, reason: str) -> bool:
    """Do the same for the run of a claimed shard; False: the claim was lost, so is its say."""
    with ctx.database.begin() as session:
        if not shards.holds(session, claim):
            return False
        _, alert_ids = fail_within(ctx, session, [claim.run_id], reason)
    doorbell.deliver(alert_ids)
    return True


def fail_within(
    ctx: Context, session: Session, run_ids: Sequence[int], reason: str
) -> tuple[list[int], list[int]]:
    """Do the same in the caller's transaction; return the runs ended and the alerts to ring."""
    ended = run_states.fail(session, run_ids, reason)
    alert_ids = [alert_id for run_id in ended for alert_id in _alerts(ctx, session, run_id)]
    return ended, alert_ids


def _alerts(ctx: Context, session: Session, run_id: int) -> list[int]:
    """Write the alerts of a failed run; should that raise, it has none, but has failed."""
    try:
        with apart(session):
            return write_alerts(session, runs.get(session, run_id), ctx.settings.alerts)
    except Exception:
        log.exception("alerts_not_written", run=run_id)
        return []
