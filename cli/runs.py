"""`recallwatch runs`: what was measured before."""

from typing import Any

import click

from cli.context import Context, pass_context
from cli.lazy import LazyCommand, OrderedGroup, examples
from cli.output import Column, print_json, table
from cli.records import result_record, run_record
from cli.report import groups_table, misses_table, mixes_sources, print_run, verdict_text
from cli.servers import open_servers
from cli.trend import trend
from db import results
from db import runs as stored
from db.models import Run

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch runs list --strategy hybrid",
        "recallwatch runs show 12 --failures --by category",
        "recallwatch runs trend --metric recall --last 52",
        "recallwatch runs export 12 --output run-12.jsonl",
        "recallwatch runs cancel 13",
        "recallwatch runs resume 13",
    ),
)
def runs() -> None:
    """List, show, chart and export runs; cancel and resume them."""


@runs.command("list", epilog=examples("recallwatch runs list --set faq --limit 5 --json"))
@click.option("--set", "set_name", metavar="NAME", help="Only this golden set.")
@click.option("-s", "--strategy", metavar="NAME", help="Only this strategy.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@json_option
@pass_context
def list_runs(
    context: Context, set_name: str | None, strategy: str | None, limit: int, as_json: bool
) -> None:
    """List the newest runs first."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.recent(session, set_name=set_name, strategy=strategy, limit=limit)
        if as_json:
            print_json([run_record(each) for each in found])
            return
        columns: list[str | Column] = [
            Column("run", right=True), "when", "set", "strategy", Column("k", right=True),
            Column("scored", right=True), Column("recall", right=True),
            Column("ndcg", right=True), "verdict",
        ]  # fmt: skip
        rows = [_row(each) for each in found]
        context.console.print(table(None, columns, rows) if rows else "no runs yet")


def _row(found: stored.RunContext) -> list[object]:
    run, metrics = found.run, found.run.metrics or {}
    shown = [metrics.get(f"{name}@{run.k}") for name in ("recall", "ndcg")]
    scored = None if run.n_scored is None else f"{run.n_scored}/{run.size}"
    return [
        run.id, run.created_at.astimezone().strftime("%m-%d %H:%M"), found.version.set_name,
        run.strategy, f"{run.k}{'d' if run.level == 'document' else ''}", scored,
        *(None if value is None else f"{value:.3f}" for value in shown), verdict_text(run),
    ]  # fmt: skip


@runs.command("show", epilog=examples(
    "recallwatch runs show 12", "recallwatch runs show 12 --lost --failures",
    "recallwatch runs show 12 --by tenant --json",
))  # fmt: skip
@click.argument("run_id", metavar="RUN", type=int)
@click.option("--failures", is_flag=True, help="List the questions without a hit, and failed ones.")
@click.option("--lost", is_flag=True, help="List the questions that the reference had a hit for.")
@click.option(
    "--by", type=click.Choice(["category", "tenant", "source"]), help="Metrics for each group."
)
@click.option("--cutoffs", is_flag=True, help="All metrics at every cutoff.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    metavar="N",
    help="Questions to list.",
)
@json_option
@pass_context
def show_run(
    context: Context,
    run_id: int,
    failures: bool,
    lost: bool,
    by: str | None,
    cutoffs: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show one run: metrics, verdict, comparison, and what it lost."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.get(session, run_id)
        missed = results.misses(session, found.run, limit=limit) if failures else None
        gone = _lost(session, found.run, limit) if lost else None
    if as_json:
        print_json(_record(found, missed, gone))
        return
    print_run(context.console, found, cutoffs=cutoffs)
    if by is not None and not (by == "source" and mixes_sources(found.run)):
        groups = getattr(found.run, f"by_{by}") or {}
        empty = f"no question of this run has a {by}"
        context.console.print(groups_table(found.run, by, groups) if groups else empty)
    reference = found.run.compared_to
    since = f"lost since run {reference}" if reference else "lost (no run to compare with)"
    for title, rows in (("without a hit", missed), (since, gone)):
        if rows is not None:
            listed = misses_table(found.run, rows, title=title) if rows else f"{title}: none"
            context.console.print(listed)


def _lost(session: Any, run: Run, limit: int) -> Any:  # noqa: ANN401 - rows of db.comparisons
    if run.compared_to is None:
        return []
    reference = stored.get(session, run.compared_to).run
    from db import comparisons

    return comparisons.lost(session, run, reference, limit=limit)


def _record(found: stored.RunContext, missed: Any, gone: Any) -> dict[str, Any]:  # noqa: ANN401 - rows
    record = run_record(found)
    if missed is not None:
        record["failures"] = [result_record(found.run, row) for row in missed]
    if gone is not None:
        record["lost"] = [
            {"position": row.position, "question": row.text, "first_rank": row.first_rank,
             "previous_first_rank": row.was_rank, "retrieved": row.retrieved,
             "previous_retrieved": row.was_retrieved}
            for row in gone
        ]  # fmt: skip
    return record


runs.add_command(trend)
for _name, _target, _help in (
    ("export", "cli.run_export:export_run", "Write a run's results for other programs."),
    ("cancel", "cli.run_changes:cancel", "End queued and running runs."),
    ("resume", "cli.run_changes:resume", "Let a failed or cancelled run go on."),
    ("retry-failed", "cli.run_changes:retry_failed", "Ask the failed questions of a run again."),
):
    runs.add_command(LazyCommand(_name, _target, _help))
