"""A worker, or a beat, of the suite: the product's own, with its long waits made short.

    python -m tests.chaos.worker worker --concurrency 2 ...

Production code has no hooks for this. What is shortened is a constant there; points at which a
scenario stops a process are wrapped around its functions here; mutants are patches.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing them copies what is to be shortened
    from db.alerts import Claimed
    from db.models import GoldenItem, Run
    from workers.context import Context

SWEEP_EVERY = 1
"""Seconds; a minute in production."""

CLAIM_LASTS = 6
"""Seconds after which an alert's claim is a crash; a post takes less, as in production."""

POST_TIMEOUT = 1.5
"""Seconds that a receiver may be silent."""

LONGEST_WAIT = 1.0
"""Seconds that a shard, or an alert, waits at most before it is tried again."""


def shorten() -> None:
    """Make the waits short. Before the application is imported: it copies some of them."""
    from pipeline.alerts import http  # noqa: PLC0415
    from workers import schedule  # noqa: PLC0415

    schedule.SWEEP_EVERY = schedule.TICK_EVERY = SWEEP_EVERY
    http.TIMEOUT = POST_TIMEOUT

    from db import alerts  # noqa: PLC0415
    from workers import retrying, sweeping  # noqa: PLC0415

    alerts.CLAIM_LASTS = CLAIM_LASTS
    retrying.LONGEST = retrying.FIRST_OF_ALERT = retrying.LONGEST_OF_ALERT = LONGEST_WAIT
    (sweeping.sweep.__kwdefaults__ or {})["quiet"] = SWEEP_EVERY


def wrap_points() -> None:
    """Stop processes where a scenario says so; send messages three times where a fault does."""
    from tests.chaos.switches import TRIPLE, is_on, pause  # noqa: PLC0415
    from workers import alerting, doorbell, evaluation, measuring, reducing  # noqa: PLC0415

    measure, post, reduce = measuring.measure, alerting._post, reducing._reduce

    def measure_and_pause(ctx: "Context", run: "Run", items: "Sequence[GoldenItem]") -> Any:  # noqa: ANN401
        found = measure(ctx, run, items)
        pause("store", f"{run.id} {items[0].position}")
        return found

    def post_and_pause(ctx: "Context", claimed: "Claimed") -> Any:  # noqa: ANN401
        found = post(ctx, claimed)
        pause("posted", str(claimed.id))
        return found

    def pause_and_reduce(ctx: "Context", run_id: int) -> bool:
        pause("reduce", str(run_id))
        return reduce(ctx, run_id)

    evaluation.measure = measure_and_pause  # type: ignore[attr-defined]  # it imports the name, and does not export it
    alerting._post = post_and_pause
    reducing._reduce = pause_and_reduce
    ring = doorbell._ring

    def ring_often(task: str, queue: str, messages: Iterable[tuple[int, ...]]) -> None:
        times = 3 if is_on(TRIPLE) else 1
        ring(task, queue, [message for message in messages for _ in range(times)])

    doorbell._ring = ring_often


def main() -> None:
    """Run Celery's own command line on the patched application."""
    shorten()
    from tests.chaos import mutants  # noqa: PLC0415 - it imports what was shortened
    from workers.app import app  # noqa: PLC0415

    wrap_points()
    mutants.apply(os.environ.get("CHAOS_MUTANT"))
    if os.environ.get("CHAOS_NO_SOFT_LIMIT"):
        # The signal of a time limit would reach a stopped process too, and end its task as soon
        # as it goes on: a scenario wants to see what the token alone prevents.
        app.conf.task_soft_time_limit = app.conf.task_time_limit
    app.start(sys.argv[1:])


if __name__ == "__main__":
    main()
