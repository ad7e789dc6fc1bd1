"""What certainly did not arrive, or may be repeated, is tried again for a day."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from db import alerts
from pipeline.alerts.slack import SlackChannel
from pipeline.alerts.webhook import WebhookChannel
from tests.integration.workers.delivery.conftest import add, age, later, state_of, stored, wait_of
from tests.loopback.hook_server import HookServer, Reply, answer, hang, reset
from workers.alerting import deliver
from workers.context import Context


def test_the_other_side_is_given_the_time_it_asked_for(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)
    hook.script = [answer(429, headers={"Retry-After": "7200"})]
    deliver(ctx, alert_id)

    assert 7190 < wait_of(ctx, alert_id) <= 7200
    later(ctx, 7201)
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
            later(ctx, 240)

    assert "cannot be reached" in (stored(ctx, alert_id).error or "")
    assert waits == pytest.approx([60, 120, 240], abs=5)
    assert deliver(ctx, alert_id) == "sent"
    assert len(hook.posted) == 1


def test_a_repeated_post_to_a_program_carries_the_same_idempotency_key(
    ctx: Context, hook: HookServer
) -> None:
    alert_id = add(ctx, "program")
    hook.script = [answer(500), hang(), reset(), answer(200)]
    for _ in hook.script[:]:
        deliver(ctx, alert_id)
        later(ctx, 240)

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


@pytest.mark.parametrize(("channel", "reply"), [("team", answer(429)), ("program", answer(500))])
def test_in_a_day_it_is_tried_about_thirty_times(
    ctx: Context, hook: HookServer, channel: str, reply: Reply
) -> None:
    alert_id = add(ctx, channel)
    hook.default = reply
    while deliver(ctx, alert_id) == "pending":
        assert wait_of(ctx, alert_id) <= 3600
        later(ctx, wait_of(ctx, alert_id) + 1)
        age(ctx)

    assert state_of(ctx, alert_id) == "failed"
    assert 25 <= len(hook.posted) <= 35


def test_a_post_that_takes_too_long_in_all_is_cut_and_uncertain(
    ctx: Context, hook: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object) -> None:
        raise SoftTimeLimitExceeded

    for channel, state in (("team", "unknown"), ("program", "pending")):
        alert_id = add(ctx, channel)
        with monkeypatch.context() as slow:
            slow.setattr(SlackChannel, "deliver", endless)
            slow.setattr(WebhookChannel, "deliver", endless)
            assert deliver(ctx, alert_id) == state
        assert stored(ctx, alert_id).error == "not done within 60 s"
    assert hook.posted == []
