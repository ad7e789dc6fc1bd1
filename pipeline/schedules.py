"""Schedules: batches that start by themselves, and the slots, the times at which each is due.

Pure given `now`. A slot is a UTC instant, and the same for whoever works it out. A cron
expression means wall time in the schedule's zone. Where its clocks change, it is read as Debian's
cron(8) reads it: without a star in front of minute or hour, each wall time counts once, those that
the clocks jump over at the jump, those that come twice at the first; with one, every minute that
matches counts as it passes.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from itertools import takewhile
from typing import Annotated, Self
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, model_validator

from pipeline.settings_types import MAX_K, Section
from pipeline.types import Level

EPOCH = datetime(1970, 1, 5, tzinfo=UTC)
"""A Monday. Intervals are counted from it, so that all processes agree on them."""

SHORTEST = timedelta(minutes=1)
"""The clock is looked at once a minute."""

SHORTEST_GRACE = timedelta(minutes=5)

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def to_timedelta(duration: str) -> timedelta:
    """Read "30m", "6h", "7d" or "2w". Raises ValueError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", duration)
    if found is None:
        raise ValueError(f"must be a number and m, h, d or w, as 30m, 6h, 7d, not {duration!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
        raise ValueError(
            "must be letters, digits, - and _, 100 at most, the first a letter or digit"
        )
    return name


def _check_cron(cron: str) -> str:
    usage = 'write minute, hour, day of month, month, day of week, as "0 6 * * 1"'
    if len(cron.split()) != 5:  # noqa: PLR2004 - CronSim would take a sixth, for seconds
        raise ValueError(f"{cron!r} is not of five fields: {usage}")
    try:
        first = next(CronSim(cron, datetime(2000, 1, 1)), None)  # noqa: DTZ001 - wall time
    except CronSimError as error:
        reason = str(error).replace("-", " ").lower()
        raise ValueError(f"{reason} in {cron!r}: {usage}") from None
    if first is None:
        raise ValueError(f"{cron!r} never comes")
    return cron


def _check_zone(name: str) -> str:
    try:
        _zone(name)
    except (KeyError, ValueError, OSError):
        near = get_close_matches(name, known := available_timezones(), n=1)
        hint = f"did you mean {near[0]}?" if near else "write one as Europe/Berlin"
        hint = hint if known else "this machine has no time zone database: install tzdata"
        raise ValueError(f"no time zone {name!r}; {hint}") from None
    return name


def _zone(name: str) -> tzinfo:
    """Return a zone; UTC is there without a time zone database too."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _check_duration(duration: str) -> str:
    to_timedelta(duration)
    return duration


def _check_grace(duration: str) -> str:
    if to_timedelta(duration) < SHORTEST_GRACE:
        raise ValueError("must be at least 5m: the clock is looked at once a minute")
    return duration


class Schedule(Section):
    """A batch that starts by itself."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(
        description="its name", examples=["weekly"]
    )
    cron: Annotated[str, AfterValidator(_check_cron)] | None = Field(
        None,
        description='minute hour day month weekday; or in its place every = "6h" (m, h, d, w)',
        examples=["0 6 * * 1"],
    )
    every: Annotated[str, AfterValidator(_check_duration)] | None = Field(
        None, description="an interval in place of cron, counted in UTC", examples=["6h"]
    )
    timezone: Annotated[str, AfterValidator(_check_zone)] = Field(
        "UTC", description="whose wall time cron means, as Europe/Berlin"
    )
    set: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="golden set; unset: eval.set",
        examples=["default"],
    )
    strategies: list[str] | None = Field(
        None,
        min_length=1,
        description="strategies to evaluate; unset: eval.strategies",
        examples=[["vector"]],
    )
    k: int | None = Field(
        None, ge=1, le=MAX_K, description="how many results count; unset: eval.k", examples=[5]
    )
    level: Level | None = Field(
        None, strict=False, description="chunk or document; unset: eval.level", examples=["chunk"]
    )
    grace: Annotated[str, AfterValidator(_check_grace)] = Field(
        "24h", description="how late a batch that was missed is still started, once"
    )
    enabled: bool = Field(default=True, description="false: it rests")

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if (self.cron is None) == (self.every is None):
            given = "both are given" if self.cron else "neither is given"
            raise ValueError(f'one of cron and every is needed, as cron = "0 6 * * 1"; {given}')
        if self.every is not None and self.timezone != "UTC":
            raise ValueError("timezone goes with cron: intervals are counted in UTC")
        return self

    @property
    def rule(self) -> str:
        """When it is due, in words that change when its slots do."""
        return f"every {self.every}" if self.every else f"{self.cron} {self.timezone}"

    @property
    def zone(self) -> tzinfo:
        """The zone in which its times are best shown."""
        return _zone(self.timezone)


WEEKLY = Schedule(name="weekly", cron="0 6 * * 1")
"""What there is unless the settings say otherwise."""


def last_due(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the latest slot up to and including `now`, in UTC; None: not in 50 years."""
    if schedule.every is not None:
        return now.astimezone(UTC) - (now - EPOCH) % to_timedelta(schedule.every)
    tomorrow = _midnight(schedule, now) + timedelta(days=1, seconds=1)
    for day in _days(schedule, tomorrow, reverse=True):
        slots = _slots_on(schedule.cron or "", schedule.timezone, day)
        if n_past := bisect_right(slots, now):
            return slots[n_past - 1]
    return None


def next_due(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the first slot after `now`, in UTC; None: not in 50 years."""
    if schedule.every is not None:
        interval = to_timedelta(schedule.every)
        return now.astimezone(UTC) - (now - EPOCH) % interval + interval
    # The slots of a day's last hour lie on the next one where the clocks jump over it.
    yesterday = _midnight(schedule, now) - timedelta(days=1, seconds=1)
    for day in _days(schedule, yesterday, reverse=False):
        slots = _slots_on(schedule.cron or "", schedule.timezone, day)
        if (n_past := bisect_right(slots, now)) < len(slots):
            return slots[n_past]
    return None


def _midnight(schedule: Schedule, now: datetime) -> datetime:
    """Return the beginning of the day in the schedule's zone, as wall time."""
    return datetime.combine(now.astimezone(schedule.zone).date(), time())


def _days(schedule: Schedule, start: datetime, *, reverse: bool) -> Iterator[date]:
    """Yield the days that the expression names, from `start` on or back, for 50 years."""
    days = " ".join((schedule.cron or "").split()[2:])
    for midnight in CronSim(f"0 0 {days}", start, reverse=reverse):
        yield midnight.date()


@lru_cache(maxsize=128)
def _slots_on(cron: str, timezone: str, day: date) -> Sequence[datetime]:
    """Return the slots of a day's wall times, in order.

    CronSim is asked for wall time alone: with a zone, version 2.8 leaves out slots where clocks go
    back by half an hour (Lord Howe) or over midnight (Santiago).
    """
    minute, hour, *_ = cron.split()
    once = not (minute.startswith("*") or hour.startswith("*"))
    walls = CronSim(cron, datetime.combine(day, time()) - timedelta(seconds=1))
    of_day = takewhile(lambda wall: wall.date() == day, walls)
    zone = _zone(timezone)
    return sorted({slot for wall in of_day for slot in _instants(wall, zone, once=once)})


def _instants(wall: datetime, zone: tzinfo, *, once: bool) -> set[datetime]:
    """Return when a clock of the zone shows this time: once, twice, or never.

    `once`: exactly once; the first of two, and the jump for a time that is jumped over.
    """
    first, second = _both(wall, zone)
    if first <= second:
        return {first} if once else {first, second}
    while once and first > second:
        wall += timedelta(minutes=1)
        first, second = _both(wall, zone)
    return {first} if once else set()


def _both(wall: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the instants that PEP 495 gives the time for fold 0 and 1.

    They are the same as a rule; in order where the time comes twice, and in reverse where it is
    jumped over.
    """
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first, second


def upcoming(schedules: Iterable[Schedule], now: datetime) -> tuple[Schedule, datetime] | None:
    """Return the schedule that is due next, and its slot; None: none is enabled."""
    slots = [(slot, each) for each in schedules if each.enabled and (slot := next_due(each, now))]
    slot, first = min(slots, key=lambda pair: pair[0], default=(now, None))
    return (first, slot) if first else None
