"""Task deliver_alert: claim, commit, post once, and say honestly what became of it."""

import os

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import alerts
from db.alerts import Claimed
from pipeline.alerts.base import Delivery, NotSent, Sent, Unknown
from pipeline.alerts.build import build_channel
from pipeline.alerts.message import Alert
from pipeline.errors import SettingsError
from pipeline.types import AlertState
from workers import context
from workers.app import app
from workers.context import Context
from workers.doorbell import DELIVER_ALERT
from workers.retrying import wait_before_posting

log = structlog.get_logger(__name__)

LIMIT = 60
"""Seconds that a post may take in all, each wait of it being shorter."""


@app.task(name=DELIVER_ALERT, soft_time_limit=LIMIT, time_limit=LIMIT + 30)
def deliver_alert(alert_id: int) -> None:
    """Post one alert of the outbox, unless somebody else does."""
    deliver(context.current(), alert_id)


def deliver(ctx: Context, alert_id: int) -> AlertState | None:
    """Claim and commit BEFORE the post, so that a crash in between can never post it twice.

    What certainly did not arrive is tried again for a day; what may have arrived becomes
    `unknown`, which only a person sends again (a channel that carries an idempotency id may
    repeat it). Returns the state it ended in; None: it was not to be had, or it was aged
    meanwhile, and what that said stands.
    """
    with structlog.contextvars.bound_contextvars(alert=alert_id):
        with ctx.database.begin() as session:
            claimed = alerts.claim(session, alert_id)
        if claimed is None:
            return None
        delivery, may_repeat = _post(ctx, claimed)
        state, error, wait = _outcome(delivery, claimed, may_repeat=may_repeat)
        with ctx.database.begin() as session:
            closed = alerts.close(session, claimed, state, error=error, wait=wait)
        event = "alert_tried" if closed else "alert_tried_too_late"
        log.info(event, channel=claimed.channel, state=state, reason=error)
        return state if closed else None


def _post(ctx: Context, claimed: Claimed) -> tuple[Delivery, bool]:
    """Build the channel and try once; what fails before the post has certainly not arrived."""
    settings = ctx.settings.alerts.channels.get(claimed.channel)
    if settings is None:
        reason = f"there is no channel {claimed.channel!r} in [alerts.channels] any more"
        return NotSent(reason, permanent=True), False
    try:
        allowed = ctx.settings.alerts.allow_hosts
        channel = build_channel(claimed.channel, settings, os.environ, allowed)
        alert = Alert.from_json(claimed.payload)
    except SettingsError as error:
        return NotSent(str(error), permanent=True), False
    except (KeyError, TypeError, ValueError) as error:
        # A newer version wrote it, whose workers are on their way.
        return NotSent(f"this version cannot read the alert: {error!r}"), False
    try:
        return channel.deliver(alert), channel.may_repeat
    except SoftTimeLimitExceeded:
        return Unknown(f"not done within {LIMIT} s"), channel.may_repeat


def _outcome(
    delivery: Delivery, claimed: Claimed, *, may_repeat: bool
) -> tuple[AlertState, str | None, float]:
    """Return the state, what is to be said of it, and the seconds until another try."""
    if isinstance(delivery, Sent):
        return AlertState.SENT, delivery.note, 0
    if isinstance(delivery, NotSent) and delivery.permanent:
        return AlertState.FAILED, delivery.reason, 0
    if isinstance(delivery, NotSent) or may_repeat:
        asked = delivery.retry_after if isinstance(delivery, NotSent) else None
        wait = wait_before_posting(asked, attempt=claimed.attempt)
        return AlertState.PENDING, delivery.reason, wait
    return AlertState.UNKNOWN, delivery.reason, 0
