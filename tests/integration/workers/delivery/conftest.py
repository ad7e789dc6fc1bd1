"""A Slack and a program on this machine, and a worker that posts to them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from db import alerts
from db.models import Alert
from pipeline.alerts.base import Channel
from pipeline.alerts.build import build_channel
from pipeline.alerts.settings import AlertSettings, SlackSettings, WebhookSettings
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.webhook import WebhookChannel
from tests.integration.db.building import execute, import_set, questions, start_run
from tests.integration.workers.conftest import Opener
from tests.loopback.hook_server import Exchange, HookServer, Reply, answer
from tests.unit.pipeline.alerts.examples import regressed
from workers import alerting
from workers.context import Context

PATIENCE = 0.4
"""Seconds that the channels under test wait for an answer."""

CHANNELS = AlertSettings(
    channels={"team": SlackSettings(), "program": WebhookSettings(url_env="HOOK_URL")}
)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[HookServer]:
    """Give the server that both channels post to."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HookServer() as server:
        monkeypatch.setenv("SLACK_WEBHOOK_URL", server.url())
        monkeypatch.setenv("HOOK_URL", server.url("/hook"))
        yield server


@pytest.fixture
def ctx(open_context: Opener, hook: HookServer, monkeypatch: pytest.MonkeyPatch) -> Context:
    """Give a context whose channels wait briefly."""
    assert hook

    def impatient(*arguments: object) -> Channel:
        channel = build_channel(*arguments)  # type: ignore[arg-type]  # handed on as they came
        if isinstance(channel, SlackChannel):
            return SlackChannel(channel.name, channel.url, timeout=PATIENCE)
        if isinstance(channel, WebhookChannel):
            return WebhookChannel(channel.name, channel.url, timeout=PATIENCE)
        return channel

    monkeypatch.setattr(alerting, "build_channel", impatient)
    context = open_context(alerts=CHANNELS)
    import_set(context.database, questions(2), "two")
    return context


def add(ctx: Context, channel: str = "team") -> int:
    """Write an alert of a new run."""
    payload = regressed().to_json()
    run_id = start_run(ctx.database, set_name="two")
    with ctx.database.begin() as session:
        (alert_id,) = alerts.add(session, run_id, "regressed", {channel: payload})
    return alert_id


def stored(ctx: Context, alert_id: int) -> Alert:
    with ctx.database.begin() as session:
        return session.get_one(Alert, alert_id)


def state_of(ctx: Context, alert_id: int) -> str:
    return stored(ctx, alert_id).state


def wait_of(ctx: Context, alert_id: int) -> float:
    """Return how many seconds an alert has yet to wait."""
    return (stored(ctx, alert_id).next_at - datetime.now(UTC)).total_seconds()


def later(ctx: Context, seconds: float) -> None:
    """Move all times of all alerts into the past, as if so many seconds had gone by."""
    execute(
        ctx.database,
        "UPDATE recallwatch.alert SET next_at = next_at - make_interval(secs => :s),"
        " claimed_at = claimed_at - make_interval(secs => :s),"
        " created_at = created_at - make_interval(secs => :s)",
        {"s": seconds},
    )


def age(ctx: Context) -> int:
    with ctx.database.begin() as session:
        return alerts.age(session)


def doing(action: Callable[[], object]) -> Reply:
    """Accept after some action, which happens while the request is under way."""

    def reply(exchange: Exchange) -> None:
        action()
        answer(200)(exchange)

    return reply
