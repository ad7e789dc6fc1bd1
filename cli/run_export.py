"""`recallwatch runs export`: a run's results, for other programs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

import click

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import to_json
from cli.records import live_expected, result_record
from cli.servers import open_servers
from db import results
from db import runs as stored
from db.models import Run
from db.run_states import UNFINISHED
from pipeline.errors import UsageError
from pipeline.types import Level, Outcome


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
    (with -c, and the file of --qrels) finds the same metrics.
    """
    if qrels is not None and format_name != "trec":
        raise UsageError("--qrels goes with --format trec: a line of jsonl holds its judgments")
    if output is not None and qrels is not None and output.resolve() == qrels.resolve():
        raise UsageError("--output and --qrels name the same file: name two")
    with open_servers(context) as opened, opened.work.database.begin() as session:
        run = stored.get(session, run_id).run
        if run.status in UNFINISHED:
            raise UsageError(f"run {run_id} is {run.status}: it can be exported when it has ended")
        if format_name == "trec":
            _refuse_clash(results.name_clash(session, stored.get(session, run_id).version.id))
        counted = _Counted(results.details(session, run_id))
        write = _write_trec if format_name == "trec" else _write_jsonl
        with ExitStack() as stack:
            stream = stack.enter_context(_writer(output))
            judgments = stack.enter_context(nullcontext() if qrels is None else _writer(qrels))
            write(run, counted, stream, judgments)
    if counted.rows < run.size:
        part = f"{counted.rows} of {run.size} questions were measured"
        context.err.print(f"warning: run {run_id} is {run.status}: {part}")
    if format_name == "trec" and counted.scored < counted.rows:
        left = counted.rows - counted.scored
        context.err.print(
            f"warning: {left} questions that were not scored (failed or ineligible) were left out"
        )


def _refuse_clash(name: str | None) -> None:
    """Refuse two questions under one topic: trec_eval would read them as one."""
    if name is not None:
        raise UsageError(
            f"question {name} has no external id, and {name!r} is the external id of another: both"
            " would be one topic; give one of them another external id, and evaluate again"
        )


class _Counted:
    """Iterates over rows of results and counts them by the way."""

    def __init__(self, found: Iterable[Any]) -> None:
        self._found = found
        self.rows = self.scored = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._found:
            self.rows += 1
            self.scored += row.outcome == Outcome.SCORED
            yield row


def _write_jsonl(run: Run, rows: Iterable[Any], stream: TextIO, _qrels: TextIO | None) -> None:
    stream.writelines(to_json(result_record(run, row)) + "\n" for row in rows)


def _write_trec(run: Run, rows: Iterable[Any], stream: TextIO, qrels: TextIO | None) -> None:
    from pipeline.trec_runs import qrels_lines, run_lines

    for row in rows:
        if row.outcome != Outcome.SCORED:
            continue
        query = row.external_id or str(row.question_id)
        stream.writelines(
            run_lines(query, row.retrieved, row.scores, f"recallwatch-{run.strategy}")
        )
        if qrels is not None:
            expected = live_expected(row.expected, row.missing, Level(run.level))
            qrels.writelines(qrels_lines(query, expected))


@contextmanager
def _writer(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        stream = output.open("w", encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from error
    with stream:
        yield stream
