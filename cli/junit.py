"""JUnit XML, which GitLab, Jenkins and test reporters for GitHub read: a suite a run.

The dialect is what their parsers have in common (Jenkins' junit-10.xsd). GitLab knows a test by its
classname and name, so neither holds a figure that changes from run to run.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click

from cli.evidence import Evidence
from cli.output import clean, one_line
from cli.records import result_record
from cli.report import deeper, wider_note
from db.models import Run
from pipeline.types import Outcome, Verdict
from pipeline.verdict.gate import Finding

NAME_WIDTH = 200
"""Characters of a question in a test's name."""

UNFINISHED = "recallwatch ended before there was a verdict: see the job's log"

_TAGS = {
    Verdict.REGRESSED: "failure",
    Verdict.UNMEASURED: "error",
    Verdict.INCOMPARABLE: "skipped",
    Verdict.BASELINE: "skipped",
}
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}

# What XML 1.0 has no way to write, beyond what `clean` takes out.
_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """A test: it passed where `tag` is None, else it is a failure, an error or skipped."""

    name: str
    tag: str | None
    said: str


def start(path: Path) -> None:
    """Write a report that says there is no verdict; raises click.UsageError where it cannot be.

    A job that is killed then leaves a failed test: no report, or yesterday's, would look like
    success.
    """
    if not path.parent.is_dir():
        raise click.UsageError(f"--junit {path}: there is no folder {path.parent}; create it first")
    write(path, [_failed(UNFINISHED)])


def write_failure(path: Path, reason: str) -> None:
    """Write a report of an evaluation that came to no verdict."""
    write(path, [_failed(reason)])


def write(path: Path, suites: Sequence[ET.Element]) -> None:
    """Write the report; raises click.FileError."""
    root = ET.Element("testsuites", name="recallwatch")
    for name in ("tests", *_COUNTED.values()):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    try:
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from error


def suite(evidence: Evidence) -> ET.Element:
    """Return a run's suite: a test a rule that the verdict hangs on and a must-pass question."""
    found, run = evidence.found, evidence.found.run
    cases = [*_rules(evidence), *(_question(run, row) for row in evidence.must_pass)]
    made = _suite(evidence.subject, f"recallwatch.{found.version.set_name}.{run.strategy}", cases)
    if run.finished_at is not None:
        made.set("time", f"{(run.finished_at - run.created_at).total_seconds():.3f}")
    made.set("timestamp", f"{run.created_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    beside = [each.text for each in evidence.findings if not each.counts]
    if beside:
        ET.SubElement(made, "system-out").text = _text("\n".join(beside))
    return made


def _failed(reason: str) -> ET.Element:
    return _suite("recallwatch", "recallwatch", [Case("evaluation", "error", reason)])


def _suite(name: str, classname: str, cases: Sequence[Case]) -> ET.Element:
    made = ET.Element("testsuite", name=_attribute(name), tests=str(len(cases)))
    for tag, counter in _COUNTED.items():
        made.set(counter, str(sum(case.tag == tag for case in cases)))
    for case in cases:
        made.append(_case(classname, case))
    return made


def _case(classname: str, case: Case) -> ET.Element:
    made = ET.Element(
        "testcase", classname=_attribute(classname), name=_attribute(case.name), time="0"
    )
    # GitLab shows a failed test's text, Jenkins its message, both the output of one that passed.
    inner = ET.SubElement(made, case.tag or "system-out")
    inner.text = _text(case.said)
    if case.tag:
        inner.set("message", _attribute(case.said))
    return made


def _rules(evidence: Evidence) -> Iterator[Case]:
    """Yield a test for each rule and reference; what a rule says of several metrics is one test."""
    baseline = evidence.found.run.baseline_run
    counting = [
        (f"{each.rule} (baseline)" if each.reference and each.reference == baseline
         else str(each.rule), each)
        for each in evidence.findings if each.counts
    ]  # fmt: skip
    by_name = groupby(sorted(counting, key=lambda pair: pair[0]), key=lambda pair: pair[0])
    for name, pairs in by_name:
        yield _rule(name, [finding for _, finding in pairs])


def _rule(name: str, findings: Iterable[Finding]) -> Case:
    said = list(findings)
    tags = {_TAGS.get(each.verdict) for each in said}
    worst = next((tag for tag in _COUNTED if tag in tags), None)
    return Case(name, worst, "\n".join(each.text for each in said))


def _question(run: Run, row: Any) -> Case:  # noqa: ANN401 - a row of db.results
    """Return the test of a must-pass question, which has to have a hit at k."""
    record = result_record(run, row)
    name = f"must_pass {record['id']}: {one_line(row.text)[:NAME_WIDTH]}"
    match Outcome(row.outcome):
        case Outcome.FAILED:
            return Case(name, "error", str(row.error))
        case Outcome.INELIGIBLE:
            return Case(name, "skipped", "no expected key is live in the corpus")
    if record["metrics"][f"hit@{run.k}"] > 0:
        return Case(name, None, f"found at rank {record['first_rank']}")
    return Case(name, "failure", _miss(run, record))


def _miss(run: Run, record: dict[str, Any]) -> str:
    """Say what was expected, where the first of it was found by looking deeper, what came back."""
    rank = deeper(record["first_rank"], run.k)
    names = ("expected", "retrieved")
    expected, retrieved = (", ".join(record[name]) or "nothing" for name in names)
    note = wider_note([rank], run.k)
    return "\n".join(
        [
            f"{one_line(record['question'])}",
            f"expected: {expected}",
            f"found at: {rank or 'not as deep as was looked'}",
            f"got: {retrieved}",
            *([note] if note else []),
        ]
    )


def _attribute(text: str) -> str:
    return _NO_XML.sub("", one_line(text))


def _text(text: str) -> str:
    return _NO_XML.sub("", clean(text))
