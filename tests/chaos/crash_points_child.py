"""The process that dies: it does a worker's work and kills itself at the n-th point.

A point is the moment before or after a commit, an HTTP request or a message. The zygote, started
once as `python -m tests.chaos.crash_points_child`, imports everything and opens nothing; each job
that comes in on standard input is done by a fork of it, which opens its own connections. Jobs and
reports are pickles, one after the other.
"""

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import httpx
import httpx2
import psycopg
import pytest
from sqlalchemy.orm import configure_mappers

from pipeline.log import configure
from pipeline.settings import LogSettings, Settings
from tests.integration.workers.working import TASKS, Rung
from workers import doorbell
from workers.context import Context
from workers.enqueue import Request, start
from workers.resuming import cancel, resume, retry_failed
from workers.scheduling import tick
from workers.sweeping import sweep

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

IMPORTED_LATE = ("pipeline.embedding.remote", "openai.resources", "anyio._backends._asyncio",
                 "httpcore", "httpcore2", "h11", "anyio.streams.tls")  # fmt: skip
"""What the product imports where it is first needed, and takes long."""

NOW = datetime(2030, 1, 3, tzinfo=UTC)
"""When schedules are looked at; `EARLIER` they were seen first."""
EARLIER = datetime(2030, 1, 1, 12, tzinfo=UTC)

ACTS: Mapping[str, Callable[[Context, Sequence[int]], object]] = {
    "start": lambda ctx, _: start(ctx, Request()),
    "tick": lambda ctx, _: tick(ctx, NOW),
    "sweep": lambda ctx, _: sweep(ctx, quiet=0),
    "cancel": lambda ctx, run_ids: cancel(ctx, run_ids, by="a person"),
    "resume": lambda ctx, run_ids: [resume(ctx, run_id) for run_id in run_ids],
    "retry_failed": lambda ctx, run_ids: [retry_failed(ctx, run_id) for run_id in run_ids],
}
"""What a person, a schedule or a sweep does, to runs where it is done to runs."""


@dataclass(frozen=True, slots=True)
class Job:
    """An act, then the messages, and with `work` those that they lead to; death at a point.

    Points count from 1; None: no death. `environment` holds the channels' addresses.
    """

    settings: Settings
    environment: Mapping[str, str]
    act: str | None = None
    run_ids: Sequence[int] = ()
    messages: Sequence[Rung] = ()
    work: bool = False
    die_at: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A moment at which a process may die: in which task, and before or after what."""

    task: str
    moment: str

    def __str__(self) -> str:
        return f"{self.task}: {self.moment}"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that has left the process."""

    message: Rung


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is worked on from now on; None: the one before was done with."""

    message: Rung | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended; a negative code is the signal's number."""

    code: int


Report = Point | Sent | Taken | Ended
Tell = Callable[[Report], object]


class Worker:
    """Does a job, reports each point, and dies at one of them."""

    def __init__(self, job: Job, tell: Tell) -> None:
        self._job = job
        self._tell = tell
        self._doing = job.act or ""
        self._waiting = list(job.messages)
        self._passed = 0

    def run(self) -> None:
        os.environ.update(self._job.environment)
        self._watch(pytest.MonkeyPatch())
        ctx = Context(self._job.settings)
        if self._job.act is not None:
            ACTS[self._job.act](ctx, self._job.run_ids)
        while self._waiting:
            task, arguments = self._waiting.pop(0)
            self._doing = task.removeprefix("recallwatch.")
            self._tell(Taken((task, arguments)))
            TASKS[task](ctx, *arguments)
            self._tell(Taken(None))
        ctx.close()

    def _watch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            psycopg.Connection, "commit", self._around("commit", psycopg.Connection.commit)
        )
        patch.setattr(httpx.Client, "send", self._around("POST", httpx.Client.send))
        patch.setattr(httpx2.AsyncClient, "send", self._around_async(httpx2.AsyncClient.send))
        patch.setattr(doorbell, "_ring", self._ring)

    def _around(
        self, name: str, action: Callable[Parameters, Returned]
    ) -> Callable[Parameters, Returned]:
        def watched(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            self._reach(f"before {name}")
            returned = action(*args, **kwargs)
            self._reach(f"after {name}")
            return returned

        return watched

    def _around_async(self, send: Any) -> Callable[..., Any]:  # noqa: ANN401 - httpx's own, handed on
        async def watched(*args: object, **kwargs: object) -> object:
            self._reach("before POST")
            response = await send(*args, **kwargs)
            self._reach("after POST")
            return response

        return watched

    def _ring(self, task: str, _queue: str, messages: Iterable[tuple[int, ...]]) -> None:
        for message in [(task, tuple(arguments)) for arguments in messages]:
            self._reach("before message")
            self._tell(Sent(message))
            if self._job.work:
                self._waiting.append(message)
            self._reach("after message")

    def _reach(self, moment: str) -> None:
        self._tell(Point(self._doing, moment))
        self._passed += 1
        if self._passed == self._job.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def _work_in_a_fork(job: Job, tell: Tell) -> int:
    """Return the exit code of a process of its own that did the job."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            Worker(job, tell).run()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it was, the fork must not go on as a zygote
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Do jobs until standard input ends."""
    configure(LogSettings(level="error"))
    configure_mappers()
    for module in IMPORTED_LATE:
        import_module(module)
    reports = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(report: Report) -> None:
        os.write(reports, pickle.dumps(report))

    while True:
        try:
            job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
        except EOFError:
            return
        tell(Ended(_work_in_a_fork(job, tell)))


if __name__ == "__main__":
    # Under its real name, as the process that reads the reports knows the classes by it.
    import_module("tests.chaos.crash_points_child").main()
