"""What a CI job is told, also when an evaluation comes to no verdict."""

import io
from pathlib import Path

import click
import pytest
from rich.console import Console

from cli.junit import UNFINISHED
from cli.reports import Reports
from pipeline.errors import UnmeasuredError
from tests.junit_reports import read, results
from workers.context import Context


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    return file


def reports(junit: Path | None = None, *, annotate: bool = True, as_json: bool = False) -> Reports:
    return Reports(annotate=annotate, junit=junit, as_json=as_json, err=Console(file=io.StringIO()))


def fail(which: Reports) -> None:
    with pytest.raises(UnmeasuredError), which.open():
        raise UnmeasuredError("not finished")


def test_no_verdict_is_told_in_each_report(
    tmp_path: Path, summary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(reports(tmp_path / "a.xml"))

    assert capsys.readouterr().out == "::error title=recallwatch%3A no verdict::not finished\n"
    assert summary.read_text() == "## recallwatch: no verdict\n\nnot finished\n\n"
    (suite,) = read(tmp_path / "a.xml")
    assert results(suite) == {"evaluation": ("error", "not finished")}


def test_json_on_standard_output_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    fail(reports(as_json=True))

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("::error ")


def test_what_was_not_asked_for_is_not_told(
    tmp_path: Path, summary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = reports(annotate=False)
    fail(silent)
    with silent.open():
        silent.write(Context.__new__(Context), [])

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert not summary.exists()


def test_whatever_ends_the_command_leaves_a_failed_test(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    with pytest.raises(KeyboardInterrupt), reports(path).open():
        raise KeyboardInterrupt

    (suite,) = read(path)
    assert results(suite) == {"evaluation": ("error", UNFINISHED)}


def test_a_missing_folder_is_told_before_anything_is_done(tmp_path: Path) -> None:
    done = []
    with (
        pytest.raises(click.UsageError, match="there is no folder"),
        reports(tmp_path / "nowhere" / "a.xml").open(),
    ):
        done.append(1)

    assert done == []


def test_a_summary_that_cannot_be_written_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    shown = io.StringIO()
    fail(Reports(annotate=True, junit=None, as_json=False, err=Console(file=shown, width=500)))

    assert shown.getvalue().startswith("warning: the summary could not be written to ")
