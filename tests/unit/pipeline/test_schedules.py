"""When a schedule is due, also on the nights when clocks change."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.errors import SettingsError
from pipeline.schedules import WEEKLY, Schedule, last_due, next_due, to_timedelta, upcoming
from pipeline.settings_loading import load_settings
from tests.unit.pipeline import naive_cron

ZONES = [
    "UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Santiago",
    "America/Havana", "America/Nuuk", "America/St_Johns", "Africa/Cairo", "Africa/Casablanca",
    "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Kathmandu", "Pacific/Chatham",
]  # fmt: skip
"""Clocks go forward and back by an hour, by half of one, by two; at 1, 2, 3 or midnight."""

MINUTES = ["*", "*/15", "*/7", "0", "30", "59", "0,30", "5-50/20"]
HOURS = ["*", "*/2", "*/5", "0", "1", "2", "3", "23", "0-3", "1,2,3", "0-23/3"]
DAYS = ["* * *", "* * 0", "* * 1-5", "* 3,4,10,11 *", "1-15 * *", "* */2 6"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(expression: str, zone: str = "UTC") -> Schedule:
    return Schedule(name="test", cron=expression, timezone=zone)


def due_between(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """Return the slots from start on, end not included, as `next_due` gives them."""
    found = []
    slot = next_due(schedule, start - timedelta(microseconds=1))
    while slot is not None and slot < end:
        found.append(slot)
        slot = next_due(schedule, slot)
    return found


@cache
def changes(zone: str) -> list[datetime]:
    return [
        change for year in (2026, 2027, 2028) for change in naive_cron.changes(ZoneInfo(zone), year)
    ]


@pytest.mark.parametrize(
    ("zone", "expression", "day", "slots"),
    [
        # Forward at 02:00 to 03:00: half past two is jumped over, and made up for at the jump.
        ("Europe/Berlin", "30 2 * * *", "2026-03-29", ["2026-03-29 01:00"]),
        ("Europe/Berlin", "30 3 * * *", "2026-03-29", ["2026-03-29 01:30"]),
        ("America/New_York", "30 2 * * *", "2026-03-08", ["2026-03-08 07:00"]),
        # Back at 03:00 to 02:00 (New York: 02:00 to 01:00): it comes twice, and counts once.
        ("Europe/Berlin", "30 2 * * *", "2026-10-25", ["2026-10-25 00:30"]),
        ("America/New_York", "30 1 * * *", "2026-11-01", ["2026-11-01 05:30"]),
        # Monday 06:00 stays Monday 06:00, whatever happened on Sunday.
        ("Europe/Berlin", "0 6 * * 1", "2026-03-30", ["2026-03-30 04:00"]),
        ("Europe/Berlin", "0 6 * * 1", "2026-10-26", ["2026-10-26 05:00"]),
        # Lord Howe: forward at 02:00 to 02:30, back at 02:00 to 01:30.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", ["2026-10-03 15:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", ["2026-04-04 14:45"]),
        ("Australia/Lord_Howe", "0 */2 * * *", "2026-04-05",
         ["2026-04-04 13:00", "2026-04-04 15:30", "2026-04-04 17:30"]),
        # A star in front: every minute that matches, as it passes.
        ("Europe/Berlin", "30 * * * *", "2026-03-29",
         ["2026-03-28 23:30", "2026-03-29 00:30", "2026-03-29 01:30"]),
        ("Europe/Berlin", "0 */2 * * *", "2026-10-25",
         ["2026-10-24 22:00", "2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"]),
    ],
)  # fmt: skip
def test_where_clocks_change_a_schedule_is_due_as_cron_8_says(
    zone: str, expression: str, day: str, slots: list[str]
) -> None:
    schedule = cron(expression, zone)
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)

    found = due_between(schedule, start, start + timedelta(days=1))

    assert found[: len(slots)] == [at(slot) for slot in slots]
    assert all(last_due(schedule, slot) == slot for slot in found)


@settings(deadline=None, max_examples=60)
@given(
    zone=st.sampled_from(ZONES),
    expression=st.builds(
        "{} {} {}".format,
        st.sampled_from(MINUTES),
        st.sampled_from(HOURS),
        st.sampled_from(DAYS),
    ),
    number=st.integers(0, 11),
)
def test_the_slots_are_those_of_a_clock_watched_minute_by_minute(
    zone: str, expression: str, number: int
) -> None:
    found = changes(zone) or [at("2026-02-28 23:00"), at("2028-02-28 23:00")]
    change = found[number % len(found)]
    start, end = change - timedelta(hours=26), change + timedelta(hours=26)
    expected = naive_cron.slots(expression, ZoneInfo(zone), start, end)
    schedule = cron(expression, zone)

    assert due_between(schedule, start, end) == expected
    for before, slot in list(pairwise(expected))[:50]:
        assert last_due(schedule, slot) == slot
        assert last_due(schedule, slot - timedelta(microseconds=1)) == before


any_schedule = st.one_of(
    st.builds(
        lambda minute, hour, days, zone: cron(f"{minute} {hour} {days}", zone),
        st.sampled_from(MINUTES),
        st.sampled_from(HOURS),
        st.sampled_from(DAYS),
        st.sampled_from(ZONES),
    ),
    st.builds(
        lambda number, unit: Schedule(name="test", every=f"{number}{unit}"),
        st.integers(1, 90),
        st.sampled_from("mhdw"),
    ),
)
moments = st.datetimes(
    datetime(2026, 1, 1), datetime(2029, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001 - hypothesis wants them so
)  # fmt: skip


@settings(deadline=None)
@given(schedule=any_schedule, now=moments)
def test_a_moment_lies_between_its_last_slot_and_its_next(
    schedule: Schedule, now: datetime
) -> None:
    last, following = last_due(schedule, now), next_due(schedule, now)

    assert last is not None
    assert following is not None
    assert last <= now < following
    assert last_due(schedule, last) == last
    assert last_due(schedule, following) == following
    assert last_due(schedule, following - timedelta(microseconds=1)) == last
    assert next_due(schedule, last) == following


@settings(deadline=None, max_examples=50)
@given(
    schedule=any_schedule,
    start=moments,
    steps=st.lists(st.integers(1, 600), min_size=1, max_size=40),
)
def test_looked_at_often_enough_each_slot_is_the_last_one_at_some_time(
    schedule: Schedule, start: datetime, steps: list[int]
) -> None:
    now, last = start, last_due(schedule, start)
    assert last is not None
    for step in steps:
        now += timedelta(seconds=step)
        before, last = last, last_due(schedule, now)
        assert last is not None
        if last == before:
            continue
        # None is passed over but those that a later one came to be due after, in one step.
        following = next_due(schedule, before)
        assert following is not None
        assert following <= last
        assert last - following < timedelta(seconds=step)


@settings(deadline=None, max_examples=50)
@given(
    minute=st.sampled_from(MINUTES),
    hour=st.sampled_from(HOURS),
    days=st.sampled_from(DAYS),
    now=moments,
)
def test_in_utc_the_next_slot_is_the_one_celery_would_run(
    minute: str, hour: str, days: str, now: datetime
) -> None:
    day, month, weekday = days.split()
    theirs = crontab(
        minute, hour, day_of_month=day, month_of_year=month, day_of_week=weekday,
        nowfun=lambda: now, app=Celery(set_as_current=False, timezone="UTC"),
    )  # fmt: skip
    expected = now + theirs.remaining_estimate(now)

    assert next_due(cron(f"{minute} {hour} {days}"), now) == expected


@settings(deadline=None, max_examples=50)
@given(
    minute=st.sampled_from(MINUTES),
    hour=st.sampled_from(HOURS),
    days=st.sampled_from([*DAYS, "13 * 5", "L * *", "* * 1#1", "1,15 * 3"]),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York"]),
    now=moments,
)
def test_where_cronsim_knows_the_zone_it_says_the_same(
    minute: str, hour: str, days: str, zone: str, now: datetime
) -> None:
    assume(all(abs(now - change) > timedelta(hours=4) for change in changes(zone)))
    expression = f"{minute} {hour} {days}"
    theirs = next(CronSim(expression, now.astimezone(ZoneInfo(zone))))

    assert next_due(cron(expression, zone), now) == theirs.astimezone(UTC)


def test_intervals_count_from_a_monday_for_everybody() -> None:
    weekly = Schedule(name="test", every="7d")
    now = at("2026-11-30 16:54")

    assert last_due(weekly, now) == at("2026-11-30 00:00")
    assert next_due(weekly, now) == at("2026-12-07 00:00")
    berlin = now.astimezone(ZoneInfo("Europe/Berlin"))
    assert last_due(weekly, berlin) == last_due(weekly, now)


def test_the_weekly_schedule_is_due_on_mondays_at_six_utc() -> None:
    assert last_due(WEEKLY, at("2026-12-01 10:00")) == at("2026-11-30 06:00")
    assert next_due(WEEKLY, at("2026-11-30 06:00")) == at("2026-12-07 06:00")
    assert next_due(WEEKLY, at("2026-11-30 05:59")) == at("2026-11-30 06:00")


def test_a_29th_of_february_is_waited_for() -> None:
    leap = cron("0 0 29 2 *", "Europe/Berlin")

    assert next_due(leap, at("2026-06-01 00:00")) == at("2028-02-28 23:00")
    assert last_due(leap, at("2026-06-01 00:00")) == at("2024-02-28 23:00")


def test_what_is_due_first_comes_next_and_what_rests_does_not_count() -> None:
    now = at("2026-11-30 16:54")
    soon = Schedule(name="soon", every="1h", enabled=False)
    later, last = Schedule(name="later", every="1d"), Schedule(name="last", every="2w")

    assert upcoming([soon, last, later], now) == (later, at("2026-12-01 00:00"))
    assert upcoming([soon], now) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30m", timedelta(minutes=30)), ("6h", timedelta(hours=6)), ("2w", timedelta(days=14))],
)
def test_durations_are_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert to_timedelta(text) == expected


FIVE = 'write minute, hour, day of month, month, day of week, as "0 6 * * 1"'
DURATION = "must be a number and m, h, d or w, as 30m, 6h, 7d"
ONE_OF = 'one of cron and every is needed, as cron = "0 6 * * 1"'


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (['cron = "61 6 * * 1"'], f"[0].cron: bad minute in '61 6 * * 1': {FIVE}"),
        (['cron = "0 6 * *"'], f"[0].cron: '0 6 * *' is not of five fields: {FIVE}"),
        (['cron = "0 0 6 * * 1"'], f"[0].cron: '0 0 6 * * 1' is not of five fields: {FIVE}"),
        (['cron = "0 0 31 2 *"'], f"[0].cron: bad day of month in '0 0 31 2 *': {FIVE}"),
        (['cron = "0 0 */30 2 1#5"'], "[0].cron: '0 0 */30 2 1#5' never comes"),
        ([], f"[0]: {ONE_OF}; neither is given"),
        (['cron = "0 6 * * 1"', 'every = "6h"'], f"[0]: {ONE_OF}; both are given"),
        (['every = "90"'], f"[0].every: {DURATION}, not '90'"),
        (['every = "0h"'], f"[0].every: {DURATION}, not '0h'"),
        (['every = "1d"', 'timezone = "Europe/Berlin"'],
         "[0]: timezone goes with cron: intervals are counted in UTC"),
        (['cron = "0 6 * * 1"', 'timezone = "Europe/Berln"'],
         "[0].timezone: no time zone 'Europe/Berln'; did you mean Europe/Berlin?"),
        (['cron = "0 6 * * 1"', 'timezone = "../passwd"'],
         "[0].timezone: no time zone '../passwd'; write one as Europe/Berlin"),
        (['every = "1d"', 'grace = "1m"'],
         "[0].grace: must be at least 5m: the clock is looked at once a minute"),
        (['every = "1d"', 'strategies = ["vectr"]'],
         "[0].strategies: no strategy 'vectr'; there are vector, fulltext, hybrid"),
        (['every = "1d"', "k = 0"], "[0].k: must be an integer from 1 to 1000, not 0"),
        (['every = "1d"', "", "[[schedule]]", 'name = "mine"', 'every = "2d"'],
         "[1].name: there is a schedule 'mine' already"),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_told_in_one_line(tmp_path: Path, lines: list[str], fault: str) -> None:
    file = tmp_path / "recallwatch.toml"
    file.write_text("\n".join(["[[schedule]]", 'name = "mine"', *lines]))

    with pytest.raises(SettingsError) as caught:
        load_settings(file)

    assert str(caught.value) == f"{file}: schedule{fault}"


def test_a_wrong_name_is_told(tmp_path: Path) -> None:
    file = tmp_path / "recallwatch.toml"
    file.write_text('[[schedule]]\nname = "my own"\nevery = "1d"')

    with pytest.raises(
        SettingsError, match=r"schedule\[0\].name: must be letters, digits, - and _"
    ):
        load_settings(file)


def test_one_bracket_too_few_is_told(tmp_path: Path) -> None:
    file = tmp_path / "recallwatch.toml"
    file.write_text('[schedule]\nname = "mine"\nevery = "1d"')

    with pytest.raises(SettingsError, match=r"write \[\[schedule\]\], with two brackets"):
        load_settings(file)


def test_there_is_one_weekly_schedule_until_the_file_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "recallwatch.toml"
    file.write_text("")
    assert load_settings(file).settings.schedule == [WEEKLY]
    file.write_text("schedule = []")
    assert load_settings(file).settings.schedule == []
    file.write_text('[[schedule]]\nname = "mine"\nevery = "6h"\nlevel = "document"')
    assert [each.name for each in load_settings(file).settings.schedule] == ["mine"]
    monkeypatch.setenv("RECALLWATCH_SCHEDULE", '[{"name": "other", "every": "1d"}]')
    assert [each.name for each in load_settings(file).settings.schedule] == ["other"]
    monkeypatch.setenv("RECALLWATCH_SCHEDULE", "[]")
    assert load_settings(file).settings.schedule == []
