"""`recallwatch compare`: any two runs, question by question."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.table import Table

from cli.changes import change_rows, ranks
from cli.context import Context, pass_context
from cli.lazy import examples
from cli.markdown import changes_table, question_list
from cli.notes import comparison_notes, latency_notes
from cli.output import Column, print_json, table
from cli.report import shorten, wider_note, with_note
from cli.servers import open_servers
from db import comparisons, runs
from db.models import Run
from pipeline.errors import UsageError
from pipeline.verdict.compare import Comparison

MOST_GROUPS = 5
"""Groups of each kind that are shown; --json has them all."""

COMPARED = ("k", "level", "relevance_threshold", "convention")


@click.command(
    epilog=examples(
        "recallwatch compare 12 15",
        "recallwatch compare 13 14 --limit 20 --markdown",
    )
)
@click.argument("run_a", metavar="RUN_A", type=int)
@click.argument("run_b", metavar="RUN_B", type=int)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Lost and won questions to list, each.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def compare(
    context: Context, run_a: int, run_b: int, limit: int, markdown: bool, as_json: bool
) -> None:
    """Compare run B with run A: what changed from A to B, and for which questions.

    The runs may be of one strategy at two times, or of two strategies; they must have k, level and
    conventions in common. Only questions that are the same in both are compared.
    """
    with open_servers(context) as opened, opened.work.database.begin() as session:
        before, after = (runs.get(session, each).run for each in (run_a, run_b))
        _check(before, after)
        found = comparisons.compare(session, after, before)
        moved = {
            "lost": comparisons.lost(session, after, before, limit=limit),
            "won": comparisons.won(session, after, before, limit=limit),
        }
    if as_json:
        listed = {f"{name}_questions": [*map(_record, rows)] for name, rows in moved.items()}
        print_json(found.to_json() | listed | _latency(before, after))
    elif markdown:
        click.echo(_markdown(after, found, moved))
    else:
        _print(context, before, after, found, moved)


def _check(before: Run, after: Run) -> None:
    for name in COMPARED:
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            raise UsageError(
                f"run {before.id} has {name} {one} and run {after.id} has {other}: they cannot be"
                " compared"
            )
    for run in (before, after):
        if run.metrics is None:
            raise UsageError(f"run {run.id} is {run.status}: there is nothing to compare")


def _record(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row of db.comparisons
    """Return one question's move; `entered` are the keys that came into the ranking."""
    return {
        "position": row.position,
        "question": row.text,
        "first_rank_before": row.was_rank,
        "first_rank": row.first_rank,
        "entered": [key for key in row.retrieved if key not in set(row.was_retrieved)],
        "left": [key for key in row.was_retrieved if key not in set(row.retrieved)],
    }


def _print(
    context: Context, before: Run, run: Run, found: Comparison, moved: dict[str, Any]
) -> None:
    for note in (*_notes(found), *latency_notes(_latency(before, run))):
        context.console.print(note, soft_wrap=True)
    figures = (f"run {found.reference}", f"run {run.id}", "difference", "95 % interval", "p")
    columns: list[str | Column] = ["metric", *(Column(name, right=True) for name in figures)]
    if rows := change_rows(run.k, found.changes):
        context.console.print(table(None, columns, rows))
    if groups := _groups(found):
        context.console.print()
        context.console.print(groups)
    for name, questions in moved.items():
        if questions:
            context.console.print()
            context.console.print(_moves(name, questions, run.k))


def _latency(before: Run, run: Run) -> dict[str, Any]:
    """Return how long a search took in either run."""
    now, then = (each.latency or {} for each in (run, before))
    return {"search_ms": now.get("search_ms"), "search_ms_before": then.get("search_ms")}


def _notes(found: Comparison) -> Iterator[str]:
    """Say what the comparison rests on, and what exact search and the index have to do with it."""
    yield from comparison_notes(f"run {found.reference}", found.to_json())
    exact = found.exact
    if exact is not None:
        yield (
            f"exact search: hits lost {exact.lost}, won {exact.won} of {exact.shared}; index loss"
            f" {100 * exact.loss_before:.1f} -> {100 * exact.loss_now:.1f} points of recall"
        )


def _groups(found: Comparison) -> Table | None:
    """Return the categories, tenants and sources that fell most; None: there are no groups."""
    kinds = {"category": found.categories, "tenant": found.tenants, "source": found.sources}
    rows: list[list[object]] = [
        [kind, group.name, f"{group.difference:+.4f}", group.n]
        for kind, groups in kinds.items()
        for group in groups[:MOST_GROUPS]
    ]
    if not rows:
        return None
    metric = next(group.metric for groups in kinds.values() for group in groups)
    figures = [Column(metric, right=True), Column("questions", right=True)]
    return table("by group, the worst first", ["group", Column("name", wrap=True), *figures], rows)


def _moves(name: str, rows: Sequence[Any], k: int) -> Table:
    columns: list[str | Column] = [Column("question", wrap=True), Column("rank before", right=True),
               Column("after", right=True), Column("came in", wrap=True, max_width=24)]  # fmt: skip
    moved = [ranks(name, row, k) for row in rows]
    entered = [", ".join(_record(row)["entered"][:2]) or None for row in rows]
    cells = [
        [shorten(row.text), *pair, keys]
        for row, pair, keys in zip(rows, moved, entered, strict=True)
    ]
    note = wider_note(itertools.chain(*moved), k)
    return with_note(table(name, columns, cells), note)


def _markdown(run: Run, found: Comparison, moved: dict[str, Any]) -> str:
    """Return the same as Markdown, for a comment on a pull request."""
    lines = changes_table(run, found)
    for name, rows in moved.items():
        lines += ["", f"{name}:", "", *question_list(name, rows, run.k)] if rows else []
    return "\n".join(lines)
