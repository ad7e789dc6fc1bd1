"""The worker processes that commands start on this machine."""

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from cli.embedded.stack import Stack
from cli.embedded.workers import WorkerProcess
from pipeline.retrieval.strategies import variables_of
from pipeline.secret_files import known
from pipeline.settings import Settings
from workers.queues import QUEUES

MOST_WORKERS = 3
"""Workers a command starts one after the other before it asks why they die."""


def worker_command(processes: int, *, loglevel: str = "warning") -> Sequence[str]:
    """Return the command line of one Celery worker for every queue."""
    return (
        sys.executable, "-m", "celery", "--app", "workers.app", "worker",
        "--queues", ",".join(QUEUES), "--concurrency", str(processes), "--loglevel", loglevel,
        "--without-gossip", "--without-mingle",
    )  # fmt: skip


def beat_command(schedule_file: str, *, loglevel: str = "warning") -> Sequence[str]:
    """Return the command line of Celery beat; its schedule file only remembers last runs."""
    return (
        sys.executable, "-m", "celery", "--app", "workers.app", "beat",
        "--schedule", schedule_file, "--loglevel", loglevel,
    )  # fmt: skip


@dataclass
class Reviver:
    """Keeps a worker running while a command waits; gives up on one that will not stay."""

    stack: Stack
    settings: Settings
    seen: set[int] = field(default_factory=set)

    def __call__(self) -> None:
        """Start a worker where there is none.

        Raises UsageError, with what the log says, when the third one has died too.
        """
        self.seen.add(ensure_workers(self.stack, self.settings).pid)
        if len(self.seen) > MOST_WORKERS:
            self.stack.check_workers()


def ensure_workers(stack: Stack, settings: Settings) -> WorkerProcess:
    """Return a background worker with these settings, started where there is none."""
    # Everything that the worker would read differently makes it another worker.
    told = settings.model_dump_json() + repr(sorted(_secrets(settings).items()))
    fingerprint = hashlib.sha256(told.encode()).hexdigest()
    return stack.ensure_workers(
        worker_command(settings.queue.workers), os.environ, fingerprint=fingerprint
    )


def _secrets(settings: Settings) -> dict[str, str | None]:
    names = (
        "database_url", "corpus_url", "redis_url", "openai_api_key", "voyage_api_key",
        "cohere_api_key", "tei_api_key", "anthropic_api_key",
    )  # fmt: skip
    values = {name: getattr(settings, name) for name in names}
    given = {name: value.get_secret_value() for name, value in values.items() if value}
    named = variables_of(settings.strategies)
    return given | {name: known(name, os.environ) for name in named}
