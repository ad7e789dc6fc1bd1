"""Worker processes in the background, shared by the commands that use the stack."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import structlog

from cli.embedded import records
from cli.embedded.account import Account
from cli.embedded.layout import Layout
from cli.embedded.logs import explanation, size_of
from cli.embedded.processes import KILL, Steps, all_processes, end, is_alive, spawn
from cli.embedded.records import Record

MARK_VARIABLE = "_RECALLWATCH_STACK"
"""In the environment of a worker and its children: it finds them when their parent was killed."""

WORKER = "worker"

_STOP: Steps = ((signal.SIGTERM, 10.0),)

log = structlog.get_logger()


@dataclass(frozen=True)
class WorkerProcess:
    """A worker that runs in the background, and the log that it writes to."""

    record: Record
    log_file: Path
    log_start: int

    @property
    def pid(self) -> int:
        """The process id: the parent of the pool processes."""
        return self.record.pid

    @property
    def fingerprint(self) -> str:
        """What the worker was started with, as its starter put it."""
        return self.record.label

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        process = _process_of(self.record)
        return process is not None and is_alive(process)

    @property
    def last_words(self) -> str:
        """The log's line that explains why it stopped, or an empty string."""
        return explanation(self.log_file, self.log_start)


def find(layout: Layout) -> list[WorkerProcess]:
    """Return the workers that run."""
    log_file = layout.log(WORKER)
    known = [
        WorkerProcess(record, log_file, size_of(log_file))
        for record in records.read(layout.workers)
    ]
    return [worker for worker in known if worker.is_running]


def start(
    layout: Layout, command: Sequence[str], environment: Mapping[str, str], fingerprint: str
) -> WorkerProcess:
    """Start a worker and record it. Raises `UsageError` when the program cannot be run."""
    log_file = layout.log(WORKER)
    log_start = size_of(log_file)
    process = spawn(
        command,
        log_file=log_file,
        account=Account.own(),
        environment=os.environ | dict(environment) | {MARK_VARIABLE: layout.mark},
    )
    record = Record.of(process.pid, fingerprint)
    records.write(layout.workers, [*records.read(layout.workers), record])
    log.info("worker_started", pid=process.pid)
    return WorkerProcess(record, log_file, log_start)


def stop_all(layout: Layout) -> None:
    """Let the workers finish what they do, for some seconds; then kill them and their children."""
    leaders = [
        process for worker in find(layout) if (process := _process_of(worker.record)) is not None
    ]
    families = {*leaders, *(child for leader in leaders for child in _children(leader))}
    end(leaders, _STOP)
    end(families.union(_marked(layout.mark)), KILL)
    layout.workers.unlink(missing_ok=True)


def _process_of(record: Record) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(record.pid) if record.is_current else None
    return None


def _children(leader: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return leader.children(recursive=True)
    return []


def _marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the other processes whose environment says that a worker of this stack began them."""
    for process in all_processes():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK_VARIABLE) == mark and process.pid != os.getpid():
                yield process
