"""`recallwatch golden stats`: what a set is made of, and what it can show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.servers import open_servers
from pipeline.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from db.golden_stats import SetStats
    from workers.set_stats import Visible

MOST_VALUES = 8
"""Values of a column that are listed; --json has them all."""


@click.command("stats", epilog=examples(
    "recallwatch golden stats", "recallwatch golden stats --set faq --no-corpus --json",
))  # fmt: skip
@set_option
@click.option(
    "--no-corpus", is_flag=True, help="Do not look for near-duplicates of the expected chunks."
)
@json_option
@pass_context
def stats(context: Context, set_name: str | None, no_corpus: bool, as_json: bool) -> None:
    """Count a set by status, source, category, tenant and language, and say what it can show.

    Says how old the judgments are, the smallest drop that so many questions can tell from chance,
    and what weakens the set: too few questions, in all or in a category, and chunks that say the
    same as the one that a question expects.
    """
    from db import golden_stats
    from db.session import allow_idling
    from workers.set_stats import near_duplicates_of, visible, warnings

    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        # The corpus is asked meanwhile, which may take its time.
        allow_idling(session, context.settings.queue.deadline)
        found = golden_stats.of_set(session, name)
        if found is None:
            raise InputError(
                f"golden set {name!r} has no question; see: recallwatch golden list --sets"
            )
        near = None if no_corpus else near_duplicates_of(opened.work, session, found)
        drops = visible(opened.work, session, found)
    warned = warnings(found, near)
    if as_json:
        print_json(_record(found) | {"smallest_drop": drops, "near_duplicates": near,
                                     "warnings": warned})  # fmt: skip
        return
    for line in _lines(found, drops):
        context.console.print(line, soft_wrap=True)
    context.console.print()
    context.console.print(_groups(found))
    for warning in warned:
        context.err.print(f"warning: {warning}", soft_wrap=True)


def _record(found: "SetStats") -> dict[str, Any]:
    """Return the counts; values of a column stand in a list, as one of them may be no value."""
    counts = {each.name: getattr(found, each.name) for each in fields(found)}
    groups = {
        column: [{"value": value, "questions": n} for value, n in values.items()]
        for column, values in found.groups.items()
    }
    return counts | {"active": found.active, "groups": groups}


def _lines(found: "SetStats", drops: "Sequence[Visible]") -> Iterator[str]:
    statuses = ", ".join(f"{n:,} {status}" for status, n in found.by_status.items())
    yield f"golden set {found.set_name}: {statuses}"
    yield (
        f"active: {found.answerable:,} answerable, {found.must_pass:,} must pass,"
        f" {found.one_key:,} of one key, {found.reviewed:,} reviewed"
    )
    yield from _judgments(found)
    for each in drops:
        yield _drop(each)


def _judgments(found: "SetStats") -> Iterator[str]:
    judged = found.judgments
    yield (
        f"judgments: {judged.count:,}, {judged.graded:,} graded, {judged.with_evidence:,} with the"
        " text that was judged"
    )
    if judged.oldest and judged.median:
        older = ", ".join(f"{n:,} over {days}" for days, n in judged.older_than.items())
        yield (
            f"age of judgments in days: median {_days(judged.median)}, oldest"
            f" {_days(judged.oldest)}; {older}"
        )


def _days(moment: datetime) -> int:
    return (datetime.now(UTC) - moment).days


def _drop(each: "Visible") -> str:
    from pipeline.verdict.visible import AT_95

    points = "no drop" if each.points is None else f"{each.points:.1f} points"
    if each.strategy is not None:
        return f"  by the gate, with the noise calibrated for {each.strategy}: {points}"
    if each.alpha == AT_95:
        return f"smallest drop this set can show at 95 %: {points} of hit rate (80 % power)"
    return f"  by the gate, at alpha {each.alpha:g}: {points}"


def _groups(found: "SetStats") -> "Table":
    rows: list[list[object]] = []
    for column, values in found.groups.items():
        rows += _rows(column, values)
    columns: list[str | Column] = [
        "active by", Column("value", wrap=True), Column("questions", right=True),
        Column("share", right=True),
    ]  # fmt: skip
    return table(None, columns, rows)


def _rows(column: str, values: Mapping[str | None, int]) -> Iterator[list[object]]:
    total = sum(values.values())
    shown = list(values.items())[:MOST_VALUES]
    for number, (value, n) in enumerate(shown):
        yield [column if number == 0 else "", value, f"{n:,}", f"{100 * n / total:.0f} %"]
    rest = total - sum(n for _, n in shown)
    if rest:
        others = f"{len(values) - len(shown)} more"
        yield ["", others, f"{rest:,}", f"{100 * rest / total:.0f} %"]
