"""`recallwatch runs export`: a run's results, for other programs."""

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import to_json
from cli.records import live_expected, result_record
from cli.servers import open_servers
from db import exporting, results
from db import runs as stored
from db.models import Run
from db.run_states import UNFINISHED
from pipeline.errors import UsageError
from pipeline.golden.writers.naming import name_of
from pipeline.types import Level, Outcome
from pipeline.whole_files import whole_files


@click.command("export", epilog=examples(
    "recallwatch runs export 12 > run-12.jsonl",
    "recallwatch runs export 12 --format trec --output run --qrels qrels",
    "trec_eval -c -m ndcg_cut.10 qrels run",
))  # fmt: skip
@click.argument("run_id", metavar="RUN", type=int)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["jsonl", "trec"]),
    default="jsonl",
    show_default=True,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: standard output.",
)
@click.option(
    "--qrels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="For trec: write the judgments that were scored against, too.",
)
@pass_context
def export_run(
    context: Context, run_id: int, format_name: str, output: Path | None, qrels: Path | None
) -> None:
    """Write what was expected and what came back for each question of a run.

    jsonl is an object a line: `expected` holds the keys that were live in the corpus, with their
    grades; `retrieved` the keys that were scored, best first; `metrics` are at full precision.

    trec is a run file of the scored questions, in strictly decreasing scores, from which trec_eval
    (with -c, and the file of --qrels) finds the same metrics. At document level its ids are those
    of documents. A FILE that is there is overwritten once the new one is complete.
    """
    if qrels is not None and format_name != "trec":
        raise UsageError("--qrels goes with --format trec: a line of jsonl holds its judgments")
    if qrels is not None and _are_one(output or Path("/dev/stdout"), qrels):
        raise UsageError("--output and --qrels are one file: name two")
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.get(session, run_id)
        run = found.run
        if run.status in UNFINISHED:
            raise UsageError(f"run {run_id} is {run.status}: it can be exported when it has ended")
        taken = exporting.taken_names_of_version(session, found.version.id)
        counted = _Counted(results.details(session, run_id), taken)
        write = _write_trec if format_name == "trec" else _write_jsonl
        with _opened(output, qrels) as (stream, judgments):
            write(run, counted, stream, judgments)
    if counted.rows < run.size:
        part = f"{counted.rows} of {run.size} questions were measured"
        context.err.print(f"warning: run {run_id} is {run.status}: {part}")
    if format_name == "trec" and counted.scored < counted.rows:
        left = counted.rows - counted.scored
        context.err.print(
            f"warning: {left} questions that were not scored (failed or ineligible) were left out"
        )


def _are_one(first: Path, second: Path) -> bool:
    """Tell whether two paths lead to one file, which may not be there yet."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


class _Counted:
    """Iterates over rows of results with their questions' names, and counts them by the way."""

    def __init__(self, found: Iterable[Any], taken: Collection[str]) -> None:
        self._found = found
        self._taken = taken
        self.rows = self.scored = 0

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for row in self._found:
            self.rows += 1
            self.scored += row.outcome == Outcome.SCORED
            yield name_of(row.question_id, row.external_id, self._taken), row


def _write_jsonl(
    run: Run, named: Iterable[tuple[str, Any]], stream: BinaryIO, _qrels: BinaryIO | None
) -> None:
    records = (result_record(run, row) | {"id": name} for name, row in named)
    stream.writelines(f"{to_json(record)}\n".encode() for record in records)


def _write_trec(
    run: Run, named: Iterable[tuple[str, Any]], stream: BinaryIO, qrels: BinaryIO | None
) -> None:
    from pipeline.trec_runs import qrels_lines, run_lines

    tag = f"recallwatch-{run.strategy}"
    for name, row in named:
        if row.outcome != Outcome.SCORED:
            continue
        lines = run_lines(name, row.retrieved, row.scores, tag)
        stream.writelines(line.encode() for line in lines)
        if qrels is not None:
            expected = live_expected(row.expected, row.missing, Level(run.level))
            qrels.writelines(line.encode() for line in qrels_lines(name, expected))


@contextmanager
def _opened(output: Path | None, qrels: Path | None) -> Iterator[tuple[BinaryIO, BinaryIO | None]]:
    """Give streams for the run and its judgments: standard output where no file is named."""
    paths = [path for path in (output, qrels) if path is not None]
    try:
        with whole_files(*paths) as streams:
            yield (
                sys.stdout.buffer if output is None else streams[0],
                None if qrels is None else streams[-1],
            )
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or output or qrels or "standard output"
        raise click.FileError(str(where), error.strerror or str(error)) from error
