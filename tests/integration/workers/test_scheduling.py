"""Each slot of a schedule starts one batch, whoever looks at the clock, and however often."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import SecretStr

from db import schedules
from db.models import ScheduleSlot
from pipeline.errors import TransientError
from pipeline.schedules import Schedule
from pipeline.types import SlotOutcome
from tests.integration.db.building import execute, fetch, together
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import Bell
from workers import doorbell, scheduling
from workers.context import Context
from workers.enqueue import Request, Within, start
from workers.scheduling import tick

SUNDAY = datetime(2026, 11, 29, 12, tzinfo=UTC)
MONDAY = datetime(2026, 11, 30, 6, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

WEEKLY = Schedule(name="weekly", cron="0 6 * * 1", strategies=["fulltext"])
HOURLY = Schedule(name="hourly", every="1h", strategies=["fulltext"])

STARTED, SKIPPED, FAILED = SlotOutcome


@pytest.fixture
def weekly(open_context: Opener, bell: Bell) -> Context:  # noqa: ARG001 - no message leaves
    """Give a context with the weekly schedule, which was first seen on Sunday."""
    ctx = open_context(schedule=[WEEKLY])
    assert tick(ctx, SUNDAY) == {}
    return ctx


def slot(ctx: Context, due: datetime, name: str = "weekly") -> ScheduleSlot | None:
    with ctx.database.begin() as session:
        return schedules.find(session, name, due)


def slots(ctx: Context) -> list[Any]:
    return fetch(ctx.database, "SELECT due_at FROM recallwatch.schedule_slot ORDER BY due_at")


def batches(ctx: Context) -> list[Any]:
    return fetch(ctx.database, "SELECT requested_by FROM recallwatch.batch ORDER BY id")


def minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += MINUTE


def test_what_is_due_is_started_once_and_says_by_whom(weekly: Context, bell: Bell) -> None:
    assert tick(weekly, MONDAY - MINUTE) == {}
    assert tick(weekly, MONDAY + MINUTE / 2) == {"weekly": STARTED}
    assert len(bell.messages) == 3
    assert tick(weekly, MONDAY + MINUTE) == {}
    assert tick(weekly, MONDAY + 20 * HOUR) == {}

    assert batches(weekly) == ["weekly"]
    assert fetch(weekly.database, "SELECT trigger FROM recallwatch.batch") == ["schedule"]
    assert len(bell.messages) == 3


def test_a_batch_is_of_the_schedules_own_set_strategies_k_and_level(
    open_context: Opener, bell: Bell
) -> None:
    own = HOURLY.model_copy(update={"strategies": ["vector"], "k": 2, "level": "document"})
    ctx = open_context(schedule=[own])

    tick(ctx, MONDAY - MINUTE)
    tick(ctx, MONDAY + MINUTE)

    bell.work(ctx)
    found = "SELECT strategy || k || level || status FROM recallwatch.run"
    assert fetch(ctx.database, found) == ["vector2documentcompleted"]


def test_a_schedule_that_is_new_is_not_started_for_the_past(
    open_context: Opener, bell: Bell
) -> None:
    ctx = open_context(schedule=[WEEKLY])

    assert tick(ctx, MONDAY + HOUR) == {}
    assert tick(ctx, MONDAY + 2 * HOUR) == {}
    assert batches(ctx) == bell.messages == []
    assert tick(ctx, MONDAY + 7 * DAY) == {"weekly": STARTED}


def test_since_when_a_schedule_is_known_survives_a_restart(
    weekly: Context, open_context: Opener
) -> None:
    weekly.close()
    restarted = open_context(schedule=[WEEKLY])

    assert tick(restarted, MONDAY + HOUR) == {"weekly": STARTED}


def test_a_schedule_that_was_changed_is_new(weekly: Context, open_context: Opener) -> None:
    earlier = open_context(schedule=[WEEKLY.model_copy(update={"cron": "0 5 * * 1"})])

    assert tick(earlier, MONDAY + HOUR) == {}
    assert batches(weekly) == []


def test_workers_with_old_and_new_settings_do_not_make_each_other_forget(
    weekly: Context, open_context: Opener
) -> None:
    newer = open_context(schedule=[WEEKLY.model_copy(update={"cron": "0 7 * * 1"})])

    for now in minutes(MONDAY - 5 * MINUTE, MONDAY + 5 * MINUTE):
        tick(newer, now)
        tick(weekly, now)

    assert slots(weekly) == [MONDAY]


def test_after_beat_was_down_the_missed_batch_starts_once(weekly: Context) -> None:
    assert tick(weekly, MONDAY + 23 * HOUR) == {"weekly": STARTED}
    assert tick(weekly, MONDAY + 23 * HOUR + MINUTE) == {}
    assert slots(weekly) == [MONDAY]


def test_after_the_grace_the_missed_batch_is_left(weekly: Context, bell: Bell) -> None:
    assert tick(weekly, MONDAY + 24 * HOUR + MINUTE) == {}
    assert slots(weekly) == bell.messages == []
    assert tick(weekly, MONDAY + 7 * DAY) == {"weekly": STARTED}


def test_of_many_missed_slots_the_last_one_is_started(open_context: Opener, bell: Bell) -> None:
    ctx = open_context(schedule=[HOURLY])
    tick(ctx, MONDAY - MINUTE)

    assert tick(ctx, MONDAY + 5.5 * HOUR) == {"hourly": STARTED}
    bell.work(ctx)
    assert tick(ctx, MONDAY + 5.6 * HOUR) == {}
    assert slots(ctx) == [MONDAY + 5 * HOUR]


def test_while_its_last_batch_is_not_finished_a_schedule_skips_and_says_so(
    open_context: Opener, bell: Bell
) -> None:
    other = HOURLY.model_copy(update={"name": "other", "every": "2h"})
    ctx = open_context(schedule=[HOURLY, other])
    tick(ctx, MONDAY - MINUTE)
    assert tick(ctx, MONDAY) == {"hourly": STARTED, "other": STARTED}

    assert tick(ctx, MONDAY + HOUR) == {"hourly": SKIPPED}

    [batch, _] = fetch(ctx.database, "SELECT id FROM recallwatch.batch ORDER BY id")
    skipped = slot(ctx, MONDAY + HOUR, "hourly")
    assert skipped is not None
    assert skipped.reason == f"batch {batch} of this schedule was not finished"
    bell.work(ctx)
    assert tick(ctx, MONDAY + HOUR + MINUTE) == {}
    assert tick(ctx, MONDAY + 2 * HOUR) == {"hourly": STARTED, "other": STARTED}


@pytest.mark.parametrize(
    ("changes", "statement", "reason"),
    [
        ({"set": "faq"}, "SELECT 1", "golden set 'faq' has no active question; run:"),
        ({"strategies": ["vectr"]}, "SELECT 1", "unknown strategy 'vectr'"),
        ({}, "TRUNCATE recallwatch_corpus.chunks", "recallwatch_corpus.chunks is empty"),
    ],
)
def test_what_a_person_has_to_mend_fails_the_slot_with_the_reason(
    open_context: Opener, bell: Bell, changes: dict[str, Any], statement: str, reason: str
) -> None:
    ctx = open_context(schedule=[WEEKLY.model_copy(update=changes)])
    tick(ctx, SUNDAY)
    execute(ctx.database, statement)

    assert tick(ctx, MONDAY) == {"weekly": FAILED}
    assert tick(ctx, MONDAY + MINUTE) == {}

    failed = slot(ctx, MONDAY)
    assert failed is not None
    assert reason in (failed.reason or "")
    assert batches(ctx) == bell.messages == []


def test_while_the_corpus_is_down_it_is_tried_until_it_answers(
    weekly: Context, open_context: Opener
) -> None:
    nowhere = SecretStr("postgresql://postgres@/none?host=/nowhere")
    down = open_context(schedule=[WEEKLY], corpus_url=nowhere)

    assert tick(down, MONDAY) == {}
    assert tick(down, MONDAY + MINUTE) == {}
    assert slots(weekly) == []
    assert tick(weekly, MONDAY + 2 * MINUTE) == {"weekly": STARTED}


def test_when_the_corpus_is_down_until_the_grace_ends_the_slot_has_failed(
    weekly: Context, open_context: Opener
) -> None:
    nowhere = SecretStr("postgresql://postgres@/none?host=/nowhere")
    down = open_context(schedule=[WEEKLY], corpus_url=nowhere)

    assert tick(down, MONDAY + 24 * HOUR - 1.5 * MINUTE) == {}
    assert tick(down, MONDAY + 24 * HOUR - 0.5 * MINUTE) == {"weekly": FAILED}

    failed = slot(weekly, MONDAY)
    assert failed is not None
    assert "the corpus database does not answer" in (failed.reason or "")


def test_when_the_next_slot_comes_first_a_slot_fails_before_its_grace_ends(
    open_context: Opener, bell: Bell
) -> None:
    nowhere = SecretStr("postgresql://postgres@/none?host=/nowhere")
    down = open_context(schedule=[HOURLY], corpus_url=nowhere)
    tick(down, MONDAY - MINUTE)

    assert tick(down, MONDAY + HOUR - 1.5 * MINUTE) == {}
    assert tick(down, MONDAY + HOUR - 0.5 * MINUTE) == {"hourly": FAILED}
    assert bell.messages == []


def test_when_only_the_queue_is_down_the_batch_stands_and_no_second_one_starts(
    weekly: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TransientError("the queue does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(doorbell, "_ring", refuse)
        tick(weekly, MONDAY)

    assert tick(weekly, MONDAY + MINUTE) == {}
    assert batches(weekly) == ["weekly"]
    assert slots(weekly) == [MONDAY]


def test_a_schedule_that_raises_keeps_no_other_from_starting(
    open_context: Opener, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = open_context(schedule=[HOURLY, WEEKLY])
    tick(ctx, SUNDAY + MINUTE)

    def fragile(ctx: Context, request: Request, within: Within) -> object:
        if request.requested_by == "hourly":
            raise ZeroDivisionError
        return start(ctx, request, within)

    monkeypatch.setattr(scheduling, "start", fragile)

    assert tick(ctx, MONDAY) == {"weekly": STARTED}
    assert len(bell.messages) == 3
    monkeypatch.undo()
    assert slots(ctx) == [MONDAY]


def test_what_rests_is_not_started(open_context: Opener, bell: Bell) -> None:
    ctx = open_context(schedule=[WEEKLY.model_copy(update={"enabled": False})])

    assert tick(ctx, SUNDAY) == tick(ctx, MONDAY) == {}
    assert bell.messages == []


def test_however_many_look_at_the_clock_at_once_one_batch_starts(
    open_context: Opener, bell: Bell
) -> None:
    clocks = [open_context(schedule=[HOURLY]) for _ in range(4)]
    tick(clocks[0], MONDAY - MINUTE)

    for hour in range(3):
        now = MONDAY + hour * HOUR
        found = together(*(partial(tick, ctx, now) for ctx in clocks))

        assert sorted(map(len, found)) == [0, 0, 0, 1]
        assert len(batches(clocks[0])) == hour + 1
        assert len(bell.messages) == 3
        bell.work(clocks[0])
    assert slots(clocks[0]) == [MONDAY + hour * HOUR for hour in range(3)]


def test_those_who_see_a_schedule_first_at_once_agree_since_when(open_context: Opener) -> None:
    clocks = [open_context(schedule=[WEEKLY]) for _ in range(4)]

    together(*(partial(tick, ctx, SUNDAY) for ctx in clocks))

    assert fetch(clocks[0].database, "SELECT seen_at FROM recallwatch.seen_schedule") == [SUNDAY]


@pytest.mark.parametrize(
    ("zone", "cron", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00"),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30"),
        ("America/New_York", "30 1 * * *", "2026-11-01T05:30"),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T15:30"),
    ],
)
@pytest.mark.usefixtures("bell")
def test_on_the_night_when_clocks_change_two_beats_start_one_batch(
    open_context: Opener, zone: str, cron: str, expected: str
) -> None:
    nightly = Schedule(name="nightly", cron=cron, timezone=zone, strategies=["fulltext"])
    beats = [open_context(schedule=[nightly]) for _ in range(2)]
    slot_ = datetime.fromisoformat(expected).replace(tzinfo=UTC)

    started = [
        now
        for now in minutes(slot_ - 1.5 * HOUR, slot_ + 2 * HOUR)
        for ctx in beats
        if tick(ctx, now)
    ]

    assert started == slots(beats[0]) == [slot_]
    assert batches(beats[0]) == ["nightly"]
