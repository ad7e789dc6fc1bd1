"""A worker that dies, or sleeps, while it posts: the alert is never posted twice."""

import os
import signal
import subprocess
import sys

import pytest

from db import alerts
from pipeline.settings import Settings
from tests.conftest import REPOSITORY
from tests.integration.workers.delivery.conftest import add, age, doing, later, state_of, stored
from tests.loopback.hook_server import HookServer
from workers.alerting import deliver
from workers.context import Context


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


def test_what_ageing_said_stands_when_the_worker_comes_back(ctx: Context, hook: HookServer) -> None:
    alert_id = add(ctx)

    def sleep_too_long() -> None:
        later(ctx, alerts.CLAIM_LASTS + 1)
        assert age(ctx) == 1

    hook.script = [doing(sleep_too_long)]

    assert deliver(ctx, alert_id) is None

    assert state_of(ctx, alert_id) == "unknown"
    assert "may or may not have arrived" in (stored(ctx, alert_id).error or "")
