"""`recallwatch golden import`: questions from a file, a folder or a database."""

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import print_json
from cli.person import person
from cli.servers import open_servers
from db.golden_import import ImportReport, import_questions
from pipeline.errors import InputError, UsageError
from pipeline.golden.duplicates import Conflicts
from pipeline.golden.formats import (
    DEFAULT_TABLE,
    READERS,
    SEVERAL_FILES,
    ReadOptions,
    guess,
    is_url,
    readable,
    reader,
)
from pipeline.golden.refused_files import (
    RefusedFiles,
    beside,
    named,
    refuse_overwriting,
    written,
)
from pipeline.golden.staging import StagedImport, staged
from pipeline.types import Source


@click.command("import", epilog=examples(
    "recallwatch golden import golden.jsonl",
    "recallwatch golden import golden.jsonl --set faq --replace",
    "recallwatch golden import tickets.csv --skip-bad --merge",
))  # fmt: skip
@click.argument("source", metavar="FILE")
@set_option
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["guess", *READERS]),
    default="guess",
    show_default=True,
)
@click.option("--qrels", type=click.Path(path_type=Path), metavar="FILE",
              help="The judgments, where FILE holds the questions alone.")  # fmt: skip
@click.option("--table", metavar="NAME", help="The table, where FILE is a database URL.")
@click.option("--document-ids", is_flag=True, help="Every id names a document: ID becomes ID:0.")
@click.option("--source", "origin", type=click.Choice([str(each) for each in Source]),
              help="The source of all questions, whatever FILE says.")  # fmt: skip
@click.option("--merge", is_flag=True,
              help="One question, other keys: expect all, each with its higher grade.")  # fmt: skip
@click.option("--keep-both", is_flag=True, help="One question, other keys: two questions.")
@click.option("--skip-bad", is_flag=True, help="Import the rest; write what is refused to a file.")
@click.option("--refused", type=click.Path(path_type=Path), metavar="FILE",
              help="For --skip-bad. Default: beside FILE, as NAME.refused.EXT.")  # fmt: skip
@click.option(
    "--replace", is_flag=True, help="Retire the set's questions that the file does not hold."
)
@click.option("--reactivate", is_flag=True, help="Also questions that a reviewer rejected.")
@json_option
@pass_context
def import_set(
    context: Context,
    source: str,
    set_name: str | None,
    format_name: str,
    qrels: Path | None,
    table: str | None,
    document_ids: bool,
    origin: str | None,
    merge: bool,
    keep_both: bool,
    skip_bad: bool,
    refused: Path | None,
    replace: bool,
    reactivate: bool,
    as_json: bool,
) -> None:
    """Add a file's questions to a golden set, or bring those it knows up to date.

    In JSON lines, FILE holds an object a line: "question", "expected" (chunk key -> grade, or a
    list of keys), and optionally "external_id", "category", "tenant", "language", "source",
    "must_pass", "kind", "notes", "evidence" (chunk key -> the text that was judged).

    All of the file is imported, or nothing, unless --skip-bad. A question that stands twice with
    other expected keys is refused, unless --merge or --keep-both.
    """
    _refuse_contradictions(merge and keep_both, replace and skip_bad, refused and not skip_bad)
    name = set_name or context.settings.eval.set
    format_name = _format_of(source, format_name, qrels)
    files = _files_for_refused(source, format_name, table, refused) if skip_bad else None
    shown = context.mask(source)
    records = reader(format_name)(source, options=ReadOptions(
        qrels, table, document_ids, None if origin is None else Source(origin)
    ))  # fmt: skip
    conflicts = Conflicts.MERGE if merge else Conflicts.KEEP_BOTH if keep_both else Conflicts.REFUSE
    with (
        staged(shown, records, conflicts=conflicts, skip_bad=skip_bad) as plan,
        _setting_aside(plan, files),
    ):
        report = _store(context, name, plan, replace, reactivate) if plan.kept else None
    _warn(context, plan, files, report)
    if report is None:
        raise InputError(f"{shown}: no question can be imported: all {plan.refused} are refused")
    if as_json:
        print_json(_record(name, format_name, plan, files, report))
    else:
        context.console.print(f"golden set {name}: {_summary(plan, report)}", soft_wrap=True)


def _refuse_contradictions(both: bool, retiring: bool, pointless: object) -> None:
    if both:
        raise UsageError("--merge and --keep-both contradict each other: give one")
    if retiring:
        raise UsageError(
            "--replace would retire what the lines that --skip-bad leaves out hold: give one"
        )
    if pointless:
        raise UsageError("--refused says where --skip-bad writes: add --skip-bad")


def _format_of(source: str, stated: str, qrels: Path | None) -> str:
    """Return the format to read; a URL that is none of SQL is refused before anything shows it."""
    if stated == "guess":
        return guess(source, qrels=qrels)
    if is_url(source) and stated != "sql":
        raise UsageError(f"a database cannot be read as {stated}: leave out --format")
    return stated


def _files_for_refused(
    source: str, format_name: str, table: str | None, stated: Path | None
) -> RefusedFiles:
    """Say where refused lines go; raises InputError where something is in the way."""
    place = Path(source)
    if format_name == "sql":
        place = Path(re.sub(r"[^\w.-]+", "-", table or DEFAULT_TABLE) + ".sql")
    else:
        with readable(place):
            is_there = place.is_file() or place.is_dir()
        place = place if is_there else Path(f"questions.{format_name}")
    suffix = ".jsonl" if format_name in SEVERAL_FILES else None
    files = named(stated) if stated is not None else beside(place, suffix=suffix)
    refuse_overwriting(files)
    return files


def _setting_aside(plan: StagedImport, files: RefusedFiles | None) -> AbstractContextManager[None]:
    if files is None or not plan.refused:
        return nullcontext()
    return written(files, plan.head_of_refused(), plan.refusals())


def _store(
    context: Context, name: str, plan: StagedImport, replace: bool, reactivate: bool
) -> ImportReport:
    with open_servers(context) as opened, opened.work.database.begin() as session:
        return import_questions(
            session, name, plan.questions(), replace=replace, reactivate=reactivate, by=person()
        )


def _warn(
    context: Context, plan: StagedImport, files: RefusedFiles | None, report: ImportReport | None
) -> None:
    warnings = plan.warnings()
    if files is not None and plan.refused:
        warnings.append(
            f"{plan.source}: {plan.refused} refused: correct and import {files.lines}; the reasons"
            f" are in {files.reasons}"
        )
    if report is not None:
        warnings += _of_the_set(plan.source, report)
    for warning in warnings:
        context.err.print(f"warning: {warning}", soft_wrap=True)


def _of_the_set(source: str, report: ImportReport) -> list[str]:
    said = {
        "that a reviewer rejected, left so (--reactivate)": report.rejected,
        "that were proposed and nobody had reviewed, active now": report.accepted,
        "that a reviewer rejected, active again": report.reactivated,
        "in the set with the same text under an external id (both are active)": report.beside,
    }
    return [f"{source}: questions {what}: {count}" for what, count in said.items() if count]


def _summary(plan: StagedImport, report: ImportReport) -> str:
    parts = {
        "added": report.added, "changed": report.changed, "unchanged": report.unchanged,
        "retired": report.retired,
    }  # fmt: skip
    also = {
        "left rejected": report.rejected, "repeated in the file": plan.repeated.count,
        "merged": plan.merged.count, "refused": plan.refused,
        "unanswerable": plan.unanswerable,
    }  # fmt: skip
    parts |= {what: count for what, count in also.items() if count}
    return ", ".join(f"{count} {what}" for what, count in parts.items())


def _record(
    name: str, format_name: str, plan: StagedImport, files: RefusedFiles | None,
    report: ImportReport,
) -> dict[str, object]:  # fmt: skip
    return {
        "set": name,
        "format": format_name,
        "repeated": plan.repeated.count,
        "merged": plan.merged.count,
        "refused": plan.refused,
        "refused_lines": str(files.lines) if files is not None and plan.refused else None,
        "unanswerable": plan.unanswerable,
        "warnings": plan.warnings(),
        "report": report,
    }
