"""The commands that change runs, on a database; where they ring, what workers do is done."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from cli import doctor, waiting
from cli.main import main
from db.results import ResultRow
from db.session import Database
from pipeline.settings import Settings
from tests.integration.db.building import (
    claimed,
    end_run,
    execute,
    failed,
    import_set,
    questions,
    run_of,
    scored,
    shard_of,
    start_run,
    store,
    store_all,
)
from workers import doorbell, resuming
from workers.context import Context
from workers.doorbell import EVALUATE_SHARD, REDUCE_RUN
from workers.reducing import reduce

WITHOUT_VECTORS = {"needs_vectors": False}


@pytest.fixture
def ctx(
    url: str, valkey: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Context]:
    """Give what a worker has, in a folder and an environment in which commands find the servers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("REDIS_URL", valkey)
    monkeypatch.setenv("USER", "ann")
    # There is no corpus here: whether it is as it was is tested where there is one.
    monkeypatch.setattr(resuming, "_need_same_corpus", lambda *_: None)
    context = Context(Settings(database_url=SecretStr(url), redis_url=SecretStr(valkey)))
    yield context
    context.close()


@pytest.fixture
def run(db: Database, ctx: Context) -> int:  # noqa: ARG001 - commands find the servers by it
    """Start a run of four questions in two shards, of which one is done."""
    import_set(db, questions(4))
    run_id = start_run(db, WITHOUT_VECTORS, shard_size=2)
    store(db, claimed(db, run_id, 0), [scored(0), scored(1)])
    return run_id


def work_with(
    ctx: Context, rows: Sequence[ResultRow], patch: pytest.MonkeyPatch
) -> list[tuple[int, ...]]:
    """Have shards that are rung stored with these rows, and their runs reduced; list the shards."""
    rung: list[tuple[int, ...]] = []

    def ring(task: str, _queue: str, messages: Iterable[tuple[int, ...]]) -> None:
        for arguments in list(messages):
            run_id = arguments[0]
            if task == EVALUATE_SHARD:
                rung.append(arguments)
                hold = claimed(ctx.database, *arguments)
                if store(ctx.database, hold, rows[hold.first : hold.last + 1]):
                    reduce(ctx, run_id)
            elif task == REDUCE_RUN:
                reduce(ctx, run_id)

    patch.setattr(doorbell, "_ring", ring)
    return rung


def command(*words: object) -> int:
    return main(["runs", *map(str, words)])


def test_cancel_says_for_each_run_what_it_did(
    db: Database, run: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done, broken = end_run(db, start_run(db)), end_run(db, start_run(db), "unmeasured", "failed")
    queued = start_run(db, shard_size=2)

    assert command("cancel", run, done, broken, run) == 0

    how = f"to go on with it: recallwatch runs resume {run}"
    assert capsys.readouterr().out.splitlines() == [
        f"run {run}: cancelled, 2 of 4 questions were measured; {how}",
        f"run {done}: not cancelled, for it was completed already (ok)",
        f"run {broken}: not cancelled, for it was failed already",
    ]
    assert run_of(db, run).reasons == ["cancelled by ann"]
    assert command("cancel", "--all", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"run": queued, "cancelled": True, "status": "cancelled", "verdict": "unmeasured",
         "questions": 4, "measured": 0}
    ]  # fmt: skip
    assert command("cancel", "--all") == 0
    assert capsys.readouterr().out == "no run is queued or running\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["cancel", 999], "there is no run 999; see: recallwatch runs list"),
        (["resume", 999], "there is no run 999; see: recallwatch runs list"),
        (["retry-failed", 999], "there is no run 999; see: recallwatch runs list"),
        (["cancel"], "name the runs to cancel, or give --all (see recallwatch runs cancel --help)"),
    ],
)
@pytest.mark.usefixtures("run")
def test_what_cannot_be_is_one_line_and_2(
    capsys: pytest.CaptureFixture[str], words: list[object], complaint: str
) -> None:
    assert command(*words) == 2
    assert capsys.readouterr().err == f"error: {complaint}\n"


@pytest.mark.parametrize(
    ("value", "verdict", "code"), [(1.0, "ok", 0), (0.0, "regressed", 1), (None, "unmeasured", 3)]
)
def test_resume_waits_for_the_verdict_and_ends_with_its_code(
    ctx: Context, db: Database, run: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], value: float | None, verdict: str, code: int,
) -> None:  # fmt: skip
    before = start_run(db, WITHOUT_VECTORS)
    store_all(db, before, [scored(position) for position in range(4)])
    assert reduce(ctx, before)
    later = start_run(db, WITHOUT_VECTORS, shard_size=2)
    store(db, claimed(db, later, 0), [scored(0), scored(1)])
    command("cancel", later)
    capsys.readouterr()
    rows = [failed(p) if value is None else scored(p, value, value, value) for p in range(4)]
    rung = work_with(ctx, rows, monkeypatch)

    assert command("resume", later, "--no-start") == code

    out = capsys.readouterr().out.splitlines()
    assert rung == [(later, 1)], "what was measured is not asked again"
    assert out[0] == (
        f"run {later} goes on: 4 of 4 questions are measured; see: recallwatch runs show {later}"
    )
    assert out[2].startswith(f"run {later}: vector, k=5, chunks, default v")
    assert f": {verdict}" in out[2]
    assert run_of(db, run).status in {"queued", "running"}


def test_retry_failed_asks_again_and_prints_what_eval_prints(
    ctx: Context, db: Database, run: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    store(db, claimed(db, run, 1), [scored(2), failed(3)])
    assert reduce(ctx, run)
    good = [scored(position) for position in range(4)]
    rung = work_with(ctx, good, monkeypatch)

    assert command("retry-failed", run, "--no-start", "--json") == 0

    printed = json.loads(capsys.readouterr().out)
    [record] = printed["runs"]
    assert (printed["exit_code"], record["id"], record["verdict"]) == (0, run, "baseline")
    assert (record["scored"], record["failed"]) == (4, 0)
    assert rung == [(run, 1)]


def test_without_waiting_it_is_said_what_was_begun(
    db: Database, ctx: Context, run: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(doorbell, "_ring", lambda *_: None)
    store(db, claimed(db, run, 1), [scored(2), failed(3)])
    assert reduce(ctx, run)

    assert command("retry-failed", run, "--no-wait") == 0
    assert capsys.readouterr().out == (
        f"run {run} goes on: 1 failed question is asked again; see: recallwatch runs show {run}\n"
    )
    command("cancel", run)
    capsys.readouterr()
    assert command("resume", run, "--no-wait", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"runs": [run]}
    assert run_of(db, run).status == "queued"


def test_an_interrupt_says_that_the_run_goes_on_and_how_to_end_it(
    run: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    command("cancel", run)
    monkeypatch.setattr(doorbell, "_ring", lambda *_: None)
    monkeypatch.setattr(waiting.Waiter, "wait", interrupt)
    capsys.readouterr()

    assert command("resume", run, "--no-start") == 130

    assert capsys.readouterr().err == (
        f"error: interrupted; run {run} goes on when workers run; to end it: recallwatch runs"
        f" cancel {run}\n"
    )


def test_a_resumed_run_that_no_worker_takes_is_told_though_some_of_it_was_done(
    db: Database, run: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command("cancel", run)
    monkeypatch.setattr(doorbell, "_ring", lambda *_: None)
    monkeypatch.setattr(waiting, "NOBODY_AFTER", 0.1)
    monkeypatch.setattr(waiting, "answering", list)
    capsys.readouterr()

    assert command("resume", run, "--no-start") == 2

    said = capsys.readouterr().err
    assert said.startswith("error: no worker took a shard in 0.1 seconds and none answers; start")
    assert said.endswith(f"recallwatch runs cancel {run}\n")
    assert shard_of(db, run, 0).state == "done"


def test_a_run_that_somebody_cancels_ends_the_wait_for_it(
    db: Database, run: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command("cancel", run)
    capsys.readouterr()
    monkeypatch.setattr(doorbell, "_ring", lambda *_: None)
    monkeypatch.setattr(
        waiting.Waiter, "_look_after", lambda *_: command("cancel", run, "--json") and None
    )

    assert command("resume", run, "--no-start", "--timeout", 20) == 3

    heading, reason = capsys.readouterr().out.splitlines()[-2:]
    assert heading.startswith(f"run {run}: vector, k=5, chunks, default v")
    assert heading.endswith(": cancelled")
    assert reason == "  cancelled by ann"
    assert run_of(db, run).status == "cancelled"


def test_doctor_names_runs_that_nobody_works_on_and_what_to_do(
    db: Database, ctx: Context, run: int
) -> None:
    execute(db, "UPDATE recallwatch.run SET created_at = now() - interval '9 minutes'")

    [finding] = doctor._runs(ctx)
    assert (finding.health, finding.part) == ("note", "runs")
    assert finding.seen == f"no worker has a shard of run {run} (queued 9 minutes ago)"
    assert finding.advice is not None
    assert finding.advice.endswith(f"or end it: recallwatch runs cancel {run}")

    claimed(db, run, 1)
    [finding] = doctor._runs(ctx)
    assert (finding.health, finding.seen) == ("ok", "1 queued or running")
