"""Task sweep: whatever message was lost, the state in PostgreSQL says what is to be done."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import redis
import structlog

from db import alerts, exact, reindexing, run_states, runs, shards
from db.session import Session, apart, end_frozen, try_lock
from pipeline.errors import PermanentError, TransientError
from workers import context, doorbell, enqueue
from workers.app import app
from workers.context import Context
from workers.doorbell import SWEEP
from workers.failing import fail_within
from workers.generation_sweeping import sweep_generations
from workers.ringing import ring_forgotten

log = structlog.get_logger(__name__)

LOCK = 0x7377_6565_70
"""Key of the advisory lock: "sweep" in ASCII."""

MOST = 1000
"""Shards rung in one sweep."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: ids of runs, (run, shard) pairs, and ids of batches."""

    failed: list[int]
    rung: list[tuple[int, int]]
    reduced: list[int]
    woken: list[int] = field(default_factory=list)


@app.task(name=SWEEP)
def sweep_runs() -> None:
    """Ring forgotten shards and alerts, reduce finished runs, fail overdue ones."""
    sweep(context.current())


def sweep(ctx: Context, *, quiet: int = 10) -> Swept | None:
    """Do what lost messages left undone; None: another sweep is at work.

    A shard is rung again when it was not rung for `quiet` seconds and the queues hold no message,
    for its own may be waiting there; after two leases it is rung whatever they hold. Raises
    TransientError when the broker is down: hopeless runs are failed all the same.
    """
    _end_frozen(ctx)
    with ctx.database.begin() as session:
        if not try_lock(session, LOCK):
            return None
        _end_exact(ctx, session)
        failed = _fail_hopeless(ctx, session)
        reduced = run_states.reducible(session, attempts=ctx.settings.queue.attempts)
        alerts.age(session)
        waiting = alerts.due(session)
        woken = reindexing.wake(session)
    for batch_id in woken:
        _ring_batch(ctx, batch_id)
    doorbell.reduce(reduced)
    doorbell.deliver(waiting)
    patience = quiet if _queues_empty(ctx) else max(quiet, 2 * ctx.settings.queue.lease)
    rung = ring_forgotten(ctx, quiet=patience, limit=MOST)
    sweep_generations(ctx, quiet=quiet)
    if failed or rung or reduced or woken:
        log.info("swept", failed=failed, rung=len(rung), reduced=reduced, woken=woken)
    return Swept(failed, rung, reduced, woken)


def _end_frozen(ctx: Context) -> None:
    """End connections of frozen processes; a server that does not let us is no reason to stop."""
    try:
        with ctx.database.begin() as session:
            ended = end_frozen(session)
    except PermanentError as error:
        log.warning("frozen_connections_not_looked_for", reason=str(error))
    else:
        if ended:
            log.warning("frozen_connections_ended", backends=ended)


def _end_exact(ctx: Context, session: Session) -> None:
    """End exact searches out of attempts or time; their runs are then ready to be reduced."""
    for run_id, reason in exact.hopeless(session, attempts=ctx.settings.queue.attempts):
        log.warning("exact_search_failed", run=run_id, reason=reason)
        with _going_on(session, run_id):
            exact.give_up(session, run_id, reason)


def _fail_hopeless(ctx: Context, session: Session) -> list[int]:
    """Fail runs with a shard or a reducer out of attempts, and runs past their deadline."""
    attempts = ctx.settings.queue.attempts
    late = "not finished by its deadline ([queue] deadline)"
    hopeless = dict.fromkeys(run_states.overdue(session), late)
    hopeless |= dict(shards.exhausted(session, attempts=attempts))
    failed = _fail_each(ctx, session, hopeless)
    # These come last: they are locked from here on.
    irreducible = dict(run_states.irreducible(session, attempts=attempts))
    return failed + _fail_each(ctx, session, irreducible)


def _fail_each(ctx: Context, session: Session, reasons: Mapping[int, str]) -> list[int]:
    failed = []
    for run_id, reason in sorted(reasons.items()):
        with _going_on(session, run_id):
            failed += fail_within(ctx, session, [run_id], reason)[0]
    return failed


@contextmanager
def _going_on(session: Session, run_id: int) -> Iterator[None]:
    """Keep what goes wrong with one run from keeping the others waiting, sweep after sweep."""
    try:
        with apart(session):
            yield
    except Exception:
        log.exception("sweep_of_run_failed", run=run_id)


def _ring_batch(ctx: Context, batch_id: int) -> None:
    """Ring a batch that waited for re-indexing to end, as one that did not is rung at its start."""
    with ctx.database.begin() as session:
        started = runs.of_batch(session, batch_id)
        n_shards = shards.count(session, started[0].id)
    enqueue.ring(batch_id, started, n_shards)


def _queues_empty(ctx: Context) -> bool:
    """Say whether no shard's message waits in the broker; raises TransientError when it is down."""
    try:
        waiting = [ctx.redis.llen(queue) for queue in ("embedding", "evaluation")]
    except redis.RedisError as error:
        raise TransientError(f"the queue does not answer: {error}") from error
    return not any(waiting)
