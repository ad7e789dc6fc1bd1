"""What doctor says of channels and alerts."""

import pytest

from cli import doctor
from pipeline.alerts.settings import AlertSettings
from tests.integration.workers.conftest import Opener
from tests.integration.workers.delivery.conftest import add, later
from tests.loopback.hook_server import HookServer, answer
from workers.alerting import deliver
from workers.context import Context


def seen_by_doctor(ctx: Context) -> tuple[str, str, str | None]:
    (finding,) = doctor._alerts(ctx)
    return finding.health, finding.seen.removeprefix("in the last 7 days: "), finding.advice


def test_doctor_counts_them_and_says_where_a_person_should_look(
    ctx: Context, hook: HookServer
) -> None:
    assert seen_by_doctor(ctx) == ("ok", "none", None)
    add(ctx)
    deliver(ctx, add(ctx))
    assert seen_by_doctor(ctx) == ("ok", "1 pending, 1 sent", None)
    hook.script = [answer(404)]
    deliver(ctx, add(ctx))
    advice = "see: recallwatch alerts list --state failed, then alerts resend"
    assert seen_by_doctor(ctx) == ("note", "1 failed, 1 pending, 1 sent", advice)
    hook.script = [answer(500)]
    deliver(ctx, add(ctx))
    health, seen, unknown = seen_by_doctor(ctx)
    assert (health, seen) == (
        "note", "1 failed, 1 pending, 1 sent, 1 unknown; the unknown may or may not have arrived"
    )  # fmt: skip
    assert "alerts list --state unknown" in (unknown or "")


def test_doctor_forgets_a_failure_that_is_a_week_old(ctx: Context, hook: HookServer) -> None:
    hook.script = [answer(500)]
    deliver(ctx, add(ctx))
    assert seen_by_doctor(ctx)[0] == "note"
    later(ctx, 7 * 86_400)

    assert seen_by_doctor(ctx) == ("ok", "none", None)


def test_doctor_builds_each_channel_as_a_worker_would(
    ctx: Context, open_context: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(context: Context) -> list[tuple[str, str]]:
        return [(finding.health, finding.seen) for finding in doctor._channels(context)]

    assert seen(ctx) == [("ok", "team"), ("ok", "program")]
    assert seen(open_context(alerts=AlertSettings())) == [
        ("note", "none: nobody is told of a regression")
    ]
    monkeypatch.delenv("SLACK_WEBHOOK_URL")
    (health, said), other = seen(ctx)
    assert (health, other) == ("note", ("ok", "program"))
    assert said.startswith("alerts.channels.team: environment SLACK_WEBHOOK_URL is not set")
