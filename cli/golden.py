"""`recallwatch golden`: the questions, and the chunks that should come back."""

import sys
from itertools import chain
from pathlib import Path

import click

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.output import Column, print_json, table
from cli.report import shorten
from cli.servers import open_servers
from db import golden as stored
from pipeline.errors import InputError
from pipeline.types import Status

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
set_option = click.option(
    "--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set."
)


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch golden import golden.jsonl",
        "recallwatch golden list --category procedural",
        "recallwatch golden export --output golden.jsonl",
    ),
)
def golden() -> None:
    """Import, list, show and export golden sets."""


@golden.command("import", epilog=examples(
    "recallwatch golden import golden.jsonl",
    "recallwatch golden import golden.jsonl --set faq --replace",
))  # fmt: skip
@click.argument("file", type=click.Path(path_type=Path))
@set_option
@click.option(
    "--replace", is_flag=True, help="Retire the set's questions that the file does not hold."
)
@json_option
@pass_context
def import_set(
    context: Context, file: Path, set_name: str | None, replace: bool, as_json: bool
) -> None:
    """Add a file's questions to a golden set, or bring those it knows up to date.

    FILE holds a JSON object a line: "question", "expected" (chunk key -> grade, or a list of
    keys), and optionally "external_id", "category", "tenant", "language", "source", "must_pass",
    "kind", "notes". All of the file is imported, or nothing.
    """
    from pipeline.golden.duplicates import plan_import
    from pipeline.golden.jsonl import read_questions

    name = set_name or context.settings.eval.set
    plan = plan_import(file, read_questions(file))
    with open_servers(context) as opened, opened.work.database.begin() as session:
        report = stored.import_questions(session, name, plan, replace=replace)
    for warning in plan.warnings():
        context.err.print(f"warning: {warning}", soft_wrap=True)
    if as_json:
        print_json({"set": name, "repeated": plan.repeated.count, "report": report})
        return
    repeated = f", {plan.repeated.count} repeated in the file" if plan.repeated.count else ""
    context.console.print(
        f"golden set {name}: {report.added} added, {report.changed} changed,"
        f" {report.unchanged} unchanged, {report.retired} retired{repeated}",
        soft_wrap=True,
    )


@golden.command("list", epilog=examples(
    "recallwatch golden list", "recallwatch golden list --set faq --tenant acme --json",
))  # fmt: skip
@set_option
@click.option("--sets", is_flag=True, help="List the sets, not the questions of one.")
@click.option("--category", help="Only this category.")
@click.option("--tenant", help="Only this tenant.")
@click.option(
    "--status",
    type=click.Choice([*(s.value for s in Status), "all"]),
    default=Status.ACTIVE.value,
    show_default=True,
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@json_option
@pass_context
def list_questions(
    context: Context,
    set_name: str | None,
    sets: bool,
    category: str | None,
    tenant: str | None,
    status: str,
    limit: int,
    as_json: bool,
) -> None:
    """List a set's questions, or the sets there are."""
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        if sets:
            _show_sets(context, stored.sets(session), as_json=as_json)
            return
        found = list(stored.questions(
            session, name, category=category, tenant=tenant,
            status=None if status == "all" else Status(status), limit=limit,
        ))  # fmt: skip
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = [
        Column("id", right=True), Column("question", wrap=True), "category", "tenant",
        Column("expected", right=True),
    ]  # fmt: skip
    rows = [[q.id, shorten(q.question.text), q.question.category, q.question.tenant,
             len(q.question.expected)] for q in found]  # fmt: skip
    none = f"no such question in golden set {name}; see: recallwatch golden list --sets"
    context.console.print(table(None, columns, rows) if rows else none)


def _show_sets(context: Context, found: list[stored.SetSummary], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = ["set", *(Column(name, right=True) for name in (
        "active", "unanswerable", "other", "judgments", "versions"))]  # fmt: skip
    rows = [[s.set_name, s.active, s.unanswerable, s.other, s.judgments, s.versions]
            for s in found]  # fmt: skip
    context.console.print(table(None, columns, rows) if rows else "no golden sets yet")


@golden.command("show", epilog=examples("recallwatch golden show 17"))
@click.argument("question_id", metavar="ID", type=int)
@json_option
@pass_context
def show_question(context: Context, question_id: int, as_json: bool) -> None:
    """Show one question and its judgments."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.question(session, question_id)
    if as_json:
        print_json(found)
        return
    question = found.question
    facts = {
        "question": question.text, "status": found.status, "kind": question.kind,
        "category": question.category, "tenant": question.tenant, "language": question.language,
        "source": question.source, "must pass": "yes" if question.must_pass else "no",
        "external id": question.external_id, "notes": question.notes,
    }  # fmt: skip
    rows = [[name, value] for name, value in facts.items() if value is not None]
    rows += [["expected", f"{key}  (grade {grade})"] for key, grade in question.expected.items()]
    columns: list[str | Column] = [f"question {found.id}", Column("", wrap=True)]
    context.console.print(table(None, columns, rows))


@golden.command("export", epilog=examples("recallwatch golden export --output golden.jsonl"))
@set_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: standard output.",
)
@pass_context
def export_set(context: Context, set_name: str | None, output: Path | None) -> None:
    """Write a set's active questions in the form that import reads."""
    from pipeline.golden.jsonl import write_questions

    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        questions = (each.question for each in stored.questions(session, name))
        first = next(questions, None)
        if first is None:
            raise InputError(
                f"golden set {name!r} has no active question; see: recallwatch golden list --sets"
            )
        found = chain([first], questions)
        if output is None:
            write_questions(found, sys.stdout.buffer)
            return
        try:
            with output.open("wb") as stream:
                write_questions(found, stream)
        except OSError as error:
            raise click.FileError(str(output), error.strerror or str(error)) from error
