"""Runs that somebody cancels while workers are at them, and that go on later."""

from collections.abc import Iterator

import psycopg
import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, wait_until
from tests.acceptance.conftest import standing_project

TIMES = 4
"""How often each of 120 questions is asked, a shard each: long enough for a command to come."""

SIZE = 120 * TIMES


@pytest.fixture(scope="module")
def busy(servers: Servers) -> Iterator[Project]:
    """Give a project whose runs take some seconds."""
    with standing_project(servers, {"RECALLWATCH_EVAL__SHARD_SIZE": "1", "USER": "ann"}) as project:
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
        many = [
            question | {"question": f"{question['question']} Asked for the {n}th time."}
            for question in guides.questions() for n in range(TIMES)
        ]  # fmt: skip
        project.run("golden", "import", project.write("golden.jsonl", many))
        yield project


def figure(project: Project, query: str) -> int:
    with psycopg.connect(project.environment["DATABASE_URL"]) as database:
        row = database.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def is_at_work(project: Project) -> bool:
    done = """
        SELECT count(*) FROM recallwatch.shard WHERE state = 'done'
        AND run_id = (SELECT id FROM recallwatch.run WHERE status = 'running')
    """
    return figure(project, done) > 0


ALIKE = """
SELECT count(*) FROM recallwatch.result a JOIN recallwatch.result b USING (position)
WHERE a.run_id = 1 AND b.run_id = 2
    AND (a.outcome, a.retrieved, a.scores, a.measured, a.missing)
        = (b.outcome, b.retrieved, b.scores, b.measured, b.missing)
"""


def test_a_run_is_cancelled_in_the_middle_and_resumed_to_the_numbers_of_an_undisturbed_one(
    busy: Project,
) -> None:
    (undisturbed,) = busy.evaluate("fulltext")
    waiting = busy.start("eval", "--strategy", "fulltext")
    wait_until(lambda: is_at_work(busy))

    said = busy.run("runs", "cancel", "--all").out
    ended = waiting.finish()

    assert said.startswith("run 2: cancelled, ")
    assert said.endswith("questions were measured; to go on with it: recallwatch runs resume 2\n")
    assert ended.code == 3, ended
    assert ended.out.splitlines()[0].endswith(": cancelled")
    assert "cancelled by ann" in ended.out
    assert busy.run("runs", "list").out.splitlines()[2].endswith("cancelled")
    exported = busy.run("runs", "export", 2)
    n_measured = len(exported.out.splitlines())
    assert 0 < n_measured < SIZE
    assert exported.err == (
        f"warning: run 2 is cancelled: {n_measured} of {SIZE} questions were measured\n"
    )

    resumed = busy.json("runs", "resume", 2)

    (record,) = resumed["runs"]
    assert (resumed["exit_code"], record["status"], record["verdict"]) == (0, "completed", "ok")
    assert (record["scored"], record["compared_to"]) == (SIZE, undisturbed["id"])
    assert record["metrics"] == pytest.approx(undisturbed["metrics"], abs=1e-12)
    assert figure(busy, ALIKE) == SIZE
    kept = "SELECT count(*) FROM recallwatch.shard WHERE run_id = 2 AND token = 1"
    assert figure(busy, kept) >= n_measured, "what was measured is not asked again"


def test_a_run_is_resumed_without_waiting_and_what_has_ended_is_not_cancelled(
    busy: Project,
) -> None:
    (run_id,) = busy.json("eval", "--strategy", "fulltext", "--no-wait")["runs"]
    [cancelled] = busy.json_rows("runs", "cancel", run_id)
    assert (cancelled["cancelled"], cancelled["status"]) == (True, "cancelled")

    assert busy.json("runs", "resume", run_id, "--no-wait") == {"runs": [run_id]}
    again = busy.run("runs", "cancel", run_id, 1).out.splitlines()

    assert again[0].startswith(f"run {run_id}: cancelled, ")
    assert again[1] == "run 1: not cancelled, for it was completed already (baseline)"
    assert busy.run("runs", "cancel", "--all").out == "no run is queued or running\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["cancel", "99"], "there is no run 99; see: recallwatch runs list"),
        (["cancel", "1", "--all"], "name the runs to cancel, or give --all"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    busy: Project, words: list[str], complaint: str
) -> None:
    assert complaint in busy.fails("runs", *words)
