"""`recallwatch alerts`: who was told what, and whether it arrived."""

import os
import uuid
from datetime import UTC, datetime

import click

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import Column, print_json, table
from cli.servers import open_servers
from db import alerts as stored
from pipeline.alerts.base import Sent
from pipeline.alerts.build import build_channel
from pipeline.alerts.compose import Occasion, RunSummary, about_run
from pipeline.alerts.message import Alert
from pipeline.errors import TransientError, UsageError
from pipeline.types import AlertKind, AlertState, Level, Verdict
from workers import doorbell


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch alerts list", "recallwatch alerts test team", "recallwatch alerts resend 7"
    ),
)
def alerts() -> None:
    """List, try and resend alerts."""


@alerts.command("list", epilog=examples(
    "recallwatch alerts list --json", "recallwatch alerts list --state unknown"
))  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--state", type=click.Choice([state.value for state in AlertState]),
              help="Only alerts in this state.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def list_alerts(context: Context, limit: int, state: str | None, as_json: bool) -> None:
    """List the newest alerts first.

    "unknown" may or may not have arrived, and is never sent again by itself: look at the channel,
    then `alerts resend` it if it is not there.
    """
    with open_servers(context) as opened, opened.work.database.begin() as session:
        wanted = None if state is None else AlertState(state)
        found = stored.recent(session, limit=limit, state=wanted)
    if as_json:
        names = ("id", "run_id", "channel", "kind", "state", "attempts", "error", "next_at",
                 "sent_at", "created_at", "payload")  # fmt: skip
        print_json([{name: getattr(each, name) for name in names} for each in found])
        return
    columns: list[str | Column] = [
        Column("alert", right=True), Column("run", right=True), "channel", "kind", "state",
        Column("tries", right=True), Column("why", wrap=True),
    ]  # fmt: skip
    rows = [
        [each.id, each.run_id, each.channel, each.kind, each.state, each.attempts, each.error]
        for each in found
    ]
    context.console.print(table(None, columns, rows) if rows else "no such alerts")


@alerts.command("test", epilog=examples("recallwatch alerts test team"))
@click.argument("channel")
@pass_context
def try_channel(context: Context, channel: str) -> None:
    """Post a message that says it is a test, now, to CHANNEL of [alerts.channels]."""
    settings = context.settings.alerts
    channels = settings.channels
    if channel not in channels:
        known = ", ".join(channels) or "none"
        raise UsageError(f"no channel {channel!r} in [alerts.channels]; there are: {known}")
    built = build_channel(channel, channels[channel], os.environ, settings.allow_hosts)
    delivery = built.deliver(_test_alert())
    if not isinstance(delivery, Sent):
        raise TransientError(f"channel {channel}: {delivery.reason}")
    context.console.print(f"sent to {channel}")


def _test_alert() -> Alert:
    run = RunSummary(
        run_id=0, set_name="test", strategy="test", k=5, level=Level.CHUNK,
        verdict=Verdict.OK, reasons=["this is a test: nothing happened"], n_scored=0, size=0,
    )  # fmt: skip
    now = datetime.now(UTC).isoformat()
    return about_run(AlertKind.RECOVERED, run, Occasion(f"test-{uuid.uuid4().hex}", now))


@alerts.command(epilog=examples("recallwatch alerts resend 7"))
@click.argument("alert_id", metavar="ALERT", type=int)
@pass_context
def resend(context: Context, alert_id: int) -> None:
    """Let an alert go out again, because you looked and it is not there."""
    with open_servers(context) as opened:
        with opened.work.database.begin() as session:
            stored.resend(session, alert_id)
        doorbell.deliver([alert_id])
    context.console.print(f"alert {alert_id} goes out when a worker runs")
