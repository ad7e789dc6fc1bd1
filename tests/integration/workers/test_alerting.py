"""Delivery: an alert is posted once, whatever the other side and the worker do."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import pytest

from cli import doctor
from db import alerts
from db.models import Alert
from pipeline.alerts.base import Channel
from pipeline.alerts.build import build_channel
from pipeline.alerts.settings import AlertSettings, EmailSettings, SlackSettings, WebhookSettings
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.webhook import WebhookChannel
from pipeline.settings import Settings
from tests.conftest import REPOSITORY
from tests.integration.db.building import execute, fetch, import_set, questions, start_run, together
from tests.integration.workers.conftest import Opener
from tests.loopback.hook_server import Exchange, HookServer, Reply, answer, hang, reset
from tests.loopback.smtp_server import SMTPServer
from tests.unit.pipeline.alerts.examples import regressed
from workers import alerting
from workers.alerting import deliver
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
        (alert_id,) = alerts.add(session, run_id, [channel], "regressed", payload)
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


def test_the_claim_is_committed_before_the_post_goes_out(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    seen: list[str] = []
    hook.default = doing(lambda: seen.append(state_of(ctx, alert_id)))

    assert deliver(ctx, alert_id) == "sent"

    assert seen == ["claimed"]
    assert state_of(ctx, alert_id) == "sent"
    assert "retrieval regressed" in hook.posted[0].json()["text"]


def test_what_was_sent_is_not_sent_again(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    deliver(ctx, alert_id)

    assert deliver(ctx, alert_id) is None
    assert deliver(ctx, alert_id + 1) is None
    assert len(hook.posted) == 1


@pytest.mark.parametrize("channel", ["team", "program"])
def test_what_became_of_a_post_follows_from_what_is_certain(
    ctx: Context, hook: HookServer, channel: str
) -> None:
    uncertain = "unknown" if channel == "team" else "pending"
    for reply, state, reason in (
        (answer(200), "sent", None),
        (answer(429, headers={"Retry-After": "40"}), "pending", "answered 429"),
        (answer(404, b"no_team"), "failed", "answered 404 (no_team)"),
        (answer(500), uncertain, "answered 500"),
        (hang(), uncertain, "did not answer within"),
        (reset(), uncertain, "broke off"),
    ):
        alert_id = add(ctx, channel)
        hook.script = [reply]

        assert deliver(ctx, alert_id) == state, reason

        row = stored(ctx, alert_id)
        assert (row.state, row.attempts, (row.sent_at is not None)) == (state, 1, state == "sent")
        assert row.error is None if reason is None else reason in (row.error or "")
        # Nothing happens again by itself at once.
        assert deliver(ctx, alert_id) is None
    assert len(hook.posted) == 6


def test_the_other_side_is_given_the_time_it_asked_for(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    hook.script = [answer(429, headers={"Retry-After": "40"})]
    deliver(ctx, alert_id)

    assert 30 < wait_of(ctx, alert_id) <= 40
    later(ctx, 41)
    assert deliver(ctx, alert_id) == "sent"
    assert len(hook.posted) == 2


def test_where_nobody_listens_it_is_tried_again_and_again_later(
    ctx: Context, hook: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert_id = add(ctx)
    with HookServer() as closed:
        nowhere = closed.url()
    waits = []
    with monkeypatch.context() as broken:
        broken.setenv("SLACK_WEBHOOK_URL", nowhere)
        for _ in range(3):
            assert deliver(ctx, alert_id) == "pending"
            waits.append(wait_of(ctx, alert_id))
            later(ctx, 60)

    assert "cannot be reached" in (stored(ctx, alert_id).error or "")
    assert waits == pytest.approx([2, 4, 8], abs=2)
    assert deliver(ctx, alert_id) == "sent"
    assert len(hook.posted) == 1


def test_a_repeated_post_to_a_program_carries_the_same_idempotency_key(
    ctx: Context, hook: HookServer
) -> None:
    alert_id = add(ctx, "program")
    hook.script = [answer(500), hang(), reset(), answer(200)]
    for _ in hook.script[:]:
        deliver(ctx, alert_id)
        later(ctx, 60)

    assert state_of(ctx, alert_id) == "sent"
    keys = {posted.headers["idempotency-key"] for posted in hook.posted}
    assert (len(hook.posted), keys) == (4, {"run-41-regressed"})


def test_after_a_day_in_vain_it_is_given_up(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    hook.default = answer(429)
    deliver(ctx, alert_id)
    later(ctx, alerts.GIVE_UP_AFTER + 1)

    assert age(ctx) == 1

    assert state_of(ctx, alert_id) == "failed"
    assert "429" in (stored(ctx, alert_id).error or "")
    assert deliver(ctx, alert_id) is None
    assert len(hook.posted) == 1


def test_a_try_a_minute_for_a_day_never_breaks_the_wait(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    hook.default = answer(429)
    execute(ctx.database, "UPDATE recallwatch.alert SET attempts = 1439")

    assert deliver(ctx, alert_id) == "pending"

    assert 50 < wait_of(ctx, alert_id) <= 60


def crash(*_: object, **__: object) -> None:
    raise SystemExit


def test_after_a_crash_between_post_and_close_it_is_never_posted_again(
    ctx: Context, hook: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert_id = add(ctx)
    with monkeypatch.context() as crashing:
        crashing.setattr(alerts, "close", crash)
        with pytest.raises(SystemExit):
            deliver(ctx, alert_id)

    assert_posted_once_and_unknown_in_the_end(ctx, hook, alert_id)


def test_a_worker_that_is_killed_while_it_posts_leaves_the_alert_unknown(
    ctx: Context, hook: HookServer, settings: Settings
) -> None:
    alert_id = add(ctx)
    assert settings.database_url is not None
    program = f"from workers.alerting import deliver_alert; deliver_alert({alert_id})"
    variables = {
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "REDIS_URL": settings.redis_url.get_secret_value() if settings.redis_url else "",
        "RECALLWATCH_ALERTS": '{"channels": {"team": {"kind": "slack"}}}',
        "PYTHONPATH": str(REPOSITORY),
    }
    worker: list[subprocess.Popen[bytes]] = []
    hook.script = [doing(lambda: worker[0].send_signal(signal.SIGKILL))]
    worker.append(subprocess.Popen([sys.executable, "-c", program], env=os.environ | variables))

    assert worker[0].wait(timeout=60) == -signal.SIGKILL

    assert_posted_once_and_unknown_in_the_end(ctx, hook, alert_id)


def assert_posted_once_and_unknown_in_the_end(
    ctx: Context, hook: HookServer, alert_id: int
) -> None:
    for wait, state in ((0, "claimed"), (alerts.CLAIM_LASTS + 1, "unknown"), (86_400, "unknown")):
        later(ctx, wait)
        age(ctx)
        assert deliver(ctx, alert_id) is None
        assert state_of(ctx, alert_id) == state
    assert len(hook.posted) == 1


def test_of_ten_workers_at_once_one_posts(
    ctx: Context, open_context: Opener, hook: HookServer
) -> None:
    contexts = [open_context(alerts=CHANNELS) for _ in range(10)]
    for _ in range(3):
        alert_id, before = add(ctx), len(hook.posted)

        states = together(*[partial(deliver, each, alert_id) for each in contexts])

        assert sorted(map(str, states)) == ["None"] * 9 + ["sent"]
        assert len(hook.posted) == before + 1


def test_what_ageing_said_stands_when_the_worker_comes_back(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)

    def sleep_too_long() -> None:
        later(ctx, alerts.CLAIM_LASTS + 1)
        assert age(ctx) == 1

    hook.script = [doing(sleep_too_long)]

    assert deliver(ctx, alert_id) is None

    assert state_of(ctx, alert_id) == "unknown"
    assert "may or may not have arrived" in (stored(ctx, alert_id).error or "")


def test_a_person_has_it_posted_again(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    hook.script = [answer(500)]
    assert deliver(ctx, alert_id) == "unknown"

    with ctx.database.begin() as session:
        alerts.resend(session, alert_id)

    assert deliver(ctx, alert_id) == "sent"
    assert len(hook.posted) == 2


def test_a_channel_that_cannot_be_built_has_not_posted_and_says_why(
    ctx: Context, open_context: Opener, hook: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = add(ctx, "gone")
    assert deliver(ctx, removed) == "failed"
    assert "no channel 'gone' in [alerts.channels]" in (stored(ctx, removed).error or "")

    for value, said in (
        ("", "is not set"),
        ("https://example.org/canary", "is not a URL of hooks"),
    ):
        monkeypatch.setenv("SLACK_WEBHOOK_URL", value)
        alert_id = add(ctx)
        assert deliver(open_context(alerts=CHANNELS), alert_id) == "failed"
        reason = stored(ctx, alert_id).error or ""
        assert said in reason
        assert "SLACK_WEBHOOK_URL" in reason
        assert "canary" not in reason
    assert hook.posted == []


def test_an_alert_of_a_newer_version_is_left_to_its_workers(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    execute(ctx.database, """UPDATE recallwatch.alert SET payload = payload || '{"more": 1}'""")

    assert deliver(ctx, alert_id) == "pending"

    assert "this version cannot read the alert" in (stored(ctx, alert_id).error or "")
    assert hook.posted == []


def test_a_mail_that_not_all_got_is_sent_and_says_so(ctx: Context, open_context: Opener) -> None:
    assert ctx
    with SMTPServer({"RCPT": ["250 fine", "550 no such user"]}) as server:
        mail = EmailSettings(
            host="127.0.0.1",
            port=server.port,
            security="none",
            sender="recallwatch@example.org",
            recipients=["a@example.org", "b@example.org"],
        )
        mailing = open_context(alerts=AlertSettings(channels={"mail": mail}))
        alert_id = add(mailing, "mail")

        assert deliver(mailing, alert_id) == "sent"

    assert [sent.recipients for sent in server.mails] == [["a@example.org"]]
    assert "refused 1 of 2 recipients" in (stored(ctx, alert_id).error or "")


def test_no_secret_of_a_channel_is_stored(ctx: Context, hook: HookServer) -> None:
    hook.script = [answer(404, b"no such webhook: /services/T0/B0/canary-token")]
    deliver(ctx, add(ctx))

    assert "canary-token" not in str(
        fetch(ctx.database, "SELECT to_jsonb(a) FROM recallwatch.alert a")
    )


def test_doctor_counts_them_and_says_where_a_person_should_look(
    ctx: Context, hook: HookServer
) -> None:
    def seen() -> tuple[str, str, str | None]:
        (finding,) = doctor._alerts(ctx)
        return finding.health, finding.seen, finding.advice

    assert seen() == ("ok", "none yet", None)
    add(ctx)
    deliver(ctx, add(ctx))
    assert seen() == ("ok", "1 pending, 1 sent", None)
    hook.script = [answer(500)]
    deliver(ctx, add(ctx))
    advice = "see: recallwatch alerts list, then alerts resend"
    assert seen() == ("note", "1 pending, 1 sent, 1 unknown", advice)
