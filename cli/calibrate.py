"""`recallwatch calibrate`: how noisy the measurement itself is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from cli.calibrations import calibration_record, calibrations_table, meaning
from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.options import what_to_evaluate
from cli.output import print_json, progress
from cli.servers import open_servers

if TYPE_CHECKING:
    from db.models import Calibration
    from workers.calibrating import Choice, Measured

LEAST_PAIRS = 4
REBUILT_PAIRS = 12
"""With --reindex: builds differ as a whole, and five rounds tell roughly by how much."""


@click.group(
    cls=OrderedGroup,
    invoke_without_command=True,
    epilog=examples(
        "recallwatch calibrate",
        "recallwatch calibrate --strategy vector --reindex",
        "recallwatch calibrate list",
    ),
)
@what_to_evaluate("calibrate")
@click.option(
    "--pairs",
    type=click.IntRange(LEAST_PAIRS),
    metavar="N",
    help=f"Measure N + 1 times; each two in a row are a pair. Default: {LEAST_PAIRS}, and"
    f" {REBUILT_PAIRS} with --reindex.",
)
@click.option(
    "--reindex",
    is_flag=True,
    help="Rebuild the vector index between measurements: only on recallwatch's own table, or"
    " where [corpus] staging = true.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
@pass_context
def calibrate(
    context: Context,
    ctx: click.Context,
    strategies: Sequence[str],
    set_name: str | None,
    k: int | None,
    level: str | None,
    pairs: int | None,
    reindex: bool,
    as_json: bool,
) -> None:
    """Measure the same thing again and again, to know what is noise.

    A verdict takes a drop for real when an unchanged system would hardly show it. Without
    --reindex that is told of runs between which the index stayed; with it, also of runs between
    which it was rebuilt. Runs in this process, without workers; no run is recorded.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return
    from workers.calibrating import choose
    from workers.enqueue import Request

    request = Request(strategies=strategies or None, set_name=set_name, k=k, level=level)
    # A wrong option is told before any server starts.
    choice = choose(context.settings, request, reindex=reindex)
    usual = REBUILT_PAIRS if reindex else LEAST_PAIRS
    measured, stored = _calibrate(context, choice, pairs or usual)
    gate = context.settings.gate
    if as_json:
        print_json({
            "calibrations": [calibration_record(each, gate) for each in stored],
            "skipped": list(choice.deterministic),
            "left_out": {each.run.strategy: each.failed for each in measured},
        })  # fmt: skip
        return
    context.console.print(calibrations_table(stored, gate))
    context.console.print()
    for each in stored:
        context.console.print(meaning(each, gate), soft_wrap=True)


def _refuse_options(ctx: click.Context) -> None:
    """Refuse options before a subcommand, which would be without effect."""
    for name in ctx.params:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"options of `calibrate {ctx.invoked_subcommand}` stand behind it", ctx
            )


def _calibrate(
    context: Context, choice: "Choice", pairs: int
) -> tuple[list["Measured"], list["Calibration"]]:
    from workers.calibrating import measure_rounds, plan, store

    for name in choice.deterministic:
        _note(context, f"{name} is deterministic: needs no calibration, left out")
    with open_servers(context) as opened:
        planned = plan(opened.work, choice, pairs=pairs)
        for warning in planned.warnings:
            _note(context, f"warning: {warning}")
        if planned.index is not None:
            _note(context, f"rebuilds index {planned.index.name} of {planned.table} {pairs} times")
        with progress("calibrating", planned.total) as bar:
            measured = measure_rounds(opened.work, planned, bar.advance)
        stored = store(opened.work, planned, measured)
    for each in measured:
        if each.failed:
            _note(
                context,
                f"warning: {each.run.strategy}: {each.failed} questions failed in a round and are"
                " left out",
            )
    return measured, stored


def _note(context: Context, text: str) -> None:
    context.err.print(text, soft_wrap=True)


@calibrate.command("list", epilog=examples("recallwatch calibrate list --strategy vector --json"))
@click.option("--set", "set_name", metavar="NAME", help="Only this golden set.")
@click.option("-s", "--strategy", metavar="NAME", help="Only this strategy.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def list_calibrations(
    context: Context, set_name: str | None, strategy: str | None, limit: int, as_json: bool
) -> None:
    """List the newest calibrations first, and say which are stale."""
    from db import calibrations
    from workers.calibrating import stale

    with open_servers(context) as opened:
        with opened.work.database.begin() as session:
            found = calibrations.recent(session, set_name=set_name, strategy=strategy, limit=limit)
        reasons = stale(opened.work, found) if found else []
    gate = context.settings.gate
    if as_json:
        print_json([
            calibration_record(each, gate) | {"stale": why}
            for each, why in zip(found, reasons, strict=True)
        ])  # fmt: skip
        return
    if not found:
        context.console.print("no calibration yet")
        return
    context.console.print(calibrations_table(found, gate))
    for each, why in zip(found, reasons, strict=True):
        if why:
            line = f"stale: {each.id} ({each.strategy}): {', '.join(why)}"
            context.console.print(line, soft_wrap=True)
