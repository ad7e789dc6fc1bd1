"""A golden set that no longer fits its corpus, or that nobody looks after, is told now and then."""

from functools import partial

import pytest

from pipeline.alerts.message import Alert
from pipeline.alerts.settings import AlertSettings, SlackSettings
from pipeline.types import AlertKind, Question
from tests.integration.db.building import (
    batch_of,
    execute,
    failed,
    import_set,
    ineligible,
    scored,
    start_batch,
    store_all,
    together,
)
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import alerts_of, messages, told
from workers.context import Context
from workers.reducing import reduce
from workers.staleness import QUIET_DAYS

NAME = "stale"
STALE = SlackSettings(on=[AlertKind.GOLDEN_STALE])
LOOSE = {"max_failed": 1.0, "max_ineligible": 1.0}

pytestmark = pytest.mark.usefixtures("bell")


def opened(open_context: Opener, *channels: str, **changes: float) -> Context:
    """Give a context that tells these channels when a set is stale, and such a set.

    Ten questions of two documents' keys each: twenty keys, or twenty documents.
    """
    given = AlertSettings(channels=dict.fromkeys(channels or ("team",), STALE))
    ctx = open_context(alerts=given.model_copy(update=changes))
    asked = [Question(f"{n}?", {f"a{n}:0": 2, f"b{n}:0": 1, f"c{n}:0": 0}) for n in range(10)]
    import_set(ctx.database, asked, NAME)
    return ctx


def run(ctx: Context, missing: int, strategies: int = 1, level: str = "chunk") -> list[int]:
    """Finish a batch in which so many of the twenty keys are gone; return its runs."""
    plans = [{"strategy": f"s{n}", "level": level} for n in range(strategies)]
    ids = start_batch(ctx.database, *plans, set_name=NAME)
    for run_id in ids:
        store(ctx, run_id, missing)
        assert reduce(ctx, run_id)
    return ids


def store(ctx: Context, run_id: int, missing: int) -> None:
    """Let the keys of the first questions be gone, one or both of each."""
    rows = []
    for n in range(10):
        gone = [f"a{n}:0", f"b{n}:0"][: max(0, missing - 2 * n)]
        rows.append(ineligible(n, gone) if len(gone) > 1 else scored(n, missing=gone))
    store_all(ctx.database, run_id, rows)


def last(ctx: Context) -> Alert:
    return messages(ctx)[-1][1]


def age_alerts(ctx: Context, days: int) -> None:
    execute(
        ctx.database,
        "UPDATE recallwatch.alert SET created_at = created_at - make_interval(days => :days)",
        {"days": days},
    )


def age_questions(ctx: Context, days: int, n: int) -> None:
    execute(
        ctx.database,
        "UPDATE recallwatch.question SET updated_at = now() - make_interval(days => :days)"
        " WHERE set_name = :name AND text < :last",
        {"days": days, "name": NAME, "last": f"{n}?"},
    )


def test_keys_that_are_gone_are_told_with_their_number(open_context: Opener) -> None:
    ctx = opened(open_context)
    (run_id,) = run(ctx, missing=3)

    alert = last(ctx)

    assert told(ctx) == [(run_id, "golden_stale")]
    assert (alert.set_name, alert.strategy, alert.severity) == (NAME, None, "warning")
    assert alert.reasons == ("3 of 20 expected keys are no longer in the corpus",)
    assert (alert.expected_keys, alert.missing_keys) == (20, 3)
    assert alert.reproduce == f"recallwatch runs export {run_id}"


def test_as_many_as_may_be_gone_are_not_told(open_context: Opener) -> None:
    ctx = opened(open_context, stale_keys=0.15)
    run(ctx, missing=0)
    run(ctx, missing=3)
    assert told(ctx) == []

    run(ctx, missing=4)
    assert len(told(ctx)) == 1


def test_documents_are_counted_where_they_count(open_context: Opener) -> None:
    ctx = opened(open_context)
    asked = [Question("one?", {"a:0": 1, "a:1": 1, "https://x.org/b:0": 1})]
    import_set(ctx.database, asked, NAME, replace=True)
    (run_id,) = start_batch(ctx.database, {"level": "document"}, set_name=NAME)
    store_all(ctx.database, run_id, [scored(0, missing=["a"])])
    assert reduce(ctx, run_id)

    assert last(ctx).reasons == ("1 of 2 expected documents are no longer in the corpus",)


def test_a_batch_tells_it_once_whichever_run_ends_first(open_context: Opener) -> None:
    ctx = opened(open_context)
    for _ in range(3):
        age_alerts(ctx, QUIET_DAYS)
        before = len(told(ctx))
        ids = start_batch(ctx.database, {}, {"strategy": "b"}, {"strategy": "c"}, set_name=NAME)
        for run_id in ids:
            store(ctx, run_id, missing=4)

        together(*[partial(reduce, ctx, run_id) for run_id in ids])

        assert told(ctx)[before:] == [(ids[0], "golden_stale")]


def test_it_is_told_though_the_first_run_of_a_batch_failed(open_context: Opener) -> None:
    ctx = opened(open_context)
    first, second = start_batch(ctx.database, {}, {"strategy": "b"}, set_name=NAME)
    execute(ctx.database, "UPDATE recallwatch.run SET status = 'failed', verdict = 'unmeasured',"
            " finished_at = now() WHERE id = :id", {"id": first})  # fmt: skip
    store(ctx, second, missing=4)

    assert reduce(ctx, second)

    assert batch_of(ctx.database, first) == batch_of(ctx.database, second)
    assert told(ctx) == [(first, "golden_stale")]


def test_it_is_told_again_after_a_while_or_when_as_many_are_gone_once_more(
    open_context: Opener,
) -> None:
    ctx = opened(open_context, stale_keys=0.1)

    def tells(missing: int) -> bool:
        before = len(told(ctx))
        run(ctx, missing)
        return len(told(ctx)) > before

    assert tells(missing=3)
    assert not tells(missing=3)
    assert not tells(missing=5)
    assert tells(missing=6)
    assert not tells(missing=6)
    age_alerts(ctx, QUIET_DAYS - 1)
    assert not tells(missing=6)
    age_alerts(ctx, 1)
    assert tells(missing=6)
    assert {alert.repeat for _, alert in messages(ctx)} == {1}


def test_a_channel_that_comes_later_is_told_too(open_context: Opener) -> None:
    run(opened(open_context, "team"), missing=4)
    ctx = opened(open_context, "team", "late")
    run(ctx, missing=4)
    run(ctx, missing=4)

    assert [alert.channel for alert in alerts_of(ctx)] == ["team", "late"]


def test_questions_that_nobody_changes_are_told_when_they_are_more_than_half(
    open_context: Opener,
) -> None:
    ctx = opened(open_context, stale_days=90)
    age_questions(ctx, 91, n=5)
    age_questions(ctx, 89, n=4)
    run(ctx, missing=0)
    age_questions(ctx, 91, n=5)
    run(ctx, missing=0)
    assert told(ctx) == []
    age_questions(ctx, 91, n=6)
    run(opened(open_context, stale_days=0), missing=0)
    assert told(ctx) == []

    run(ctx, missing=0)

    alert = last(ctx)
    assert alert.reasons == ("6 of 10 questions were not changed for 90 days",)
    assert (alert.missing_keys, alert.reproduce) == (0, None)


def test_who_did_not_ask_is_not_told(open_context: Opener) -> None:
    ctx = opened(open_context)
    deaf = open_context(
        alerts=AlertSettings(channels={"team": SlackSettings(on=[AlertKind.REGRESSED])})
    )
    run(deaf, missing=4)

    assert told(ctx) == []


def test_a_run_that_measured_nothing_says_nothing_of_keys(open_context: Opener) -> None:
    ctx = opened(open_context)
    (run_id,) = start_batch(ctx.database, {}, set_name=NAME)
    store_all(ctx.database, run_id, [failed(n) for n in range(10)])

    assert reduce(ctx, run_id)

    assert told(ctx) == []
