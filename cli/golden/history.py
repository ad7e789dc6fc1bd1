"""`recallwatch golden versions`, `diff`, `edits` and `undo`: what became of a set."""

from collections import Counter
from collections.abc import Iterator

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.report import shorten
from cli.servers import open_servers
from db import edits as stored
from db import golden_history
from db.golden_history import QuestionDiff

limit_option = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N"
)


@click.command("versions", epilog=examples("recallwatch golden versions --set faq"))
@set_option
@limit_option
@json_option
@pass_context
def versions(context: Context, set_name: str | None, limit: int, as_json: bool) -> None:
    """List the versions of a set that runs were evaluated on, the newest first."""
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = golden_history.versions(session, name, limit=limit)
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = [
        Column("version", right=True), "made", Column("questions", right=True),
        Column("runs", right=True), Column("last run", right=True),
    ]  # fmt: skip
    rows = [[v.id, f"{v.created_at.astimezone():%Y-%m-%d %H:%M}", v.size, v.runs, v.last_run]
            for v in found]  # fmt: skip
    none = f"golden set {name} was never evaluated: run recallwatch eval"
    context.console.print(table(None, columns, rows) if rows else none)


@click.command("diff", epilog=examples(
    "recallwatch golden diff 3 4", "recallwatch golden diff 4 --json",
))  # fmt: skip
@click.argument("first", metavar="V1", type=int)
@click.argument("second", metavar="[V2]", type=int, required=False)
@limit_option
@json_option
@pass_context
def diff(context: Context, first: int, second: int | None, limit: int, as_json: bool) -> None:
    """Show what changed from version V1 to V2, or to the set as it is now."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = list(golden_history.diff(session, first, second))
    if as_json:
        print_json({"first": first, "second": second, "questions": found})
        return
    counts = Counter(each.change for each in found)
    until = "now" if second is None else f"version {second}"
    context.console.print(
        f"from version {first} to {until}: {counts['added']} questions added,"
        f" {counts['removed']} removed, {counts['changed']} changed",
        soft_wrap=True,
    )
    columns: list[str | Column] = [
        Column("question", right=True), "change", Column("what", wrap=True),
    ]  # fmt: skip
    rows = [[each.question_id, each.change, "; ".join(_what(each))] for each in found[:limit]]
    if rows:
        context.console.print(table(None, columns, rows))
    if len(found) > limit:
        context.console.print(f"and {len(found) - limit} more; --json lists all")


def _what(each: QuestionDiff) -> Iterator[str]:
    """Yield what differs, a phrase each."""
    if each.change != "changed":
        yield shorten(each.text)
    for name, (was, now) in each.fields.items():
        yield f"{name}: {shorten(str(was))} -> {shorten(str(now))}"
    for key, (grade, now) in each.keys.items():
        if grade is None:
            yield f"+ {key} (grade {now})"
        elif now is None:
            yield f"- {key}"
        else:
            yield f"{key}: grade {grade} -> {now}"


@click.command("edits", epilog=examples("recallwatch golden edits --limit 5"))
@set_option
@limit_option
@json_option
@pass_context
def edits(context: Context, set_name: str | None, limit: int, as_json: bool) -> None:
    """List reviews and remaps of a set, the newest first: who did them, and when."""
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.recent(session, name, limit=limit)
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = [
        Column("edit", right=True), "what", Column("questions", right=True), "when", "by", "undone",
    ]  # fmt: skip
    rows = [
        [e.id, e.action, e.questions, f"{e.edited_at.astimezone():%Y-%m-%d %H:%M}", e.edited_by,
         f"{e.undone_at.astimezone():%Y-%m-%d %H:%M}" if e.undone_at else None]
        for e in found
    ]  # fmt: skip
    none = f"golden set {name} was never edited"
    context.console.print(table(None, columns, rows) if rows else none)


@click.command("undo", epilog=examples("recallwatch golden undo 7"))
@click.argument("edit_id", metavar="EDIT", type=int)
@json_option
@pass_context
def undo(context: Context, edit_id: int, as_json: bool) -> None:
    """Put the questions of an edit back as they were; later edits of them must be undone first."""
    from cli.person import person

    with open_servers(context) as opened, opened.work.database.begin() as session:
        questions = stored.undo(session, edit_id, by=person())
    if as_json:
        print_json({"edit": edit_id, "questions": questions})
        return
    context.console.print(f"edit {edit_id} is undone: {questions} questions are as before")
