"""`recallwatch golden export`: questions to a file or a folder."""

import sys
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import click

from cli.context import Context, pass_context
from cli.golden.options import set_option
from cli.lazy import examples
from cli.servers import open_servers
from db import exporting
from db import golden as stored
from pipeline.errors import InputError, UsageError

_FORMATS = ("jsonl", "csv", "tsv", "trec", "beir")
_FOLDERS = ("trec", "beir")


@click.command("export", epilog=examples(
    "recallwatch golden export --output golden.jsonl",
    "recallwatch golden export --output golden.csv",
    "recallwatch golden export --format beir --output golden/",
))  # fmt: skip
@set_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(_FORMATS),
    help="Default: by the name of FILE, else jsonl.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A folder for trec and beir. Default: standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite the files of a golden set in a folder.")
@pass_context
def export_set(
    context: Context,
    set_name: str | None,
    format_name: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write a set's active questions in a form that import reads.

    jsonl, csv, tsv and beir hold all of a question; of trec, a warning says what it cannot hold. A
    FILE that is there is overwritten; of a folder, files of a golden set are with --force. Until
    the new ones are complete, the old ones stay.
    """
    format_name = format_name or _guess(output)
    if format_name in _FOLDERS:
        _check_folder(output, format_name, force=force)
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        taken = exporting.taken_names(session, name)
        found = stored.questions(session, name, evidence=True)
        first = next(found, None)
        if first is None:
            raise InputError(
                f"golden set {name!r} has no active question; see: recallwatch golden list --sets"
            )
        for warning in _write(chain([first], found), format_name, output, taken):
            context.err.print(f"warning: {warning}", soft_wrap=True)
        # A topic of TREC has an id always, and so has its question when it comes back.
        if format_name != "trec" and (shared := exporting.count_shared_texts(session, name)):
            context.err.print(
                f"warning: {shared:,} questions share a text and tenant with others: import with"
                " --keep-both",
                soft_wrap=True,
            )


def _guess(output: Path | None) -> str:
    suffix = output.suffix.lower().removeprefix(".") if output else ""
    if suffix in {"gz", "xlsx", "xls", "parquet"}:
        raise UsageError(f"{output}: .{suffix} is not written: name a file .jsonl, .csv or .tsv")
    return suffix if suffix in {"csv", "tsv"} else "jsonl"


def _check_folder(folder: Path | None, format_name: str, *, force: bool) -> None:
    """Refuse a folder that holds a golden set, which may be the only copy of somebody's work."""
    from pipeline.golden.writers import beir, trec

    if folder is None:
        raise UsageError(f"{format_name} is several files: name a folder with --output")
    patterns = beir.READ if format_name == "beir" else trec.READ
    there = next((path for each in patterns for path in sorted(folder.glob(each))), None)
    if there is not None and not force:
        raise UsageError(f"{there} exists already: name another folder, or overwrite with --force")


def _write(
    found: Iterable[stored.StoredQuestion],
    format_name: str,
    output: Path | None,
    taken: Collection[str],
) -> list[str]:
    """Write the questions, and return what the format could not hold, one line each."""
    from pipeline.whole_files import whole_files

    if output is None:
        return _write_table(found, format_name, sys.stdout.buffer)
    try:
        if format_name in _FOLDERS:
            return _write_folder(found, format_name, output, taken)
        with whole_files(output) as (stream,):
            return _write_table(found, format_name, stream)
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from error


def _write_folder(
    found: Iterable[stored.StoredQuestion], format_name: str, folder: Path, taken: Collection[str]
) -> list[str]:
    from pipeline.golden.writers import beir, trec

    write = beir.write if format_name == "beir" else trec.write
    return write(((each.id, each.question) for each in found), folder, taken=taken)


def _write_table(
    found: Iterable[stored.StoredQuestion], format_name: str, stream: BinaryIO
) -> list[str]:
    questions = (each.question for each in found)
    if format_name == "jsonl":
        from pipeline.golden.jsonl import write_questions

        write_questions(questions, stream)
        return []
    from pipeline.golden.writers import csv_table

    return csv_table.write(questions, stream, delimiter="\t" if format_name == "tsv" else ",")
