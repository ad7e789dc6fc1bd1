"""`recallwatch golden import`: questions from a file."""

from pathlib import Path

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import print_json
from cli.servers import open_servers
from db import golden as stored


@click.command("import", epilog=examples(
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
