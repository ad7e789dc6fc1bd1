"""Wait for a generation: progress over its requests, doorbells that were lost, missing workers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from cli.output import progress
from cli.servers import Opened
from cli.waiting import NOBODY_AFTER, POLL, SWEEP_EVERY
from db import generations
from db.generations import OVER, Counts
from pipeline.errors import TransientError, UnmeasuredError, UsageError
from workers.context import Context
from workers.generating import deadline
from workers.generation_sweeping import sweep_generations
from workers.presence import answering

log = structlog.get_logger(__name__)


def follow(opened: Opened, generation_id: int, *, start: bool, timeout: float | None) -> None:
    """Have workers at hand and wait for a generation's end.

    Raises UnmeasuredError when the time is up, UsageError when no worker is there: it goes on when
    one comes.
    """
    from cli.workers import Reviver

    revive = Reviver(opened.stack, opened.work.settings) if start else None
    seconds = timeout or _time_left(opened.work, generation_id)
    with _saying_what_is_left(generation_id):
        if revive is not None:
            revive()
        _follow(opened.work, generation_id, revive, seconds)


def _time_left(ctx: Context, generation_id: int) -> float:
    """Return the seconds that a generation may take; its questions are filtered after that."""
    with ctx.database.begin() as session:
        found = generations.get(session, generation_id)
    return deadline(ctx, message_batches=found.message_batches).total_seconds()


@contextmanager
def _saying_what_is_left(generation_id: int) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(left(generation_id)) from None


def left(generation_id: int) -> str:
    """Say what becomes of a generation that nobody waits for any more, and how to end it."""
    return (
        f"generation {generation_id} goes on when workers run; to end it: recallwatch golden"
        f" generations cancel {generation_id}"
    )


def _follow(
    ctx: Context, generation_id: int, revive: Callable[[], None] | None, timeout: float
) -> None:
    started = swept = time.monotonic()
    status, seen = _look(ctx, generation_id)
    first = seen
    asked = revive is not None
    with progress("generating", None) as bar:
        while status not in OVER:
            bar.move_to(_done(seen), seen.asked_for + sum(seen.candidates.values()))
            now = time.monotonic()
            if now - started > timeout:
                late = f"not finished after {timeout:g} seconds"
                raise UnmeasuredError(f"{late}; {left(generation_id)}")
            if not asked and now - started > NOBODY_AFTER:
                asked = True
                _ask_for_workers(generation_id, idle=seen == first)
            if now - swept > SWEEP_EVERY:
                swept = now
                _sweep(ctx, revive)
            time.sleep(POLL)
            status, seen = _look(ctx, generation_id)


def _look(ctx: Context, generation_id: int) -> tuple[str, Counts]:
    with ctx.database.begin() as session:
        found = generations.get(session, generation_id)
        return found.status, generations.counts(session, generation_id)


def _done(seen: Counts) -> int:
    return seen.over + sum(seen.candidates.values()) - seen.candidates.get("drafted", 0)


def _ask_for_workers(generation_id: int, *, idle: bool) -> None:
    if idle and not answering():
        raise UsageError(
            f"no worker took a request in {NOBODY_AFTER:g} seconds and none answers; start one"
            " (recallwatch up, or: celery -A workers.app worker), or leave out --no-start;"
            f" {left(generation_id)}"
        )


def _sweep(ctx: Context, revive: Callable[[], None] | None) -> None:
    if revive is not None:
        revive()
    try:
        sweep_generations(ctx, quiet=10)
    except TransientError as error:
        log.warning("sweep_postponed", reason=str(error))
