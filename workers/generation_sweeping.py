"""What a sweep does for generations: end what nobody can answer, ring what was forgotten."""

import redis
import structlog

from db import forgotten_requests, generations, message_batches
from db.forgotten_requests import Due
from pipeline.errors import TransientError
from workers import doorbell
from workers.context import Context

log = structlog.get_logger(__name__)

MOST = 1000
"""Requests rung in one sweep."""

POLL_EVERY = 60.0
"""Seconds between two looks at a message batch; most are done within the hour."""


def sweep_generations(ctx: Context, *, quiet: float, poll_every: float = POLL_EVERY) -> list[Due]:
    """Do what lost messages and dead workers left undone; return the requests that were rung.

    A request is rung again when it was not rung for `quiet` seconds and the queue is empty, for its
    message may be waiting there; after two leases whatever the queue holds. Raises TransientError
    when the broker is down.
    """
    attempts = ctx.settings.queue.attempts
    with ctx.database.begin() as session:
        ids = forgotten_requests.to_look_after(session)
    for generation_id in ids:
        _look_after(ctx, generation_id)
    patience = quiet if _queue_is_empty(ctx) else max(quiet, 2 * ctx.settings.queue.lease)
    with ctx.database.begin() as session:
        for failed in generations.fail_unscreened(session, attempts=attempts):
            log.warning("generation_failed", generation=failed)
        screened = generations.to_screen(session, attempts=attempts)
        due = forgotten_requests.due(session, quiet=patience, limit=MOST)
        batches = message_batches.at_work(session, quiet=poll_every)
    doorbell.screen(screened)
    doorbell.poll(batches)
    doorbell.submit(sorted({each.generation_id for each in due if each.message_batches}))
    doorbell.ask((each.generation_id, each.number) for each in due if not each.message_batches)
    return due


def _look_after(ctx: Context, generation_id: int) -> None:
    """Keep what goes wrong with one generation from keeping the others waiting."""
    try:
        with ctx.database.begin() as session:
            status = forgotten_requests.look_after(session, generation_id)
    except Exception:
        log.exception("sweep_of_generation_failed", generation=generation_id)
    else:
        if status is not None:
            log.info("generation_moved_on", generation=generation_id, status=status)


def _queue_is_empty(ctx: Context) -> bool:
    try:
        return not ctx.redis.llen("generation")
    except redis.RedisError as error:
        raise TransientError(f"the queue does not answer: {error}") from error
