"""Delivery: an alert is posted once, and what became of it is said."""

from functools import partial

import pytest

from db import alerts
from pipeline.alerts.settings import AlertSettings, EmailSettings
from tests.integration.db.building import execute, fetch, together
from tests.integration.workers.conftest import Opener
from tests.integration.workers.delivery.conftest import CHANNELS, add, doing, state_of, stored
from tests.integration.workers.working import Bell
from tests.loopback.hook_server import HookServer, answer, hang, reset
from tests.loopback.smtp_server import SMTPServer
from workers import doorbell
from workers.alerting import deliver, deliver_alert
from workers.context import Context


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


def test_of_ten_workers_at_once_one_posts(
    ctx: Context, open_context: Opener, hook: HookServer
) -> None:
    contexts = [open_context(alerts=CHANNELS) for _ in range(10)]
    for _ in range(3):
        alert_id, before = add(ctx), len(hook.posted)

        states = together(*[partial(deliver, each, alert_id) for each in contexts])

        assert sorted(map(str, states)) == ["None"] * 9 + ["sent"]
        assert len(hook.posted) == before + 1


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


def test_alerts_have_a_queue_of_their_own_and_little_time(bell: Bell) -> None:
    assert deliver_alert.soft_time_limit < deliver_alert.time_limit < alerts.CLAIM_LASTS
    doorbell.deliver([1])
    doorbell.reduce([1])
    assert bell.queues == ["alerts", "default"]
