"""Processes of the stack: start them detached, know them again, end them for certain."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import structlog

from cli.embedded.account import Account
from cli.embedded.layout import user_name
from cli.embedded.logs import appending
from pipeline.errors import UsageError

Steps = Sequence[tuple[signal.Signals, float]]
"""Signals to send in turn, each with the seconds to wait before the next one."""

KILL: Steps = ((signal.SIGKILL, 10.0),)

_POLL_SECONDS = 0.01
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = structlog.get_logger()


def birth_of(pid: int) -> str | None:
    """Return what tells process `pid` from an earlier or later one of that number, or None.

    On Linux that is the boot and the clock tick since then. The creation time in seconds moves
    whenever somebody sets the clock, as happens to virtual machines that were asleep.
    """
    with suppress(OSError):
        # The program's name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return f"{_BOOT_ID.read_text().strip()}/{int(fields[19])}"
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None


def is_alive(process: psutil.Process) -> bool:
    """Return whether the process still runs: one that ended but was not reaped does not."""
    try:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            return True
    except psutil.NoSuchProcess:
        return False
    # If it was a child of this process, its end has to be taken note of.
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return False


def all_processes() -> Iterator[psutil.Process]:
    """Yield the processes of this machine, looked at afresh.

    `psutil.process_iter` keeps its objects: one made for an earlier process of the same number
    takes the present one for dead.
    """
    for pid in psutil.pids():
        with suppress(psutil.Error):
            yield psutil.Process(pid)


def bearing_mark(program: str, mark: str, account: Account) -> Iterator[psutil.Process]:
    """Yield the processes of `program` and `account` whose command line holds `mark`."""
    for process in all_processes():
        with suppress(psutil.Error):
            if (
                process.name() == program
                and process.uids().real == account.uid
                and mark in " ".join(process.cmdline())
            ):
                yield process


def spawn(
    command: Sequence[str],
    *,
    log_file: Path,
    account: Account,
    folder: Path | None = None,
    environment: Mapping[str, str],
) -> psutil.Process:
    """Start a process that outlives this one, its output appended to `log_file`.

    It leads a session of its own, so that Ctrl-C in the terminal reaches only the command. It
    inherits no open file, hence no lock. Raises `UsageError` when the program cannot be run.
    """
    with appending(log_file) as output, _naming(command[0], account):
        started = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=account.switch_uid,
            group=account.switch_gid,
            extra_groups=account.switch_groups,
        )
    # It outlives this command on purpose: without this, Python would warn that it still runs.
    started.returncode = 0
    return psutil.Process(started.pid)


def run(
    command: Sequence[str],
    *,
    log_file: Path,
    account: Account,
    folder: Path,
    environment: Mapping[str, str],
    script: str = "",
) -> bool:
    """Run a program to its end, with `script` as input; return whether it succeeded.

    Its output is appended to `log_file`. Raises `UsageError` when the program cannot be run.
    """
    with appending(log_file) as output, _naming(command[0], account):
        finished = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=script.encode(),
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            user=account.switch_uid,
            group=account.switch_gid,
            extra_groups=account.switch_groups,
        )
    return finished.returncode == 0


@contextmanager
def _naming(program: str, account: Account) -> Iterator[None]:
    """Turn the failure to run a program into one line that names it."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:
        who = f" as user {user_name(account.uid)}" if account.stands_in else ""
        raise UsageError(f"{program} cannot be run{who}: {error}") from error


def end(processes: Iterable[psutil.Process], steps: Steps) -> None:
    """Send the signals in turn until all processes are gone."""
    alive = [process for process in processes if is_alive(process)]
    for number, seconds in steps:
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        alive = _wait_for_end(alive, seconds)
        if not alive:
            return
    if number is signal.SIGKILL:
        log.warning("processes_survived", pids=[process.pid for process in alive])


def _wait_for_end(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return those that are still alive after `seconds`."""
    deadline = time.monotonic() + seconds
    alive = processes
    while alive and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        alive = [process for process in alive if is_alive(process)]
    return alive
