"""`recallwatch eval --ci --junit` as a job runs it: a good re-index, a bad one, none at all."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Finished, Project, Record
from tests.acceptance.conftest import standing_project
from tests.junit_reports import read, results

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "ann",
    "GITHUB_RUN_ID": "7",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_SERVER_URL": "https://github.example",
}

MUST_PASS = guides.questions()[0]["question"]
"""A question whose document is spoiled."""


@dataclass(frozen=True)
class Job:
    """What a job's step printed, and the folder that it left its files in."""

    ended: Finished
    folder: Path

    @property
    def annotations(self) -> list[str]:
        """The workflow commands that GitHub acts on."""
        kept, stopped = [], None
        for line in self.ended.out.splitlines():
            if stopped:
                stopped = None if line == f"::{stopped}::" else stopped
            elif line.startswith("::stop-commands::"):
                stopped = line.removeprefix("::stop-commands::")
            elif line.startswith("::"):
                kept.append(line)
        return kept

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()


@pytest.fixture(scope="module")
def loaded(servers: Servers) -> Iterator[Project]:
    """Give a project with a corpus, and a golden set whose first question must pass."""
    with standing_project(servers, GITHUB) as project:
        first, *others = guides.questions()
        questions = [first | {"must_pass": True}, *others]
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
        project.run("golden", "import", project.write("golden.jsonl", questions))
        yield project


def job(project: Project, name: str, *options: object, code: int) -> Job:
    """Run the step that the README shows, in a job called `name`."""
    folder = project.folder / name
    folder.mkdir()
    ended = project.run(
        "eval", "--ci", "--junit", folder / "recallwatch.xml", "-s", "vector", "-s", "fulltext",
        *options, code=code, GITHUB_STEP_SUMMARY=str(folder / "summary.md"), FORCE_COLOR="1",
    )  # fmt: skip
    return Job(ended, folder)


@pytest.fixture(scope="module")
def good(loaded: Project) -> Job:
    return job(loaded, "good", code=0)


@pytest.fixture(scope="module")
def bad(loaded: Project, good: Job) -> Job:  # noqa: ARG001 - comes first
    loaded.run("corpus", "load", loaded.write("spoiled.jsonl", guides.spoiled_chunks()))
    return job(loaded, "bad", code=1)


def newest(project: Project) -> list[Record]:
    return project.json_rows("runs", "list", "--limit", 2)[::-1]


def test_a_first_run_passes_and_says_that_nothing_was_compared(good: Job, loaded: Project) -> None:
    vector, fulltext = read(good.folder / "recallwatch.xml")

    assert not [line for line in good.annotations if not line.startswith("::warning ")]
    assert vector.attrib["name"] == "default / vector"
    assert fulltext.attrib["failures"] == vector.attrib["failures"] == "0"
    assert results(vector)["first"][0] == "skipped"
    (asked,) = [name for name in results(vector) if name.startswith("must_pass ")]
    assert asked.endswith(MUST_PASS)
    assert results(vector)[asked] == (None, "found at rank 1")
    assert good.summary.count("\n## default / ") + good.summary.startswith("## ") == 2
    for run in newest(loaded):
        assert (run["trigger"], run["requested_by"]) == (
            "ci", "ann https://github.example/o/r/actions/runs/7",
        )  # fmt: skip


def test_a_regression_fails_the_step_and_says_why_wherever_a_reviewer_looks(
    bad: Job, loaded: Project
) -> None:
    run, other = newest(loaded)
    assert (run["verdict"], other["verdict"]) == ("regressed", "ok")

    errors = [line for line in bad.annotations if line.startswith("::error ")]
    assert len(errors) == 1
    assert errors[0].startswith("::error title=default / vector%3A regressed::")
    assert f"1 of 1 must-pass questions missed: {MUST_PASS}%0A" in errors[0]
    (notice,) = [line for line in bad.annotations if line.startswith("::notice ")]
    assert notice.count("%0A") == 9

    vector, fulltext = read(bad.folder / "recallwatch.xml")
    assert results(vector)["must_pass"][0] == "failure"
    (asked,) = [name for name in results(vector) if name.startswith("must_pass ")]
    outcome, said = results(vector)[asked]
    assert outcome == "failure"
    assert "expected: accordion:0" in str(said)
    assert (fulltext.attrib["failures"], fulltext.attrib["errors"]) == ("0", "0")

    assert bad.summary.startswith("## default / vector: regressed")
    change = next(c for c in run["comparison"]["changes"] if c["metric"] == "recall@5")
    row = f"| recall@5 | {change['previous']:.4f} | {change['current']:.4f} |"
    assert f"{row} {change['difference']:+.4f} |" in bad.summary
    assert bad.summary.count("\n- ") >= 10
    assert f"recallwatch runs show {run['id']} --lost" in bad.summary


def test_a_log_is_not_animated(bad: Job) -> None:
    assert "evaluating" not in bad.ended.err


def test_a_verdict_that_does_not_come_is_a_failed_test_too(loaded: Project, bad: Job) -> None:  # noqa: ARG001 - comes first
    late = job(loaded, "late", "--timeout", 0.001, "--k", 4, code=3)

    (suite,) = read(late.folder / "recallwatch.xml")
    (result,) = results(suite).values()
    assert result[0] == "error"
    assert str(result[1]).startswith("not finished after 0.001 seconds; run ")
    assert late.annotations[0].startswith("::error title=recallwatch%3A no verdict::not finished")
    assert late.summary.startswith("## recallwatch: no verdict\n")
    assert "Traceback" not in late.ended.err


def test_a_report_that_could_not_be_written_stops_the_job_before_it_queues(
    loaded: Project, good: Job  # noqa: ARG001 - comes first
) -> None:  # fmt: skip
    before = [run["id"] for run in newest(loaded)]  # the late job's may still be under way

    said = loaded.fails("eval", "--junit", "nowhere/recallwatch.xml")

    assert said.startswith("--junit nowhere/recallwatch.xml: there is no folder nowhere")
    assert [run["id"] for run in newest(loaded)] == before
    assert "--no-wait does not wait" in loaded.fails("eval", "--junit", "a.xml", "--no-wait")


def test_the_trend_shows_the_runs_and_their_verdicts(loaded: Project, bad: Job) -> None:  # noqa: ARG001 - comes first
    shown = loaded.run("runs", "trend", "--strategy", "vector", "-k", 5).out
    (series,) = loaded.json_rows("runs", "trend", "--strategy", "vector", "-k", 5)

    assert series["metric"] == "recall@5"
    assert [run["verdict"] for run in series["runs"]] == ["baseline", "regressed"]
    listed = [run for run in loaded.json_rows("runs", "list") if run["strategy"] == "vector"]
    by_id = {run["id"]: run["metrics"]["recall@5"] for run in listed if run["k"] == 5}
    assert {run["id"]: run["value"] for run in series["runs"]} == by_id
    assert shown.startswith("default / vector: recall@5, chunks, ")
    assert "        b R\n" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "unknown metric 'recal'" in loaded.fails("runs", "trend", "--metric", "recal")
    assert "no run has a recall@7; there are " in loaded.fails(
        "runs", "trend", "--metric", "recall@7", "--strategy", "vector"
    )
