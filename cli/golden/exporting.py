"""`recallwatch golden export`: questions to a file."""

import sys
from itertools import chain
from pathlib import Path

import click

from cli.context import Context, pass_context
from cli.golden.options import set_option
from cli.lazy import examples
from cli.servers import open_servers
from db import golden as stored
from pipeline.errors import InputError


@click.command("export", epilog=examples("recallwatch golden export --output golden.jsonl"))
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
