"""The reports that a CI job asks `recallwatch eval` for, beside the table that people read."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from cli import ci, junit, summary
from cli.evidence import gather
from db.runs import RunContext
from pipeline.errors import RecallwatchError
from workers.context import Context as WorkContext


@dataclass(frozen=True, slots=True)
class Reports:
    """What was asked for: annotations and a job summary (`annotate`), JUnit XML (`junit`).

    Annotations go to standard output, or to standard error (which GitHub reads too) where
    standard output holds JSON; warnings go to `err`.
    """

    annotate: bool
    junit: Path | None
    as_json: bool
    err: Console

    @contextmanager
    def open(self) -> Iterator[None]:
        """Make sure that whatever ends the body, the reports do not look like success.

        Raises click.UsageError or click.FileError, before the body, where JUnit XML cannot be
        written.
        """
        if self.junit is not None:
            junit.start(self.junit)
        try:
            yield
        except RecallwatchError as error:
            self._failed(error)
            raise

    def quoted(self) -> AbstractContextManager[None]:
        """Keep texts that the body prints from being read as annotations or worse."""
        return ci.commands_stopped() if self.annotate else nullcontext()

    def write(self, work: WorkContext, found: Sequence[RunContext]) -> None:
        """Write the reports on finished runs."""
        if self.junit is None and not self.annotate:
            return
        with work.database.begin() as session:
            evidence = gather(session, found)
        if self.annotate:
            self._say(ci.annotations(evidence))
            self._summarise([summary.section(each) for each in evidence])
        if self.junit is not None:
            junit.write(self.junit, [junit.suite(each) for each in evidence])

    def _failed(self, error: RecallwatchError) -> None:
        if self.junit is not None:
            junit.write_failure(self.junit, str(error))
        if self.annotate:
            self._say([ci.failure(error)])
            self._summarise([summary.failed_section(error)])

    def _say(self, commands: Iterator[str] | Sequence[str]) -> None:
        for command in commands:
            click.echo(command, err=self.as_json)

    def _summarise(self, sections: Sequence[str]) -> None:
        if warning := ci.append_summary(sections):
            self.err.print(f"warning: {warning}", soft_wrap=True)
