"""The worker processes that commands start on this machine."""

import hashlib
import os
import sys
from collections.abc import Sequence

from cli.embedded.stack import Stack
from pipeline.settings import Settings

QUEUES = "embedding,evaluation,generation,default"


def worker_command(processes: int, *, loglevel: str = "warning") -> Sequence[str]:
    """Return the command line of one Celery worker for every queue."""
    return (
        sys.executable, "-m", "celery", "--app", "workers.app", "worker",
        "--queues", QUEUES, "--concurrency", str(processes), "--loglevel", loglevel,
        "--without-gossip", "--without-mingle",
    )  # fmt: skip


def beat_command(schedule_file: str, *, loglevel: str = "warning") -> Sequence[str]:
    """Return the command line of Celery beat; its schedule file only remembers last runs."""
    return (
        sys.executable, "-m", "celery", "--app", "workers.app", "beat",
        "--schedule", schedule_file, "--loglevel", loglevel,
    )  # fmt: skip


def ensure_workers(stack: Stack, settings: Settings) -> None:
    """Start a worker in the background unless one with the same settings runs already."""
    # Everything that the worker would read differently makes it another worker.
    told = settings.model_dump_json() + repr(sorted(_secrets(settings).items()))
    fingerprint = hashlib.sha256(told.encode()).hexdigest()
    stack.ensure_workers(
        worker_command(settings.queue.workers), os.environ, fingerprint=fingerprint
    )


def _secrets(settings: Settings) -> dict[str, str]:
    names = ("database_url", "corpus_url", "redis_url", "openai_api_key", "anthropic_api_key")
    values = {name: getattr(settings, name) for name in names}
    return {name: value.get_secret_value() for name, value in values.items() if value}
