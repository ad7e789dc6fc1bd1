"""What commands that wait for runs have in common: follow them to their end, and show it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from cli.output import print_json
from cli.records import run_record
from cli.servers import Opened
from db.runs import RunContext
from pipeline.types import Verdict
from workers.context import Context as WorkContext

SHOWN_MISSES = 5

EXIT_REGRESSED = 1
EXIT_UNMEASURED = 3


def follow(
    opened: Opened, run_ids: Sequence[int], *, start: bool = True, timeout: float | None = None
) -> list[RunContext]:
    """Have workers at hand, wait for the runs to end and return them."""
    from cli.waiting import Waiter
    from cli.workers import Reviver
    from db import runs

    revive = Reviver(opened.stack, opened.work.settings) if start else None
    seconds = timeout or opened.work.settings.queue.deadline
    with saying_what_is_left(run_ids):
        if revive is not None:
            revive()
        Waiter(opened.work, run_ids, revive, seconds).wait("evaluating")
    with opened.work.database.begin() as session:
        return [runs.get(session, run_id) for run_id in run_ids]


@contextmanager
def saying_what_is_left(run_ids: Sequence[int]) -> Iterator[None]:
    """Have an interrupt say what becomes of the runs, and how to end them."""
    from cli.waiting import left

    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(left(run_ids)) from None


def print_records(found: Sequence[RunContext]) -> None:
    """Print the runs of a batch and the exit code as JSON."""
    print_json({"batch": found[0].run.batch_id, "exit_code": exit_code(found),
                "runs": [run_record(each) for each in found]})  # fmt: skip


def show(console: Console, work: WorkContext, found: Sequence[RunContext], *, misses: int) -> None:
    """Print every run and its worst questions."""
    from cli.report import misses_table, print_run
    from db import results

    for number, each in enumerate(found):
        if number:
            console.print()
        print_run(console, each)
        with work.database.begin() as session:
            measured = misses and each.run.metrics
            rows = results.misses(session, each.run, limit=misses) if measured else []
        if rows:
            title = f"without a hit at {each.run.k} (all: recallwatch runs show {each.run.id}"
            console.print()
            console.print(misses_table(each.run, rows, title=f"{title} --failures)"))


def exit_code(found: Sequence[RunContext]) -> int:
    """Return 1 when any run regressed, else 3 when any could not be measured, else 0."""
    verdicts = {each.run.verdict for each in found}
    if Verdict.REGRESSED in verdicts:
        return EXIT_REGRESSED
    return EXIT_UNMEASURED if Verdict.UNMEASURED in verdicts else 0
