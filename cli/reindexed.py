"""`recallwatch reindexed`: say that the corpus was re-indexed."""

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cli.context import Context, pass_context
from cli.lazy import examples
from cli.options import waiting, what_to_evaluate
from cli.output import one_line, print_json, progress
from cli.servers import Opened, open_servers
from pipeline.types import Trigger

if TYPE_CHECKING:
    from workers.enqueue import StartedBatch
    from workers.reindexing import Reindexed

SHOWN = 5
"""Documents of each sort that are named."""


@click.command(
    "reindexed",
    epilog=examples(
        "recallwatch reindexed",
        "recallwatch reindexed --documents manual-7 --documents manual-9 --wait",
        "recallwatch reindexed --documents @changed-ids.txt --json",
    ),
)
@click.option(
    "--documents",
    multiple=True,
    metavar="ID",
    help="Document that changed; repeat for several. @FILE or - (standard input): an id a line.",
)
@what_to_evaluate("evaluate")
@waiting(by_default=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def reindexed_command(
    context: Context,
    documents: Sequence[str],
    strategies: Sequence[str],
    set_name: str | None,
    k: int | None,
    level: str | None,
    wait: bool,
    start: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Evaluate once re-indexing is over; say which expected keys are gone.

    Call it whenever chunks were written. The evaluation starts when no such call has come for
    [queue] reindex_quiet seconds, so that many calls start one. Other Celery apps on the same
    broker may send the task recallwatch.reindexed instead.
    """
    from workers.enqueue import Request, resolve

    request = Request(
        strategies=strategies or None, set_name=set_name, k=k, level=level, trigger=Trigger.REINDEX
    )
    # A wrong option is told before any server starts.
    resolve(context.settings, request)
    ids = [each for given in documents for each in _ids(given)]
    with open_servers(context) as opened:
        # Celery's app reads where the queue is when it is imported.
        from workers.reindexing import reindexed
        from workers.sweeping import sweep

        sweep(opened.work)
        found = reindexed(opened.work, request, ids)
        if not as_json:
            _say(context, found, named=len(set(ids)))
        if wait:
            code = _follow(context, opened, found, start=start, timeout=timeout, as_json=as_json)
            click.get_current_context().exit(code)
        if as_json:
            print_json(_record(found) | {"runs": found.started.run_ids})


def _ids(given: str) -> Iterator[str]:
    """Yield the document ids that one --documents gives; raises InputError for a bad file."""
    from pipeline.lines import read_lines

    if given == "-":
        yield from (line.strip() for line in sys.stdin if line.strip())
    elif given.startswith("@"):
        yield from (line.strip() for _, line in read_lines(Path(given[1:])))
    else:
        yield given


def _say(context: Context, found: "Reindexed", *, named: int) -> None:
    """Print the state of the expected keys, then what starts when."""
    started, checked = found.started, found.documents
    for warning in started.warnings:
        context.err.print(f"warning: {warning}", soft_wrap=True)
    if not started.warnings:
        context.console.print(f"all {started.keys.expected} expected keys are in the corpus")
    if named:
        noun = "document" if named == 1 else "documents"
        context.console.print(
            f"of {named} {noun} named, golden questions expect {len(checked.expected)}"
        )
    _say_gone(context.err, found)
    _say_start(context.console, started)


def _say_gone(err: Console, found: "Reindexed") -> None:
    gone = [document for document in found.documents.expected if document.gone]
    for document in gone[:SHOWN]:
        line = (
            f"document {document.document_id!r}: {len(document.gone)} of {document.expected}"
            f" expected keys are gone, as {document.gone[0]!r};"
            f" questions that expect them: {document.questions}"
        )
        err.print(f"warning: {one_line(line)}", soft_wrap=True)
    if len(gone) > SHOWN:
        err.print(f"warning: keys of {len(gone) - SHOWN} more documents are gone (--json: all)")
    unknown = found.documents.unknown
    if unknown:
        names = ", ".join(map(repr, unknown[:SHOWN]))
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        err.print(f"warning: {one_line(f'no chunk in the corpus: {names}{more}')}", soft_wrap=True)


def _say_start(console: Console, started: "StartedBatch") -> None:
    what = f"batch {started.batch_id} (run {', '.join(map(str, started.run_ids))})"
    done = "joined" if started.joined else "queued"
    when = ""
    if started.quiet_until is not None:
        at = f"{started.quiet_until.astimezone():%H:%M:%S}"
        when = f", to start at {at} unless re-indexing goes on"
    see = f"recallwatch runs show {started.run_ids[0]}"
    console.print(f"{done} {what}{when}; see: {see}", soft_wrap=True)


def _follow(
    context: Context,
    opened: Opened,
    found: "Reindexed",
    *,
    start: bool,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Wait for the verdict, print it, and return the exit code."""
    from cli.following import SHOWN_MISSES, exit_code, follow, saying_what_is_left, show
    from cli.records import run_record

    run_ids = found.started.run_ids
    with saying_what_is_left(run_ids):
        _wait_for_quiet(opened, found.started.batch_id)
    finished = follow(opened, run_ids, start=start, timeout=timeout)
    code = exit_code(finished)
    if as_json:
        print_json(
            _record(found) | {"exit_code": code, "runs": [run_record(each) for each in finished]}
        )
    else:
        context.console.print()
        show(context.console, opened.work, finished, misses=SHOWN_MISSES)
    return code


def _wait_for_quiet(opened: Opened, batch_id: int) -> None:
    """Return when the batch may start; other notices may put that off meanwhile."""
    from db import reindexing
    from workers.sweeping import sweep

    with progress("waiting until re-indexing is over", None):
        while True:
            with opened.work.database.begin() as session:
                until = reindexing.quiet_until(session, batch_id)
            left = (until - datetime.now(UTC)).total_seconds() if until else 0
            if left <= 0:
                break
            time.sleep(min(left, 1))
    sweep(opened.work)


def _record(found: "Reindexed") -> dict[str, object]:
    started, checked = found.started, found.documents
    return {
        "batch": started.batch_id,
        "joined": started.joined,
        "starts_at": started.quiet_until,
        "expected_keys": started.keys.expected,
        "keys_gone": started.keys.gone,
        "keys_outdated": started.keys.outdated,
        "documents": checked.expected,
        "unknown_documents": checked.unknown,
    }
