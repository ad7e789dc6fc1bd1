"""Annotations and job summaries, held against how GitHub's runner reads them."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.ci import (
    SUMMARY_LIMIT,
    annotations,
    append_summary,
    commands_stopped,
    failure,
    fitting,
    requester,
)
from cli.evidence import Evidence
from cli.output import one_line
from pipeline.errors import UnmeasuredError
from pipeline.types import Verdict
from pipeline.verdict.gate import Cause, Finding, Rule
from tests.unit.cli.finished import BESIDE, FELL, cancelled, everything, finished, lost

COMMAND = re.compile(r"::(?P<level>\w+) title=(?P<title>[^:,]*)::(?P<message>.*)")


def read(line: str) -> tuple[str, str, str]:
    """Return level, title and message of a command, as the runner takes it apart."""
    found = COMMAND.fullmatch(line)
    assert found is not None, line
    return found["level"], unquote(found["title"]), unquote(found["message"])


def told(*evidence: Evidence) -> list[tuple[str, str, str]]:
    return [read(line) for line in annotations(evidence)]


def test_a_regressed_run_is_an_error_with_its_reasons_and_the_questions_it_lost() -> None:
    assert told(everything()) == [
        ("error", "faq / vector: regressed", "recall@5 fell, 100 % sure\ncause: index only"),
        ("notice", "faq / vector: worst lost questions", "Why *me*? (1 -> -)\nAnd? (1 -> 7)"),
    ]


def test_a_cancelled_run_is_an_error_that_says_who_did_it() -> None:
    assert told(cancelled()) == [("error", "faq / vector: cancelled", "cancelled by ann")]


@pytest.mark.parametrize(
    ("verdict", "level"),
    [
        (Verdict.UNMEASURED, "error"),
        (Verdict.INCOMPARABLE, "warning"),
        (Verdict.WATCH, "warning"),
    ],
)
def test_the_verdict_says_how_loud_it_is(verdict: Verdict, level: str) -> None:
    said = Finding(rule=Rule.NOISE, verdict=verdict, text="so it is")

    assert told(finished(said, FELL, verdict=verdict)) == [
        (level, f"faq / vector: {verdict}", "so it is")
    ]


@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.IMPROVED, Verdict.BASELINE])
def test_a_good_run_is_not_annotated(verdict: Verdict) -> None:
    said = Finding(rule=Rule.NOISE, verdict=verdict, text="fine")
    good = Evidence(finished(said, BESIDE, verdict=verdict).found, lost=[lost("a?")])

    assert told(good) == []


def test_a_warning_is_told_of_a_good_run_too() -> None:
    blind = Finding(
        rule=Rule.BLIND_SPOT, verdict=Verdict.OK, text="blind", counts=False, warning=True
    )

    assert told(finished(blind, verdict=Verdict.OK)) == [
        ("warning", "faq / vector: how sure", "blind")
    ]


@given(st.text(), st.text())
def test_no_text_breaks_out_of_its_command(set_name: str, reason: str) -> None:
    said = Finding(rule=Rule.NOISE, verdict=Verdict.REGRESSED, text=reason)
    evidence = finished(said, cause=Cause.CORPUS)
    evidence.found.version.set_name = set_name

    (line,) = annotations([evidence])

    assert len(line.splitlines()) == 1
    assert read(line) == (
        "error",
        one_line(f"{set_name} / vector: regressed"),
        f"{one_line(reason)}\ncause: corpus: texts or vectors",
    )


def test_an_evaluation_without_a_verdict_is_an_error() -> None:
    said = failure(UnmeasuredError("not finished after 3 seconds;\nrun 4 stays queued"))

    assert read(said) == (
        "error", "recallwatch: no verdict", "not finished after 3 seconds;\nrun 4 stays queued",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        (
            {"GITHUB_ACTOR": "ann", "GITHUB_RUN_ID": "7", "GITHUB_REPOSITORY": "o/r",
             "GITHUB_SERVER_URL": "https://github.example"},
            "ann https://github.example/o/r/actions/runs/7",
        ),
        (
            {"GITLAB_USER_LOGIN": "ben", "CI_JOB_URL": "https://gitlab.example/o/r/-/jobs/8"},
            "ben https://gitlab.example/o/r/-/jobs/8",
        ),
        ({"CI_JOB_URL": "https://gitlab.example/o/r/-/jobs/8"},
         "https://gitlab.example/o/r/-/jobs/8"),
    ],
)  # fmt: skip
def test_who_asked_is_what_the_ci_server_says(
    environment: Mapping[str, str], expected: str | None
) -> None:
    assert requester(environment) == expected


def test_texts_that_are_printed_cannot_give_orders_on_github(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with commands_stopped():
        print("::add-mask::everything")  # noqa: T201 - stands for the table

    first, shown, last = capsys.readouterr().out.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert shown == "::add-mask::everything"
    assert last == f"::{token}::"
    assert len(token) >= 16


def test_nothing_is_stopped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    with commands_stopped():
        pass

    assert capsys.readouterr().out == ""


def test_the_summary_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))

    assert append_summary(["one\n", "two \ud800\n"]) is None

    assert file.read_text() == "before\none\ntwo ?\n"


def test_a_summary_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary.md"))

    warning = append_summary(["one\n"])

    assert warning is not None
    assert warning.endswith("(GITHUB_STEP_SUMMARY): No such file or directory")


def test_without_a_summary_file_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    assert append_summary(["one\n"]) is None


def test_a_summary_that_github_would_refuse_is_cut_between_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * (SUMMARY_LIMIT - 1000))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))

    append_summary(["a" * 400, "ä" * 400, "b"])

    assert file.stat().st_size <= SUMMARY_LIMIT
    assert file.read_text().endswith("a" * 400 + "\n2 more: recallwatch runs list\n")


@given(st.lists(st.text(max_size=20), max_size=6), st.integers(-5, 150))
def test_what_fits_is_never_over_the_limit(sections: list[str], limit: int) -> None:
    kept = fitting(sections, limit)

    assert len(kept.encode("utf-8", "replace")) <= max(limit, 0)
    whole = "".join(sections)
    assert kept == whole or not kept or kept.endswith("more: recallwatch runs list\n")
