"""Batches that start by themselves: real beats, a real worker, and what the list says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, Running, wait_until
from tests.acceptance.conftest import standing_project

EACH_SECOND = """
import sys
from workers import schedule
schedule.TICK_EVERY = 1
from celery.__main__ import main
sys.argv = ["celery", "--app", "workers.app", "beat", "--loglevel", "info", *sys.argv[1:]]
main()
"""
"""Celery's own beat, but for how often it sends the tick."""

SCHEDULES = [
    {"name": name, "every": "1d", "strategies": ["fulltext"]} for name in ("a", "b", "c", "d")
]


@pytest.fixture
def scheduled(servers: Servers) -> Iterator[Project]:
    """Give a project with four daily schedules, known for three days: today's slots are due."""
    environment = {"RECALLWATCH_SCHEDULE": json.dumps(SCHEDULES)}
    with standing_project(servers, environment) as project:
        guides.load(project)
        for each in SCHEDULES:
            rows(
                project,
                "INSERT INTO recallwatch.seen_schedule VALUES (%s, %s, now() - interval '3 days')"
                " RETURNING 1",
                each["name"], f"every {each['every']}",
            )  # fmt: skip
        yield project


def rows(project: Project, query: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(project.environment["DATABASE_URL"]) as database:
        return database.execute(query, values).fetchall()


@contextmanager
def beat(project: Project, number: int) -> Iterator[Running]:
    file = str(project.folder / f"beat-{number}")
    environment = project.servers() | {"RECALLWATCH_LOG__LEVEL": "info"}
    process = project.start_program("-c", EACH_SECOND, "--schedule", file, **environment)
    try:
        yield process
    finally:
        process.process.terminate()


def test_two_beats_start_each_batch_once_and_the_list_shows_its_verdict(
    scheduled: Project,
) -> None:
    def verdicts() -> list[tuple[Any, ...]]:
        query = "SELECT verdict FROM recallwatch.run WHERE verdict IS NOT NULL"
        return rows(scheduled, query)

    with scheduled.worker(), beat(scheduled, 1) as one, beat(scheduled, 2) as other:
        wait_until(lambda: len(verdicts()) >= len(SCHEDULES))
        # Both go on ticking, and find that all is done.
        with pytest.raises(AssertionError):
            wait_until(lambda: len(verdicts()) > len(SCHEDULES), timeout=4)
    for each in (one, other):
        assert each.finish().err.count("Sending due task tick") >= 3
    started = rows(
        scheduled,
        "SELECT requested_by, trigger, count(*) FROM recallwatch.batch GROUP BY 1, 2 ORDER BY 1",
    )
    assert started == [(each["name"], "schedule", 1) for each in SCHEDULES]
    assert rows(scheduled, "SELECT DISTINCT outcome FROM recallwatch.schedule_slot") == [
        ("started",)
    ]

    listed = scheduled.json_rows("schedule", "list")

    assert [each["name"] for each in listed] == ["a", "b", "c", "d"]
    for schedule in listed:
        assert schedule["note"] is None
        assert schedule["last"].endswith("T00:00:00Z")
        assert schedule["next"] > schedule["last"]
        assert [run["strategy"] for run in schedule["runs"]] == ["fulltext"]
        assert schedule["runs"][0]["verdict"] in {"baseline", "ok"}
    shown = scheduled.run("schedule", "list").out
    assert "every 1d" in shown
    assert "fulltext ok" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_list_says_what_became_of_a_slot_that_started_nothing(scheduled: Project) -> None:
    rows(
        scheduled,
        "INSERT INTO recallwatch.schedule_slot (schedule, due_at, outcome, reason)"
        " VALUES ('a', date_trunc('day', now(), 'UTC'), 'skipped', 'batch 7 was not finished')"
        " RETURNING 1",
    )
    a, b, c, d = SCHEDULES
    off = {**d, "name": "e", "enabled": False}
    some = json.dumps([a, {**b, "grace": "5m"}, c, {**d, "every": "2d"}, off])

    listed = scheduled.json_rows("schedule", "list", RECALLWATCH_SCHEDULE=some)

    notes = [each["note"] for each in listed]
    assert notes[0].startswith("skipped ")
    assert notes[0].endswith(": batch 7 was not finished")
    assert notes[1].startswith("missed ")
    assert notes[1].endswith("neither beat nor a worker ran within 5m of it")
    assert notes[2].startswith("due since ")
    assert notes[3] == "no worker knows it yet: they read recallwatch.toml when they start"
    assert notes[4] == "rests: enabled = false"
    assert listed[4]["next"] is None


def test_a_fresh_project_has_the_weekly_schedule_and_none_when_it_is_turned_off(
    project: Project,
) -> None:
    [weekly] = project.json_rows("schedule", "list")
    assert (weekly["name"], weekly["cron"], weekly["timezone"]) == ("weekly", "0 6 * * 1", "UTC")
    assert weekly["next"].endswith("T06:00:00Z")
    assert (weekly["last"], weekly["batch"], weekly["runs"]) == (None, None, [])

    off = project.run("schedule", "list", RECALLWATCH_SCHEDULE="[]").out
    assert off == "no schedules: schedule = [] in recallwatch.toml\n"


def test_long_names_and_zones_fit_the_screen(project: Project) -> None:
    crowded = [
        {"name": "n" * 100, "cron": "*/15 0-23/2 1-15 1,2,3,4,5,6 MON-FRI",
         "timezone": "America/Argentina/ComodRivadavia"},
    ]  # fmt: skip

    shown = project.run("schedule", "list", RECALLWATCH_SCHEDULE=json.dumps(crowded)).out

    table, _, note = shown.partition("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert "no worker knows it yet" in note


def test_up_says_what_starts_next(project: Project) -> None:
    with project.up() as up:
        line = up.read_line_with("next scheduled batch")

    assert line.startswith("next scheduled batch: weekly, Mon ")
    assert line.endswith(" 06:00 UTC")
