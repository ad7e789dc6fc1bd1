"""Worker processes are shared, replaced and stopped. A sleeping process stands in for Celery."""

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cli.embedded.stack import open_stack
from cli.embedded.status import inspect
from cli.embedded.workers import WorkerProcess
from pipeline.errors import UsageError
from tests.integration.cli.embedded.support import Command, is_alive

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]

# A parent with a child, as a prefork pool; both ignore SIGTERM, as in an endless task.
STUBBORN_SCRIPT = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
time.sleep(600)
"""
STUBBORN = [sys.executable, "-c", STUBBORN_SCRIPT]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def children_of(worker: WorkerProcess) -> list[psutil.Process]:
    return psutil.Process(worker.pid).children()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.embedded.workers._STOP", ((signal.SIGTERM, 0.3),))


def test_a_worker_starts_writes_its_log_and_is_stopped_at_the_end(fresh: Path) -> None:
    command = [sys.executable, "-c", "import os, time; print(os.environ['HI']); time.sleep(600)"]
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(
            command, {"HI": "hello", "PYTHONUNBUFFERED": "1"}, fingerprint="a"
        )
        assert worker.is_running
        assert worker.fingerprint == "a"
        wait_until(lambda: (fresh / "log" / "worker.log").read_text() == "hello\n")
        stack.check_workers()
        (seen,) = inspect(fresh).workers
        assert (seen.pid, seen.label) == (worker.pid, "a")
    assert not is_alive(worker.pid)
    assert not inspect(fresh).workers
    assert not (fresh / "postgres").exists()


def test_a_worker_with_the_same_fingerprint_is_shared_until_the_last_command_leaves(
    fresh: Path,
) -> None:
    first = Command(fresh, "", worker=["a", *SLEEP])
    second = Command(fresh, "", worker=["a", *SLEEP])
    assert first.said["workers"] == second.said["workers"]
    assert list(first.said["workers"]) == ["a"]
    first.leave()
    assert is_alive(second.said["workers"]["a"])
    second.leave()
    assert not is_alive(second.said["workers"]["a"])


def test_a_worker_with_another_fingerprint_is_replaced_when_nobody_else_uses_it(
    fresh: Path,
) -> None:
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        old = stack.ensure_workers(SLEEP, {}, fingerprint="old")
        new = stack.ensure_workers(SLEEP, {}, fingerprint="new")
        assert not old.is_running
        assert [worker.label for worker in inspect(fresh).workers] == ["new"]
        assert new.is_running


def test_a_worker_that_another_command_uses_goes_on_beside_the_new_one(fresh: Path) -> None:
    other = Command(fresh, "", worker=["old", *SLEEP])
    assert other.said
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        stack.ensure_workers(SLEEP, {}, fingerprint="new")
        assert [worker.label for worker in inspect(fresh).workers] == ["old", "new"]
    # The share of the one that stayed was not lost while the other looked who else is there.
    assert is_alive(other.said["workers"]["old"])
    other.leave()
    assert not inspect(fresh).workers


def test_a_worker_left_by_a_killed_command_is_used_and_stopped_by_the_next(fresh: Path) -> None:
    killed = Command(fresh, "", worker=["a", *SLEEP])
    killed.kill()
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(SLEEP, {}, fingerprint="a")
        assert worker.pid == killed.said["workers"]["a"]
    assert not is_alive(worker.pid)


@pytest.mark.usefixtures("impatient")
def test_a_worker_that_does_not_heed_sigterm_is_killed_with_its_children(fresh: Path) -> None:
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(STUBBORN, {}, fingerprint="a")
        wait_until(lambda: children_of(worker))
        children = children_of(worker)
    assert not is_alive(worker.pid)
    assert not any(is_alive(child.pid) for child in children)


@pytest.mark.usefixtures("impatient")
def test_the_children_of_a_killed_worker_are_found_and_killed(fresh: Path) -> None:
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(STUBBORN, {}, fingerprint="a")
        wait_until(lambda: children_of(worker))
        children = children_of(worker)
        psutil.Process(worker.pid).kill()
        wait_until(lambda: not worker.is_running)
        assert all(is_alive(child.pid) for child in children)
    assert not any(is_alive(child.pid) for child in children)


def test_a_worker_that_stops_is_reported_with_the_last_words_of_its_log(fresh: Path) -> None:
    command = [sys.executable, "-c", "raise RuntimeError('no such broker')"]
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(command, {}, fingerprint="a")
        wait_until(lambda: not worker.is_running)
        with pytest.raises(
            UsageError, match=r"worker stopped: RuntimeError: no such broker; log: .*worker\.log"
        ):
            stack.check_workers()


def test_a_worker_that_died_is_started_anew(fresh: Path) -> None:
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        first = stack.ensure_workers(SLEEP, {}, fingerprint="a")
        psutil.Process(first.pid).kill()
        wait_until(lambda: not first.is_running)
        second = stack.ensure_workers(SLEEP, {}, fingerprint="a")
        assert second.is_running
        assert second.pid != first.pid
        stack.check_workers()


def test_a_worker_command_that_cannot_be_run_is_one_clear_error(fresh: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"/nowhere/celery cannot be run.*No such file"),
        open_stack(fresh, postgres=False, valkey=False) as stack,
    ):
        stack.ensure_workers(["/nowhere/celery"], {}, fingerprint="a")


def test_a_worker_inherits_no_lock(fresh: Path) -> None:
    with open_stack(fresh, postgres=False, valkey=False) as stack:
        worker = stack.ensure_workers(SLEEP, {}, fingerprint="a")
        opened = {file.path for file in psutil.Process(worker.pid).open_files()}
    assert not any(path.endswith(".lock") for path in opened)
