"""`recallwatch compare`: any two runs, question by question."""

import itertools
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.report import HEADLINE, deeper, shorten, statistics, wider_note, with_note
from cli.servers import open_servers
from db import comparisons, runs
from db.models import Run
from pipeline.errors import UsageError
from pipeline.verdict.compare import Change, Comparison

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
        print_json(found.to_json() | listed)
    elif markdown:
        click.echo(_markdown(after, found, moved))
    else:
        _print(context, after, found, moved)


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


def _print(context: Context, run: Run, found: Comparison, moved: dict[str, Any]) -> None:
    pairing = found.pairing
    context.console.print(
        f"{pairing.shared} shared questions ({pairing.new} new, {pairing.changed} changed,"
        f" {pairing.gone} gone); hits lost {found.lost}, won {found.won}",
        soft_wrap=True,
    )
    figures = (f"run {found.reference}", f"run {run.id}", "difference", "95 % interval", "p")
    columns: list[str | Column] = ["metric", *(Column(name, right=True) for name in figures)]
    if rows := _rows(run, found):
        context.console.print(table(None, columns, rows))
    for name, questions in moved.items():
        if questions:
            context.console.print()
            context.console.print(_moves(name, questions, run.k))


def _rows(run: Run, found: Comparison) -> list[list[object]]:
    wanted = {f"{name}@{run.k}" for name in HEADLINE}
    return [_row(change) for change in found.changes if change.metric in wanted]


def _row(change: Change) -> list[object]:
    return [
        change.metric, f"{change.previous:.4f}", f"{change.current:.4f}",
        f"{change.difference:+.4f}", *statistics(change),
    ]  # fmt: skip


def _ranks(name: str, row: Any, k: int) -> tuple[object, object]:  # noqa: ANN401 - a row of db.comparisons
    """Return the first expected key's rank before and after; on one side it was missed at k."""
    if name == "lost":
        return row.was_rank, deeper(row.first_rank, k)
    return deeper(row.was_rank, k), row.first_rank


def _moves(name: str, rows: Sequence[Any], k: int) -> Table:
    columns: list[str | Column] = [Column("question", wrap=True), Column("rank before", right=True),
               Column("after", right=True), Column("came in", wrap=True, max_width=24)]  # fmt: skip
    ranks = [_ranks(name, row, k) for row in rows]
    entered = [", ".join(_record(row)["entered"][:2]) or None for row in rows]
    cells = [
        [shorten(row.text), *pair, keys]
        for row, pair, keys in zip(rows, ranks, entered, strict=True)
    ]
    note = wider_note(itertools.chain(*ranks), k)
    return with_note(table(name, columns, cells), note)


def _markdown(run: Run, found: Comparison, moved: dict[str, Any]) -> str:
    """Return the same as Markdown, for a comment on a pull request."""
    head = f"| metric | run {found.reference} | run {run.id} | difference | 95 % interval | p |"
    lines = [head, "|---|---:|---:|---:|---:|---:|"]
    lines += ["| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |"
              for row in _rows(run, found)]  # fmt: skip
    for name, rows in moved.items():
        lines += _items(name, rows, run.k) if rows else []
    return "\n".join(lines)


def _items(name: str, rows: Sequence[Any], k: int) -> list[str]:
    """Return a list of questions in Markdown."""
    ranks = [_ranks(name, row, k) for row in rows]
    note = wider_note(itertools.chain(*ranks), k)
    return [
        "", f"{name}:", "",
        *(f"- {_plain(row.text)} ({before or '-'} -> {after or '-'})"
          for row, (before, after) in zip(rows, ranks, strict=True)),
        *(["", _plain(note)] if note else []),
    ]  # fmt: skip


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    escaped = shorten(text)
    for mark in "\\`*_{}[]<>#|":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
