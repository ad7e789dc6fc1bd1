"""`recallwatch eval`: the main command."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from cli.context import Context, pass_context
from cli.following import SHOWN_MISSES, exit_code, follow, print_records, show
from cli.lazy import examples
from cli.options import Number, waiting, what_to_evaluate
from cli.output import print_json
from cli.servers import Opened, open_servers
from pipeline.types import Trigger
from workers.enqueue import Request, StartedBatch, resolve
from workers.enqueue import start as start_batch


@click.command(
    "eval",
    epilog=examples(
        "recallwatch eval",
        "recallwatch eval --strategy vector --strategy hybrid --k 5",
        "recallwatch eval --set faq --level document --max-drop 0.05",
        "recallwatch eval --no-wait --json",
        "recallwatch eval --ci --junit recallwatch.xml",
    ),
)
@what_to_evaluate("evaluate")
@click.option(
    "--max-drop",
    type=float,
    metavar="SHARE",
    help="Judge by the plain rule: the largest drop that passes. Default: [gate] rule.",
)
@click.option(
    "--max-cost",
    type=Number(0),
    metavar="DOLLARS",
    help="US dollars that embedding may cost. Default: [embedding] max_cost.",
)
@click.option(
    "--misses",
    type=click.IntRange(0),
    default=SHOWN_MISSES,
    show_default=True,
    metavar="N",
    help="Questions without a hit to list for each strategy.",
)
@waiting(by_default=True)
@click.option(
    "--ci",
    is_flag=True,
    help="For CI jobs: print annotations, append to $GITHUB_STEP_SUMMARY where it is set.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write JUnit XML: a test for each rule and each must-pass question.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the run records as JSON.")
@pass_context
def eval_command(
    context: Context,
    strategies: Sequence[str],
    set_name: str | None,
    k: int | None,
    level: str | None,
    max_drop: float | None,
    max_cost: float | None,
    misses: int,
    wait: bool,
    start: bool,
    timeout: float | None,
    ci: bool,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Evaluate retrieval on a golden set and compare with the last run.

    Queues one run a strategy, waits for the workers, and prints each metric beside that of the
    last run of the same set, strategy, k and level. Exit code 1 says that retrieval regressed.
    """
    from cli.ci import requester
    from cli.git import current_commit
    from cli.reports import Reports

    if junit is not None and not wait:
        raise click.UsageError("--junit reports the verdict, which --no-wait does not wait for")
    trigger, requested_by = (Trigger.CI, requester()) if ci else (Trigger.MANUAL, None)
    request = Request(
        strategies=strategies or None, set_name=set_name, k=k, level=level, max_drop=max_drop,
        trigger=trigger, requested_by=requested_by, git_sha=current_commit(),
        max_cost=max_cost,
    )  # fmt: skip
    reports = Reports(annotate=ci, junit=junit, as_json=as_json, err=context.err)
    with reports.open():
        # A wrong option is told before any server starts.
        resolve(context.settings, request)
        with open_servers(context) as opened:
            started = queue(context.err, opened, request)
            if not wait:
                announce(context.console, started, as_json=as_json)
                return
            found = follow(opened, started.run_ids, start=start, timeout=timeout)
            if as_json:
                print_records(found)
            else:
                with reports.quoted():
                    show(context.console, opened.work, found, misses=misses)
            reports.write(opened.work, found)
    click.get_current_context().exit(exit_code(found))


def queue(err: Console, opened: Opened, request: Request) -> StartedBatch:
    """Start the batch and print its warnings to standard error.

    What earlier commands left undone is rung first, so that it goes on too.
    """
    from workers.sweeping import sweep

    sweep(opened.work)
    started = start_batch(opened.work, request)
    for warning in started.warnings:
        err.print(f"warning: {warning}", soft_wrap=True)
    if started.estimate is not None and started.estimate.cost > 0:
        err.print(str(started.estimate), soft_wrap=True)
    return started


def announce(console: Console, started: StartedBatch, *, as_json: bool) -> None:
    """Say what was queued."""
    if as_json:
        print_json({"batch": started.batch_id, "runs": started.run_ids})
        return
    ids = ", ".join(map(str, started.run_ids))
    console.print(
        f"queued run {ids} (batch {started.batch_id}, {started.size} questions each);"
        f" see: recallwatch runs show {started.run_ids[0]}",
        soft_wrap=True,
    )
