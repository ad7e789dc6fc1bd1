import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cli.embedded.account import Account
from cli.embedded.processes import all_processes, bearing_mark, birth_of, end, is_alive, run, spawn
from pipeline.errors import UsageError

GONE = 2**22 + 1
"""Above the largest process id that Linux gives."""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[psutil.Process]:
    process = spawn(
        ["/bin/sleep", "600"],
        log_file=tmp_path / "log",
        account=Account.own(),
        environment=os.environ,
    )
    yield process
    end([process], [(signal.SIGKILL, 5.0)])


def test_a_process_is_told_from_another_of_its_number_by_its_birth(
    sleeper: psutil.Process,
) -> None:
    assert birth_of(sleeper.pid) == birth_of(sleeper.pid)
    assert birth_of(sleeper.pid) != birth_of(os.getpid())
    assert birth_of(GONE) is None


def test_without_proc_the_creation_time_tells(
    sleeper: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.embedded.processes._BOOT_ID", Path("/nowhere"))
    assert birth_of(sleeper.pid) == f"{sleeper.create_time():.2f}"
    assert birth_of(GONE) is None


def test_a_spawned_process_leads_a_session_and_writes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = spawn(
        [sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid(), os.getcwd())"],
        log_file=log,
        account=Account.own(),
        folder=tmp_path,
        environment={},
    )
    deadline = time.monotonic() + 20
    while is_alive(process):
        assert time.monotonic() < deadline
    assert log.read_text() == f"True {tmp_path}\n"


def test_a_child_that_ended_counts_as_gone_and_leaves_no_zombie(tmp_path: Path) -> None:
    process = spawn(
        ["/bin/sh", "-c", ":"], log_file=tmp_path / "log", account=Account.own(), environment={}
    )
    deadline = time.monotonic() + 20
    while is_alive(process):
        assert time.monotonic() < deadline
    assert not psutil.pid_exists(process.pid)


def test_ending_goes_on_to_the_next_signal_only_if_the_first_does_not_do(
    tmp_path: Path, sleeper: psutil.Process
) -> None:
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); "
    script += "time.sleep(600)"
    log = tmp_path / "stubborn"
    stubborn = spawn(
        [sys.executable, "-u", "-c", script], log_file=log, account=Account.own(), environment={}
    )
    while not log.read_text():
        time.sleep(0.01)
    started = time.monotonic()
    end([sleeper, stubborn], [(signal.SIGTERM, 0.2), (signal.SIGKILL, 20.0)])
    assert time.monotonic() - started < 10
    assert not is_alive(sleeper)
    assert not is_alive(stubborn)


def test_ending_what_has_ended_is_no_fault(sleeper: psutil.Process) -> None:
    sleeper.kill()
    end([sleeper, sleeper], [(signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)])
    end([sleeper], [(signal.SIGTERM, 5.0)])
    assert not is_alive(sleeper)


def test_the_mark_is_looked_for_in_processes_of_the_program_and_account(
    tmp_path: Path,
) -> None:
    mark = f"recallwatch-mark-{tmp_path.name}"
    # It waits by a built-in: a child, before it becomes another program, bears the mark as well.
    script = ["/bin/sh", "-c", "read line", mark]
    with subprocess.Popen(script, stdin=subprocess.PIPE) as process:
        name = psutil.Process(process.pid).name()
        try:
            found = [found.pid for found in bearing_mark(name, mark, Account.own())]
            assert found == [process.pid]
            assert not list(bearing_mark("postgres", mark, Account.own()))
            assert not list(bearing_mark(name, "another", Account.own()))
            stranger = Account(uid=54321, gid=54321, stands_in=True)
            assert not list(bearing_mark(name, mark, stranger))
        finally:
            process.kill()


def test_a_process_whose_number_was_used_before_is_found_alive(sleeper: psutil.Process) -> None:
    # What psutil keeps of a process that had the number before.
    (kept,) = (process for process in psutil.process_iter() if process == sleeper)
    vars(kept)["_gone"] = True
    found = [process for process in all_processes() if process.pid == sleeper.pid]
    assert [is_alive(process) for process in found] == [True]
    psutil.process_iter.cache_clear()


def test_running_gives_the_script_as_input_and_the_output_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    common = {"log_file": log, "account": Account.own(), "folder": tmp_path, "environment": {}}
    assert run(["/bin/cat"], script="hello\n", **common)  # type: ignore[arg-type]  # a mixed dict
    assert not run(["/bin/sh", "-c", "exit 1"], **common)  # type: ignore[arg-type]  # the same
    assert log.read_text() == "hello\n"


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^/nowhere/x cannot be run: .*No such file"):
        spawn(["/nowhere/x"], log_file=tmp_path / "log", account=Account.own(), environment={})
