"""`recallwatch baseline`: the runs that others are held against for good."""

import click

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import Column, print_json, table
from cli.person import user
from cli.servers import open_servers
from db import baselines, runs


@click.group(
    cls=OrderedGroup,
    epilog=examples("recallwatch baseline pin 12", "recallwatch baseline list"),
)
def baseline() -> None:
    """Pin runs that every later one is compared with.

    Compared with the run before alone, small drops add up unseen. A pinned run does not move.
    """


@baseline.command(epilog=examples("recallwatch baseline pin 12"))
@click.argument("run_id", metavar="RUN", type=int)
@pass_context
def pin(context: Context, run_id: int) -> None:
    """Compare later runs of the same set, strategy, k and level with this one too."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = runs.get(session, run_id)
        baselines.pin(session, found, by=user())
    context.console.print(f"run {run_id} is the baseline of {_place(found)}", soft_wrap=True)


@baseline.command(epilog=examples("recallwatch baseline unpin 12"))
@click.argument("run_id", metavar="RUN", type=int)
@pass_context
def unpin(context: Context, run_id: int) -> None:
    """Take a run's pin away."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        baselines.unpin(session, run_id)
    context.console.print(f"run {run_id} is no baseline any more")


@baseline.command("list", epilog=examples("recallwatch baseline list --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def list_pins(context: Context, as_json: bool) -> None:
    """List the pinned runs."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = baselines.pinned(session)
    if as_json:
        print_json([
            {"run": pin.run.id, "set": pin.baseline.set_name, "strategy": pin.baseline.strategy,
             "k": pin.baseline.k, "level": pin.baseline.level, "pinned_at": pin.baseline.pinned_at,
             "pinned_by": pin.baseline.pinned_by, "metrics": pin.run.metrics}
            for pin in found
        ])  # fmt: skip
        return
    columns: list[str | Column] = [
        Column("run", right=True), "set", "strategy", Column("k", right=True), "level",
        Column("recall", right=True), "pinned",
    ]  # fmt: skip
    rows = [_row(pin) for pin in found]
    context.console.print(table(None, columns, rows) if rows else "no run is pinned")


def _row(pin: baselines.Pinned) -> list[object]:
    place, run = pin.baseline, pin.run
    recall = (run.metrics or {}).get(f"recall@{run.k}")
    shown = None if recall is None else f"{recall:.4f}"
    day = place.pinned_at.astimezone().strftime("%Y-%m-%d")
    return [run.id, place.set_name, place.strategy, place.k, place.level, shown, day]


def _place(found: runs.RunContext) -> str:
    run = found.run
    return f"{found.version.set_name}, {run.strategy}, k={run.k}, {run.level}s"
