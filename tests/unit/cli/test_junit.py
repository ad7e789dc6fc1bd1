"""JUnit XML, read back by a parser and held against what its readers' schemas ask for."""

import re
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import junit
from cli.evidence import Evidence
from cli.output import clean
from pipeline.types import Outcome, Verdict
from pipeline.verdict.gate import Finding, Rule
from tests.junit_reports import read, results
from tests.unit.cli.finished import BESIDE, FELL, cancelled, finished, must_pass

INDEX_MISSED_IT = "* a wider search finds it within 5: the index missed it"


def written(evidence: Evidence, path: Path) -> ET.Element:
    """Write a run's report and return its suite as a parser reads it."""
    junit.write(path, [junit.suite(evidence)])
    (suite,) = read(path)
    return suite


def said(rule: Rule, verdict: Verdict, text: str, reference: int | None = None) -> Finding:
    return Finding(rule=rule, verdict=verdict, text=text, reference=reference)


def test_a_cancelled_run_is_an_error(tmp_path: Path) -> None:
    suite = written(cancelled(), tmp_path / "a.xml")

    assert results(suite) == {"cancelled": ("error", "cancelled by ann")}


def test_each_rule_that_counts_is_a_test(tmp_path: Path) -> None:
    suite = written(
        finished(
            said(Rule.NOISE, Verdict.REGRESSED, "lost", 11),
            said(Rule.NOISE, Verdict.OK, "against the baseline: fine", 4),
            said(Rule.FLOOR, Verdict.REGRESSED, "recall under its floor"),
            said(Rule.FLOOR, Verdict.REGRESSED, "ndcg under its floor"),
            BESIDE,
            baseline_run=4,
        ),
        tmp_path / "a.xml",
    )

    assert results(suite) == {
        "floor": ("failure", "recall under its floor\nndcg under its floor"),
        "noise": ("failure", "lost"),
        "noise (baseline)": (None, "against the baseline: fine"),
    }
    assert suite.findtext("system-out") == BESIDE.text
    assert suite.attrib["name"] == "faq / vector"
    assert suite.attrib["time"] == "90.000"
    # Ant's schema, which Jenkins' descends from, allows no offset.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    assert datetime.fromisoformat(suite.attrib["timestamp"]) == datetime(2026, 3, 2, 6)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        (Verdict.OK, None),
        (Verdict.IMPROVED, None),
        (Verdict.WATCH, None),
        (Verdict.REGRESSED, "failure"),
        (Verdict.UNMEASURED, "error"),
        (Verdict.INCOMPARABLE, "skipped"),
        (Verdict.BASELINE, "skipped"),
    ],
)
def test_a_rules_verdict_is_what_its_test_came_to(
    tmp_path: Path, verdict: Verdict, tag: str | None
) -> None:
    found = finished(said(Rule.NOISE, verdict, "so"), verdict=verdict)

    assert results(written(found, tmp_path / "a.xml")) == {"noise": (tag, "so")}


def test_each_must_pass_question_is_a_test(tmp_path: Path) -> None:
    rows = [
        must_pass(),
        must_pass(question_id=42, measured=[0.0, 0.0], first_rank=9),
        must_pass(question_id=43, measured=[0.0, 0.0], first_rank=3, retrieved=[]),
        must_pass(Outcome.FAILED, question_id=44, error="the retriever raised"),
        must_pass(Outcome.INELIGIBLE, external_id="q-45"),
    ]

    suite = written(Evidence(finished(FELL).found, must_pass=rows), tmp_path / "a.xml")

    found = results(suite)
    name = "must_pass {}: Where is it?"
    assert found[name.format(41)] == (None, "found at rank 1")
    assert found[name.format(42)] == (
        "failure", "Where is it?\nexpected: d:0\nfound at: 9\ngot: d:0, e:1",
    )  # fmt: skip
    assert found[name.format(43)] == (
        "failure",
        "Where is it?\nexpected: d:0\nfound at: 3*\ngot: nothing\n" + INDEX_MISSED_IT,
    )
    assert found[name.format(44)] == ("error", "the retriever raised")
    assert found[name.format("q-45")] == ("skipped", "no expected key is live in the corpus")


def test_the_names_of_tests_stay_from_run_to_run(tmp_path: Path) -> None:
    rows = [must_pass(question_id=42, measured=[0.0, 0.0])]
    first = written(Evidence(finished(FELL).found, must_pass=rows), tmp_path / "a.xml")
    good = said(Rule.THRESHOLD, Verdict.OK, "within", 12)
    later = finished(good, verdict=Verdict.OK, id=13, compared_to=12, metrics={"recall@5": 0.9})
    second = written(
        Evidence(later.found, must_pass=[must_pass(question_id=42)]), tmp_path / "b.xml"
    )

    assert results(first).keys() == results(second).keys()
    assert results(first) != results(second)


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_can_be_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, text: str, key: str
) -> None:
    rows = [must_pass(text=text, measured=[0.0, 0.0], retrieved=[key])]
    evidence = Evidence(finished(said(Rule.NOISE, Verdict.REGRESSED, text)).found, must_pass=rows)
    evidence.found.version.set_name = key

    suite = written(evidence, tmp_path_factory.getbasetemp() / "any.xml")

    # XML has no way to write these two; a parser turns \r into \n, and `clean` takes it out.
    readable = re.sub("[\ufffe\uffff]", "", clean(text))
    assert (results(suite)["noise"][1] or "") == readable


def test_a_report_of_an_evaluation_that_did_not_end_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<testsuites/>")

    junit.start(path)
    (suite,) = read(path)
    assert results(suite) == {
        "evaluation": ("error", "recallwatch ended before there was a verdict: see the job's log")
    }

    junit.write_failure(path, "no worker answers")
    (suite,) = read(path)
    assert results(suite) == {"evaluation": ("error", "no worker answers")}


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"there is no folder .*nowhere; create it first"):
        junit.start(tmp_path / "nowhere" / "a.xml")

    with pytest.raises(click.FileError, match="Is a directory"):
        junit.write_failure(tmp_path, "why")
