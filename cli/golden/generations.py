"""`recallwatch golden generations`: what was asked of the model; resume it, or cancel it."""

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option
from cli.lazy import OrderedGroup, examples
from cli.options import Number, is_waited_for, waiting
from cli.output import Column, print_json, table
from cli.servers import open_servers

FAILED = 3

_id = click.argument("generation_id", metavar="ID", type=int)


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch golden generations list",
        "recallwatch golden generations show 3",
        "recallwatch golden generations resume 3 --max-cost 5",
        "recallwatch golden generations cancel 3",
    ),
)
def generations() -> None:
    """List and show generations; resume and cancel them."""


@generations.command("list", epilog=examples("recallwatch golden generations list --set faq"))
@click.option("--set", "set_name", metavar="NAME", help="Only this golden set.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@json_option
@pass_context
def list_generations(context: Context, set_name: str | None, limit: int, as_json: bool) -> None:
    """List the newest generations first."""
    from cli.golden.generation_report import record
    from db import generations as stored
    from db.generation_figures import figures
    from pipeline.embedding.pricing import dollars

    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.recent(session, set_name=set_name, limit=limit)
        seen = {each.id: figures(session, each.id) for each in found}
    if as_json:
        print_json([record(each, seen[each.id]) for each in found])
        return
    columns: list[str | Column] = [
        Column("generation", right=True), "when", "set", "status", Column("requests", right=True),
        Column("kept", right=True), Column("rejected", right=True), Column("spent", right=True),
    ]  # fmt: skip
    rows = [
        [each.id, each.created_at.astimezone().strftime("%m-%d %H:%M"), each.set_name,
         each.status, f"{seen[each.id].counts.over}/{seen[each.id].counts.asked_for}",
         seen[each.id].counts.candidates.get("kept", 0),
         seen[each.id].counts.candidates.get("rejected", 0), dollars(each.spent)]
        for each in found
    ]  # fmt: skip
    context.console.print(table(None, columns, rows) if rows else "no generations yet")


@generations.command("show", epilog=examples("recallwatch golden generations show 3 --json"))
@_id
@json_option
@pass_context
def show_generation(context: Context, generation_id: int, as_json: bool) -> None:
    """Show what a generation asked for, cost and gave, and what was rejected."""
    from cli.golden.generation_report import report

    with open_servers(context) as opened:
        report(context, opened, generation_id, as_json=as_json)


@generations.command("resume", epilog=examples(
    "recallwatch golden generations resume 3",
    "recallwatch golden generations resume 3 --ask-again",
))  # fmt: skip
@_id
@click.option(
    "--max-cost", type=Number(0), metavar="DOLLARS",
    help="A new cap, for all that the generation costs. Default: as it was.",
)  # fmt: skip
@click.option(
    "--ask-again", is_flag=True,
    help="Also send what may have been paid for and has no answer: it may be paid for twice.",
)  # fmt: skip
@waiting(by_default=True, until="until it is finished")
@json_option
@pass_context
def resume_generation(
    context: Context,
    generation_id: int,
    max_cost: float | None,
    ask_again: bool,
    wait: bool,
    start: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Send what failed or was not sent, and filter what was not filtered.

    Nothing that was paid for is asked again, unless --ask-again says so. One of message batches is
    waited for only with --wait.
    """
    from cli.golden.generation_report import report
    from workers.generating import resume

    with open_servers(context) as opened:
        # Celery's app, which this imports, reads where the servers are.
        from cli.golden.generation_waiting import follow

        resumed = resume(opened.work, generation_id, ask_again=ask_again, max_cost=max_cost)
        if resumed.left_out:
            context.err.print(f"warning: {_left_out(resumed.left_out)}", soft_wrap=True)
        waits = is_waited_for(wait, message_batches=resumed.message_batches)
        if waits:
            follow(opened, generation_id, start=start, timeout=timeout)
        completed = report(context, opened, generation_id, as_json=as_json)
    click.get_current_context().exit(0 if completed or not waits else FAILED)


def _left_out(requests: int) -> str:
    many = f"{requests} requests are" if requests > 1 else "1 request is"
    return f"{many} left out: another generation of the set asked for its chunks since"


@generations.command("cancel", epilog=examples("recallwatch golden generations cancel 3"))
@_id
@pass_context
def cancel_generation(context: Context, generation_id: int) -> None:
    """End a generation: nothing more is asked. What was asked is paid for, and kept for resume."""
    with open_servers(context) as opened:
        # Celery's app, which this imports, reads where the servers are.
        from workers.generation import cancel

        for fault in cancel(opened.work, generation_id):
            context.err.print(f"warning: {fault}", soft_wrap=True)
    context.console.print(
        f"generation {generation_id} is cancelled; to take it up again: recallwatch golden"
        f" generations resume {generation_id}",
        soft_wrap=True,
    )
