"""The `recallwatch` command as a user meets it: processes of its own, run in a project's folder."""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg

from cli.embedded.layout import Layout
from tests.acceptance.warm import Command, Starter

Record = dict[str, Any]

REPOSITORY = Path(__file__).parents[2]

TIMEOUT = 240
"""Seconds after which a command counts as hanging, on a machine that others use too."""

WARM = Starter()
atexit.register(WARM.close)

OURS = ("DATABASE_URL", "CORPUS_URL", "REDIS_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
        "VOYAGE_API_KEY", "COHERE_API_KEY", "TEI_API_KEY", "SLACK_WEBHOOK_URL")  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """A command that ended, with all that it wrote."""

    command: str
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """What a failed command says: one line on standard error, nothing on standard output."""
        assert "Traceback" not in self.err, self
        assert not self.out, self
        (line,) = self.err.splitlines()
        assert line.startswith("error: "), self
        return line.removeprefix("error: ")


class Running:
    """A command under way, in a process group of its own as a shell would have it."""

    def __init__(self, command: str, process: "subprocess.Popen[str] | Command") -> None:
        self.command = command
        self.process = process

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode is not None
        return Finished(self.command, self.process.returncode, out, err)

    def press_ctrl_c(self) -> None:
        """Send SIGINT to the whole group, which is what a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def read_line_with(self, word: str) -> str:
        """Return the next line of standard output that holds the word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return line.strip()
        raise AssertionError(f"{self.command} ended without {word!r}: {self.finish().err}")


class Project:
    """A folder in which somebody uses recallwatch, with the environment they have set."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = dict(environment or {})

    @property
    def state(self) -> Path:
        return self.folder / ".recallwatch"

    def run(self, *arguments: object, code: int = 0, **environment: str) -> Finished:
        """Run a command to its end; its exit code must be `code`."""
        finished = self.start(*arguments, **environment).finish()
        assert finished.code == code, finished
        return finished

    def start(self, *arguments: object, **environment: str) -> Running:
        words = [str(argument) for argument in arguments]
        if any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment):
            return self.start_program("-m", "cli.main", *words, **environment)
        everything = without_ours() | self.environment | environment
        return Running(" ".join(words), WARM.start(words, self.folder, everything))

    def start_program(self, *arguments: str, **environment: str) -> Running:
        """Start Python with these arguments, as the project's folder and environment have it."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=without_ours() | self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Running(" ".join(arguments), process)

    def fails(self, *arguments: object, code: int = 2, **environment: str) -> str:
        """Run a command that has to fail with this exit code; return the line it fails with."""
        return self.run(*arguments, code=code, **environment).complaint

    def json(self, *arguments: object, code: int = 0, **environment: str) -> Record:
        """Run a command that prints a JSON object."""
        printed = self.run(*arguments, "--json", code=code, **environment).out
        found: Record = json.loads(printed)
        return found

    def json_rows(self, *arguments: object, code: int = 0, **environment: str) -> list[Record]:
        """Run a command that prints a JSON array of objects."""
        printed = self.run(*arguments, "--json", code=code, **environment).out
        found: list[Record] = json.loads(printed)
        return found

    def export(self, run_id: int) -> list[Record]:
        lines = self.run("runs", "export", run_id).out.splitlines()
        return [json.loads(line) for line in lines]

    def evaluate(
        self, *strategies: str, options: Sequence[object] = (), code: int = 0
    ) -> list[Record]:
        """Evaluate some strategies and return their runs."""
        chosen = [word for name in strategies for word in ("--strategy", name)]
        runs: list[Record] = self.json("eval", *chosen, *options, code=code)["runs"]
        return runs

    def wait_for_run(self, run_id: int) -> Record:
        """Return a run once it is completed."""
        url = self.servers()["DATABASE_URL"]
        # A command a look would take the processor from the worker that is waited for.
        completed = "SELECT FROM recallwatch.run WHERE id = %s AND status = 'completed'"
        wait_until(lambda: rows(url, completed, run_id), timeout=TIMEOUT)
        return self.json("runs", "show", run_id)

    def write(self, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
        """Write a JSON Lines file into the folder."""
        path = self.folder / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def write_settings(self, text: str) -> None:
        (self.folder / "recallwatch.toml").write_text(text)

    def servers(self) -> dict[str, str]:
        """Return the environment in which another program finds the servers that run."""
        found = self.json("status")["servers"]
        urls = {"DATABASE_URL": found["database_url"], "REDIS_URL": found["redis_url"]}
        return {name: url for name, url in urls.items() if url} | self.environment

    @contextmanager
    def worker(self) -> Iterator[Running]:
        """Keep a worker running that Celery's own command started."""
        queues = "embedding,evaluation,generation,alerts,default"
        command = ("-m", "celery", "-A", "workers.app", "worker", "--queues", queues)
        worker = self.start_program(*command, "--loglevel", "error", **self.servers())
        try:
            yield worker
        finally:
            worker.process.terminate()
            worker.finish()

    @contextmanager
    def up(self) -> Iterator[Running]:
        """Keep `recallwatch up` running in the background."""
        command = self.start("up")
        try:
            command.read_line_with("ready")
            yield command
        finally:
            command.press_ctrl_c()
            command.finish()

    def processes(self) -> list[psutil.Process]:
        """Return the servers, and the workers with their children, that run for this folder."""
        mark = Layout.of(self.state).mark
        return [process for process in psutil.process_iter() if _bears(process, mark)]

    def kill_processes(self) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()


def rows(url: str, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    """Return what a query finds in a project's database."""
    with psycopg.connect(url) as database:
        return database.execute(query, values).fetchall()


def wait_until(condition: Callable[[], object], *, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} seconds"
        time.sleep(0.02)


def without_ours() -> dict[str, str]:
    """Return this environment without the developer's own servers, keys and settings.

    And without coverage, which makes hundreds of short commands take half as long again: what they
    do is measured by the tests of the parts.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.removesuffix("_FILE") not in OURS
        and not name.startswith(("RECALLWATCH_", "COVERAGE_"))
    }
    return kept | {"PYTHONPATH": str(REPOSITORY)}


def _bears(process: psutil.Process, mark: str) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return mark in " ".join(process.cmdline()) or mark in process.environ().values()
    return False
