"""`recallwatch runs cancel`, `resume` and `retry-failed`: what a person does to a run."""

from collections.abc import Sequence
from typing import Any

import click

from cli.context import Context, pass_context
from cli.following import SHOWN_MISSES, exit_code, follow, print_records, show
from cli.lazy import examples
from cli.options import waiting
from cli.output import print_json
from cli.person import person
from cli.servers import Opened, open_servers
from db import runs
from db.runs import RunContext
from pipeline.types import RunStatus
from workers import resuming
from workers.context import Context as WorkContext


@click.command(
    epilog=examples(
        "recallwatch runs cancel 12",
        "recallwatch runs cancel 12 13 --json",
        "recallwatch runs cancel --all",
    )
)
@click.argument("run_ids", metavar="[RUN]...", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="Cancel all that are queued or running.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def cancel(context: Context, run_ids: Sequence[int], every: bool, as_json: bool) -> None:
    """End queued and running runs.

    What they measured is kept, and `recallwatch runs resume` lets one go on. A worker that is at a
    shard of one stores nothing more. Nobody is alerted. A run that has ended already stays as it
    is.
    """
    if bool(run_ids) == every:
        raise click.UsageError("name the runs to cancel, or give --all")
    with open_servers(context) as opened:
        asked = _unfinished(opened.work) if every else list(dict.fromkeys(run_ids))
        ended = set(resuming.cancel(opened.work, asked, by=person()))
        with opened.work.database.begin() as session:
            found = [runs.get(session, run_id) for run_id in asked]
            done = {each.run_id: each.done for each in runs.progress(session, asked)}
    if as_json:
        print_json([_record(each, done[each.run.id], ended) for each in found])
        return
    if not found:
        context.console.print("no run is queued or running")
    for each in found:
        line = _line(each, done[each.run.id], cancelled=each.run.id in ended)
        context.console.print(line, soft_wrap=True)


def _unfinished(work: WorkContext) -> list[int]:
    with work.database.begin() as session:
        return runs.unfinished(session)


def _record(found: RunContext, done: int, ended: set[int]) -> dict[str, Any]:
    run = found.run
    return {"run": run.id, "cancelled": run.id in ended, "status": run.status,
            "verdict": run.verdict, "questions": run.size, "measured": done}  # fmt: skip


def _line(found: RunContext, done: int, *, cancelled: bool) -> str:
    run = found.run
    if cancelled:
        return (
            f"run {run.id}: cancelled, {done} of {run.size} questions were measured;"
            f" to go on with it: recallwatch runs resume {run.id}"
        )
    as_what = f" ({run.verdict})" if run.status == RunStatus.COMPLETED else ""
    return f"run {run.id}: not cancelled, for it was {run.status} already{as_what}"


@click.command(
    epilog=examples(
        "recallwatch runs resume 12",
        "recallwatch runs resume 12 --no-wait",
        "recallwatch runs resume 12 --no-start --timeout 600 --json",
    )
)
@click.argument("run_id", metavar="RUN", type=int)
@waiting(by_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the run's record as JSON.")
@pass_context
def resume(
    context: Context, run_id: int, wait: bool, start: bool, timeout: float | None, as_json: bool
) -> None:
    """Let a failed or cancelled run go on.

    Questions that were measured are not asked again; the other shards get all their tries anew. The
    corpus must be as it was when the run was queued: two halves would measure two things.
    """
    with open_servers(context) as opened:
        resuming.resume(opened.work, run_id)
        with opened.work.database.begin() as session:
            [so_far] = runs.progress(session, [run_id])
        goes_on = f"run {run_id} goes on: {so_far.done} of {so_far.size} questions are measured"
        code = _see_to_the_end(context, opened, run_id, goes_on, wait=wait, start=start,
                               timeout=timeout, as_json=as_json)  # fmt: skip
    click.get_current_context().exit(code)


@click.command(
    "retry-failed",
    epilog=examples(
        "recallwatch runs retry-failed 12",
        "recallwatch runs retry-failed 12 --no-wait --json",
    ),
)
@click.argument("run_id", metavar="RUN", type=int)
@waiting(by_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the run's record as JSON.")
@pass_context
def retry_failed(
    context: Context, run_id: int, wait: bool, start: bool, timeout: float | None, as_json: bool
) -> None:
    """Ask the failed questions of a completed run again.

    Whole shards are asked again, so the questions beside the failed ones are too; then the run is
    judged afresh, whatever its verdict was. A run that is
    pinned, or that another was compared with, stays as it is. The corpus must be as it was when the
    run was queued.
    """
    with open_servers(context) as opened:
        failed = resuming.retry_failed(opened.work, run_id)
        questions = "question is" if failed == 1 else "questions are"
        again = f"run {run_id} goes on: {failed} failed {questions} asked again"
        code = _see_to_the_end(context, opened, run_id, again, wait=wait, start=start,
                               timeout=timeout, as_json=as_json)  # fmt: skip
    click.get_current_context().exit(code)


def _see_to_the_end(
    context: Context,
    opened: Opened,
    run_id: int,
    said: str,
    *,
    wait: bool,
    start: bool,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Print what was begun or, after waiting, what came of it; return the exit code."""
    if not as_json:
        context.console.print(f"{said}; see: recallwatch runs show {run_id}", soft_wrap=True)
    if not wait:
        if as_json:
            print_json({"runs": [run_id]})
        return 0
    found = follow(opened, [run_id], start=start, timeout=timeout)
    if as_json:
        print_records(found)
    else:
        context.console.print()
        show(context.console, opened.work, found, misses=SHOWN_MISSES)
    return exit_code(found)
