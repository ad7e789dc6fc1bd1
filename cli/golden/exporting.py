"""`recallwatch golden export`: questions to a file or a folder."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import click

from cli.context import Context, pass_context
from cli.golden.options import set_option
from cli.lazy import examples
from cli.servers import open_servers
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
@pass_context
def export_set(
    context: Context, set_name: str | None, format_name: str | None, output: Path | None
) -> None:
    """Write a set's active questions in a form that import reads.

    jsonl, csv, tsv and beir hold all of a question; of trec, a warning says what it cannot hold.
    """
    format_name = format_name or _guess(output)
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.questions(session, name, evidence=True)
        first = next(found, None)
        if first is None:
            raise InputError(
                f"golden set {name!r} has no active question; see: recallwatch golden list --sets"
            )
        if format_name in _FOLDERS:
            _refuse_clash(stored.name_clash(session, name))
        for warning in _write(chain([first], found), format_name, output):
            context.err.print(f"warning: {warning}", soft_wrap=True)


def _refuse_clash(name: str | None) -> None:
    """Refuse two questions of one id before anything is written."""
    if name is not None:
        raise InputError(
            f"question {name} has no external id, and {name!r} is the external id of another: both"
            " would have one id in the files; give one of them another external id"
        )


def _guess(output: Path | None) -> str:
    suffix = output.suffix.lower().removeprefix(".") if output else ""
    if suffix in {"gz", "xlsx", "xls", "parquet"}:
        raise UsageError(f"{output}: .{suffix} is not written: name a file .jsonl, .csv or .tsv")
    return suffix if suffix in {"csv", "tsv"} else "jsonl"


def _write(
    found: Iterable[stored.StoredQuestion], format_name: str, output: Path | None
) -> list[str]:
    """Write the questions, and return what the format could not hold, one line each."""
    if format_name in _FOLDERS:
        return _write_folder(found, format_name, output)
    questions = (each.question for each in found)
    with _opened(output) as stream:
        if format_name == "jsonl":
            from pipeline.golden.jsonl import write_questions

            write_questions(questions, stream)
            return []
        from pipeline.golden.writers import csv_table

        return csv_table.write(questions, stream, delimiter="\t" if format_name == "tsv" else ",")


def _write_folder(
    found: Iterable[stored.StoredQuestion], format_name: str, folder: Path | None
) -> list[str]:
    from pipeline.golden.writers import beir, trec

    if folder is None:
        raise UsageError(f"{format_name} is several files: name a folder with --output")
    write = beir.write if format_name == "beir" else trec.write
    numbered = ((each.id, each.question) for each in found)
    try:
        folder.mkdir(exist_ok=True)
        return write(numbered, folder)
    except OSError as error:
        raise _unwritable(folder, error) from error


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    try:
        with output.open("wb") as stream:
            yield stream
    except OSError as error:
        raise _unwritable(output, error) from error


def _unwritable(path: Path, error: OSError) -> click.FileError:
    return click.FileError(str(path), error.strerror or str(error))
