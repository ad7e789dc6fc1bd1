"""Commands that share one stack, are interrupted, or lose their worker."""

import json

import psutil
import psycopg
import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, wait_until
from tests.acceptance.conftest import standing_project


def test_the_embedded_stack_serves_a_project_from_the_first_command_to_the_verdict(
    fresh: Project,
) -> None:
    guides.load(fresh)
    assert fresh.processes() == []
    first = fresh.start("eval", "--json")
    second = fresh.start("eval", "--json")
    ended = [first.finish(), second.finish()]
    assert [each.code for each in ended] == [0, 0], ended
    assert [each.err for each in ended] == ["", ""]
    assert fresh.processes() == []
    runs = fresh.json_rows("runs", "list")
    assert len(runs) == 6
    assert {run["status"] for run in runs} == {"completed"}
    for strategy in ("vector", "fulltext", "hybrid"):
        one, other = (run for run in runs if run["strategy"] == strategy)
        assert one["metrics"] == pytest.approx(other["metrics"], abs=1e-12)


def test_ctrl_c_stops_the_command_and_the_run_goes_on_with_the_next(fresh: Project) -> None:
    guides.load(fresh)
    command = fresh.start("eval", "--strategy", "vector")
    wait_until(lambda: _workers(fresh))
    command.press_ctrl_c()
    ended = command.finish()
    assert fresh.processes() == []
    (run,) = fresh.json_rows("runs", "list")
    told, how = ended.complaint.split(": ")
    assert (ended.code, told.split(";")[0]) == (130, "interrupted")
    assert how == f"recallwatch runs cancel {run['id']}"
    assert run["status"] in {"queued", "running", "completed"}
    with fresh.up():
        assert fresh.wait_for_run(run["id"])["scored"] == 120


def test_up_serves_other_commands_and_ctrl_c_stops_all(fresh: Project) -> None:
    guides.load(fresh)
    up = fresh.start("up")
    urls = [up.read_line_with(name) for name in ("DATABASE_URL=", "REDIS_URL=")]
    assert all(line.startswith("export ") for line in urls)
    assert "2 worker processes" in up.read_line_with("ready")
    workers = _workers(fresh)
    (run,) = fresh.evaluate("hybrid")
    assert run["verdict"] == "baseline"
    state = fresh.json("status")
    assert [worker["pid"] for worker in state["workers"]] == [workers[0].pid]
    assert state["postgres"]
    assert state["valkey"]
    assert any(user["label"].endswith(" up") for user in state["users"])
    assert _workers(fresh) == workers
    doctor = {finding["part"]: finding for finding in fresh.json_rows("doctor")}
    assert doctor["workers"]["health"] == "ok"
    # Nobody is told of anything: no channel is named.
    assert doctor.pop("channels")["health"] == "note"
    assert {finding["health"] for finding in doctor.values()} == {"ok"}
    up.press_ctrl_c()
    assert up.finish().code == 0
    assert fresh.processes() == []
    state = fresh.json("status")
    assert (state["postgres"], state["valkey"], state["workers"]) == (None, None, [])


def test_killing_a_pool_process_and_then_the_worker_changes_no_number(servers: Servers) -> None:
    environment = {"RECALLWATCH_EVAL__SHARD_SIZE": "20", "RECALLWATCH_QUEUE__LEASE": "5"}
    with standing_project(servers, environment) as project:
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
        many = [
            question | {"question": f"{question['question']} Asked for the {n}th time."}
            for question in guides.questions() for n in range(10)
        ]  # fmt: skip
        project.run("golden", "import", project.write("golden.jsonl", many))
        command = project.start("eval", "--strategy", "vector", "--json")
        wait_until(lambda: _shards_done(project) >= 3)
        (worker,) = _workers(project)
        worker.children()[0].kill()
        wait_until(lambda: _shards_done(project) >= 10)
        worker.kill()
        assert _shards_done(project) < 60, "the run was over before the worker was killed"
        ended = command.finish()
        assert ended.code == 0, ended
        (first,) = json.loads(ended.out)["runs"]
        (second,) = project.evaluate("vector")
        assert (first["scored"], first["failed"]) == (1200, 0)
        # Shards are stored in another order, so the means are summed in another.
        assert first["metrics"] == pytest.approx(second["metrics"], abs=1e-12)
        assert (second["comparison"]["lost"], second["comparison"]["won"]) == (0, 0)


def test_doctor_says_what_is_missing_and_status_starts_nothing(fresh: Project) -> None:
    state = fresh.json("status")
    assert (state["postgres"], state["valkey"]) == (None, None)
    assert not fresh.state.exists()
    found = {finding["part"]: finding for finding in fresh.json_rows("doctor", code=3)}
    assert found["corpus"]["health"] == "fault"
    assert "recallwatch corpus load" in found["corpus"]["seen"]
    assert {part for part, finding in found.items() if finding["health"] == "fault"} == {"corpus"}
    assert found["golden sets"]["advice"] == "run: recallwatch golden import FILE"


def _workers(project: Project) -> list[psutil.Process]:
    """Return the leading process of each worker, not its pool."""
    found = [process for process in project.processes() if "workers.app" in process.cmdline()]
    return [process for process in found if process.ppid() not in {other.pid for other in found}]


def _shards_done(project: Project) -> int:
    with psycopg.connect(project.environment["DATABASE_URL"]) as database:
        row = database.execute(
            "SELECT count(*) FROM recallwatch.shard WHERE state = 'done'"
        ).fetchone()
    assert row is not None
    return int(row[0])
