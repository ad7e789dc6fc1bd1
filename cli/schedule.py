"""`recallwatch schedule`: the batches that start by themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click
from rich.text import Text

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import Column, one_line, print_json, table
from cli.report import verdict_text
from cli.servers import open_servers
from db import runs, schedules
from db.models import Run, ScheduleSlot
from db.session import Session
from pipeline.schedules import Schedule, last_due, next_due, to_timedelta
from pipeline.types import SlotOutcome


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a schedule; times are in UTC.

    `last` is its last slot that has a batch, `runs` are that batch's. `note` says what became of a
    later slot, or why there can be none.
    """

    schedule: Schedule
    next_due: datetime | None
    last: ScheduleSlot | None
    runs: Sequence[Run]
    note: str | None


@click.group(cls=OrderedGroup, epilog=examples("recallwatch schedule list"))
def schedule() -> None:
    """Show the batches that start by themselves.

    Schedules stand in recallwatch.toml under [[schedule]]; without any there is one, weekly on
    Monday at 06:00 UTC. Beat and the workers read the file when they start: restart them after a
    change.
    """


@schedule.command(
    "list", epilog=examples("recallwatch schedule list", "recallwatch schedule list --json")
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def list_schedules(context: Context, as_json: bool) -> None:
    """List the schedules with their next and last runs.

    Times are those of the schedule's own zone.
    """
    now = datetime.now(UTC)
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = [_look(session, each, now) for each in context.settings.schedule]
    if as_json:
        print_json([_record(each) for each in found])
        return
    if not found:
        context.console.print("no schedules: schedule = [] in recallwatch.toml")
        return
    columns: list[str | Column] = [
        Column("schedule", max_width=20), Column("when", wrap=True), "next", "last",
        Column("batch", right=True), Column("verdict", wrap=True),
    ]  # fmt: skip
    context.console.print(table(None, columns, [row for each in found for row in _rows(each)]))
    for each in found:
        if each.note:
            context.console.print(f"\n{each.schedule.name}: {one_line(each.note)}", soft_wrap=True)


def _look(session: Session, schedule: Schedule, now: datetime) -> Seen:
    last = schedules.latest(session, schedule.name, outcome=SlotOutcome.STARTED)
    return Seen(
        schedule=schedule,
        next_due=next_due(schedule, now) if schedule.enabled else None,
        last=last,
        runs=runs.of_batch(session, last.batch_id) if last and last.batch_id else [],
        note=_note(session, schedule, now),
    )


def _note(session: Session, schedule: Schedule, now: datetime) -> str | None:
    if not schedule.enabled:
        return "rests: enabled = false"
    since = schedules.seen_at(session, schedule.name, schedule.rule)
    if since is None:
        return "no worker knows it yet: they read recallwatch.toml when they start"
    due = last_due(schedule, now)
    if due is not None and due > since and schedules.find(session, schedule.name, due) is None:
        when = _local(schedule, due)
        if now > due + to_timedelta(schedule.grace):
            return f"missed {when}: neither beat nor a worker ran within {schedule.grace} of it"
        return f"due since {when}: starts when beat and a worker run"
    latest = schedules.latest(session, schedule.name)
    if latest is None or latest.outcome == SlotOutcome.STARTED:
        return None
    return f"{latest.outcome} {_local(schedule, latest.due_at)}: {latest.reason}"


def _rows(seen: Seen) -> list[list[object]]:
    """Return a row for each run of the last batch, the first with the schedule itself."""
    schedule, last = seen.schedule, seen.last
    verdicts = [Text.assemble(f"{run.strategy} ", verdict_text(run)) for run in seen.runs]
    first: list[object] = [
        schedule.name,
        schedule.rule,
        _local(schedule, seen.next_due) if seen.next_due else None,
        _local(schedule, last.due_at) if last else None,
        last.batch_id if last else None,
        verdicts[0] if verdicts else None,
    ]
    return [first, *([*[""] * 5, verdict] for verdict in verdicts[1:])]


def _record(seen: Seen) -> dict[str, object]:
    schedule, last = seen.schedule, seen.last
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "every": schedule.every,
        "timezone": schedule.timezone,
        "enabled": schedule.enabled,
        "next": seen.next_due,
        "last": last.due_at if last else None,
        "batch": last.batch_id if last else None,
        "runs": [
            {"id": run.id, "strategy": run.strategy, "status": run.status, "verdict": run.verdict}
            for run in seen.runs
        ],
        "note": seen.note,
    }


def _local(schedule: Schedule, moment: datetime) -> str:
    return f"{moment.astimezone(schedule.zone):%Y-%m-%d %H:%M}"
