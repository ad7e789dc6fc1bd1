"""Which channel is told what, how often, and under which id."""

import pytest

from db import alerts, runs
from db.alerts import Claimed
from pipeline.alerts.message import Severity
from pipeline.alerts.settings import AlertSettings, SlackSettings, WebhookSettings
from pipeline.types import AlertKind, AlertState, Question
from tests.integration.db.building import import_set, questions
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import (
    BROKEN,
    alerts_of,
    finished,
    finished_as,
    messages,
    telling,
    values,
)
from workers.composing import alert_of
from workers.context import Context

NAME = "four"
GOOD, FALLEN, WORSE, GONE = (1.0,) * 4, (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 0.0, 0.0), (0.0,) * 4

pytestmark = pytest.mark.usefixtures("bell")


def opened(open_context: Opener, settings: AlertSettings) -> Context:
    """Give a context that tells these channels, and a set of four questions."""
    ctx = open_context(alerts=settings)
    import_set(ctx.database, questions(4), NAME)
    return ctx


def written(ctx: Context) -> list[tuple[str, str]]:
    return [(alert.kind, alert.channel) for alert in alerts_of(ctx)]


def test_each_channel_gets_the_kinds_and_severities_it_asked_for(open_context: Opener) -> None:
    ctx = opened(
        open_context,
        telling(
            all=SlackSettings(),
            falls=WebhookSettings(url_env="HOOK", on=[AlertKind.REGRESSED]),
            grave=SlackSettings(min_severity=Severity.CRITICAL),
            faults=SlackSettings(min_severity=Severity.WARNING, on=[AlertKind.UNMEASURED]),
        ),
    )
    for result in (GOOD, FALLEN, BROKEN, GOOD):
        finished_as(ctx, NAME, result)

    assert written(ctx) == [
        ("regressed", "all"), ("regressed", "falls"), ("regressed", "grave"),
        ("unmeasured", "all"), ("unmeasured", "faults"), ("recovered", "all"),
    ]  # fmt: skip


def test_a_channel_is_told_of_its_rules_and_of_the_end_of_what_it_was_told(
    open_context: Opener,
) -> None:
    ctx = open_context(
        alerts=telling(
            all=SlackSettings(),
            owners=SlackSettings(rules=["must_pass"]),
            operators=SlackSettings(rules=["max_failed"]),
        )
    )
    asked = [Question(f"{n}?", {f"d{n}:0": 1}, must_pass=n == 3) for n in range(4)]
    import_set(ctx.database, asked, "must")

    def run(*results: float) -> None:
        finished_as(ctx, "must", results, must_pass=True)

    run(*GOOD)
    run(0, 0, 1, 1)
    assert written(ctx) == [("regressed", "all")]
    run(*GOOD)
    assert written(ctx)[1:] == [("recovered", "all")]
    run(1, 1, 1, 0)
    assert written(ctx)[2:] == [("regressed", "all"), ("regressed", "owners")]
    finished_as(ctx, "must", BROKEN)
    assert written(ctx)[4:] == [("unmeasured", "all"), ("unmeasured", "operators")]
    run(*GOOD)
    assert written(ctx)[6:] == [
        ("recovered", "all"), ("recovered", "owners"), ("recovered", "operators")
    ]  # fmt: skip


def test_a_fall_of_nothing_but_a_category_does_not_wake_who_wants_the_gravest(
    open_context: Opener,
) -> None:
    ctx = open_context(
        alerts=telling(all=SlackSettings(), pager=SlackSettings(min_severity=Severity.CRITICAL))
    )
    asked = [Question(f"{n}?", {f"d{n}:0": 1}, category=f"c{n}") for n in range(4)]
    import_set(ctx.database, asked, "grouped")
    for result in (GOOD, FALLEN):
        finished_as(ctx, "grouped", result, max_drop=1.0, category_max_drop=0.5, category_min=1)

    assert written(ctx) == [("regressed", "all")]
    assert messages(ctx)[0][1].severity is Severity.WARNING


def test_the_same_again_says_how_often(open_context: Opener) -> None:
    ctx = opened(open_context, telling(team=SlackSettings()))
    for result in (GOOD, FALLEN, WORSE, GONE, BROKEN, BROKEN, GOOD, GOOD):
        finished_as(ctx, NAME, result)
        finished(ctx, NAME, values(*GOOD), {"strategy": "other"})

    assert [(alert.kind, alert.repeat) for _, alert in messages(ctx)] == [
        ("regressed", 1), ("regressed", 2), ("regressed", 3), ("unmeasured", 1), ("unmeasured", 2),
        ("recovered", 1),
    ]  # fmt: skip


def test_a_channel_that_comes_later_or_was_not_reached_is_told_in_full_first(
    open_context: Opener,
) -> None:
    ctx = opened(open_context, telling(team=SlackSettings(), dead=SlackSettings()))
    for result in (GOOD, FALLEN):
        finished_as(ctx, NAME, result)
    lose(ctx, alerts_of(ctx)[-1].id)
    more = open_context(
        alerts=telling(team=SlackSettings(), dead=SlackSettings(), late=SlackSettings())
    )
    for result in (WORSE, GONE):
        finished_as(more, NAME, result)

    assert [(channel, alert.repeat) for channel, alert in messages(ctx)] == [
        ("team", 1), ("dead", 1), ("team", 2), ("dead", 1), ("late", 1), ("team", 3), ("dead", 2),
        ("late", 2),
    ]  # fmt: skip


def lose(ctx: Context, alert_id: int) -> None:
    """Let an alert come to nothing."""
    with ctx.database.begin() as session:
        hold = alerts.claim(session, alert_id)
        assert isinstance(hold, Claimed)
        alerts.close(session, hold, AlertState.FAILED, error="no such webhook")


def test_no_two_alerts_of_any_installation_have_the_same_id(open_context: Opener) -> None:
    ctx = opened(open_context, telling(team=SlackSettings(), pager=SlackSettings()))
    runs_of = [finished_as(ctx, NAME, BROKEN) for _ in range(2)]
    with ctx.database.begin() as session:
        found = runs.get(session, runs_of[0].id)
        # Another installation has a run of the same number.
        other = alert_of(session, found, AlertKind.UNMEASURED)

    ids = [alert.idempotency_id for _, alert in messages(ctx)]
    assert len(ids) == len(set(ids)) == 4
    assert all(
        each.startswith(f"run-{run.id}-unmeasured-")
        for run, each in zip([runs_of[0]] * 2 + [runs_of[1]] * 2, ids, strict=True)
    )
    assert not any(each.startswith(other.idempotency_id) for each in ids)
