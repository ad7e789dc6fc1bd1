"""What a CI job is told beside the table: annotations and a job summary.

Annotations are GitHub's workflow commands, which its look-alikes read too; elsewhere they are
lines that a person can read.
"""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from cli.changes import ranks
from cli.evidence import Evidence
from cli.output import one_line
from cli.report import CAUSES, shorten, verdict_name
from pipeline.errors import RecallwatchError
from pipeline.types import Verdict
from pipeline.verdict.gate import Cause

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's summary; GitHub shows nothing of a longer one."""

LEVELS = {
    Verdict.REGRESSED: "error",
    Verdict.UNMEASURED: "error",
    Verdict.INCOMPARABLE: "warning",
    Verdict.WATCH: "warning",
}
"""The verdicts that are annotated, and how."""

_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = _ESCAPES | {":": "%3A", ",": "%2C"}

_GITHUB_RUN = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")


def requester(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return who started the CI job and where it is, as far as GitHub or GitLab say."""
    who = environment.get("GITHUB_ACTOR") or environment.get("GITLAB_USER_LOGIN")
    return " ".join(filter(None, (who, _job(environment)))) or None


def _job(environment: Mapping[str, str]) -> str | None:
    known = [environment.get(name) for name in _GITHUB_RUN]
    if all(known):
        return "{}/{}/actions/runs/{}".format(*known)
    return environment.get("CI_JOB_URL")


def annotations(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield the workflow commands for runs that a reader has to know of.

    One for a run's verdict, one for its warnings, one for the worst questions it lost: GitHub
    shows ten errors, ten warnings and ten notices of a step.
    """
    for each in evidence:
        if level := LEVELS.get(each.verdict):
            yield _command(level, f"{each.subject}: {verdict_name(each.found.run)}", _reasons(each))
        if warnings := [finding.text for finding in each.findings if finding.warning]:
            yield _command("warning", f"{each.subject}: how sure", warnings)
        if each.lost and each.verdict in (Verdict.REGRESSED, Verdict.WATCH):
            yield _command("notice", f"{each.subject}: worst lost questions", _lost(each))


def failure(error: RecallwatchError) -> str:
    """Return the annotation for an evaluation that came to no verdict."""
    return _command("error", "recallwatch: no verdict", str(error).splitlines())


def _reasons(each: Evidence) -> list[str]:
    cause = each.found.run.cause
    return each.reasons + ([f"cause: {CAUSES[Cause(cause)]}"] if cause else [])


def _lost(each: Evidence) -> list[str]:
    k = each.found.run.k
    moved = [ranks("lost", row, k) for row in each.lost]
    return [
        f"{shorten(row.text)} ({before or '-'} -> {after or '-'})"
        for row, (before, after) in zip(each.lost, moved, strict=True)
    ]


def _command(level: str, title: str, lines: Sequence[str]) -> str:
    named = _escaped(one_line(title), _PROPERTY_ESCAPES)
    message = "\n".join(map(one_line, lines))
    return f"::{level} title={named}::{_escaped(message, _ESCAPES)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


@contextmanager
def commands_stopped() -> Iterator[None]:
    """Keep GitHub from taking a text that is printed in the body, such as a question, for orders.

    Elsewhere nothing reads them, and nothing is printed.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    try:
        yield
    finally:
        click.echo(f"::{token}::")


def append_summary(sections: Sequence[str]) -> str | None:
    """Append the sections that fit to the job's summary, where the job has one.

    Returns what to warn of: the summary is an extra, so a file that cannot be written is no error.
    """
    name = os.environ.get(SUMMARY_VARIABLE)
    if not name:
        return None
    path = Path(name)
    try:
        taken = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(fitting(sections, SUMMARY_LIMIT - taken))
    except OSError as error:
        return f"the summary could not be written to {name} ({SUMMARY_VARIABLE}): {error.strerror}"
    return None


def fitting(sections: Sequence[str], limit: int) -> str:
    """Return as many of the sections, from the first, as `limit` bytes of UTF-8 hold.

    What had to be left out is said in a last line, which has its place in the limit too.
    """
    left_out = "\n{} more: recallwatch runs list\n"
    room = limit - len(left_out.format(len(sections)))
    kept = ""
    for number, section in enumerate(sections):
        if len((kept + section).encode("utf-8", "replace")) > room:
            return kept + left_out.format(len(sections) - number) if room >= 0 else ""
        kept += section
    return kept
