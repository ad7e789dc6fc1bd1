"""Cron as Debian's daemon does it, minute by minute: slow, and plainly right.

The fields are parsed by Celery, whose code shares nothing with what it is held against.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise

from celery.schedules import crontab

MINUTE = timedelta(minutes=1)


def minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield each minute from start on, end not included."""
    while start < end:
        yield start
        start += MINUTE


def matches(cron: str, wall: datetime) -> bool:
    """Say whether a wall time matches; one of day of month and day of week must be a star."""
    parsed = _parse(cron)
    return (
        wall.minute in parsed.minute
        and wall.hour in parsed.hour
        and wall.day in parsed.day_of_month
        and wall.month in parsed.month_of_year
        and wall.isoweekday() % 7 in parsed.day_of_week
    )


@cache
def _parse(cron: str) -> crontab:
    minute, hour, day, month, weekday = cron.split()
    return crontab(minute, hour, day_of_month=day, month_of_year=month, day_of_week=weekday)


def slots(cron: str, zone: tzinfo, start: datetime, end: datetime) -> list[datetime]:
    """Return when the daemon starts the job, from start on, end not included.

    A job with a star in minute or hour: at each minute that matches. Any other: when the clock
    passes a matching time that it has not shown or passed before.
    """
    minute, hour, *_ = cron.split()
    if minute.startswith("*") or hour.startswith("*"):
        return [t for t in minutes(start, end) if matches(cron, _wall(t, zone))]
    found = []
    highest = max(_wall(t, zone) for t in minutes(start - timedelta(hours=4), start))
    for t in minutes(start, end):
        wall = _wall(t, zone)
        if any(matches(cron, passed) for passed in minutes(highest + MINUTE, wall + MINUTE)):
            found.append(t)
        highest = max(highest, wall)
    return found


def changes(zone: tzinfo, year: int) -> list[datetime]:
    """Return the first hours in which the zone has another offset than in the hour before."""
    start = datetime(year, 1, 1, tzinfo=UTC)
    hours = [start + timedelta(hours=n) for n in range(24 * 365)]
    return [
        later
        for before, later in pairwise(hours)
        if before.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset()
    ]


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)
