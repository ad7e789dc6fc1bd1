"""Task reduce_run: turn a run's results into its record and its verdict, in one transaction."""

from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import exact_figures, results, run_states, runs, shards
from db.results import Aggregate
from db.runs import RunContext
from db.session import Session
from pipeline.errors import RecallwatchError, TransientError
from workers import context, doorbell
from workers.app import app
from workers.context import Context
from workers.doorbell import REDUCE_RUN
from workers.failing import fail_within
from workers.judging import judge_run
from workers.outbox import write_alerts
from workers.retrying import wait_before_retry
from workers.underfill import from_stats

log = structlog.get_logger(__name__)


LOCKED_WITHIN = 10
"""Seconds from a reducer's claim to its lock; one that died is followed by another after them."""


@app.task(name=REDUCE_RUN)
def reduce_run(run_id: int) -> None:
    """Finish a run whose shards are all done."""
    reduce(context.current(), run_id)


def reduce(ctx: Context, run_id: int) -> bool:
    """Aggregate, compare, judge and write the run record; say whether it was written now.

    The run's row is locked; a run that is finished, or that lacks a shard, is left alone; one that
    lacks a result fails: never a partial score. Running it twice changes nothing. Whatever goes
    wrong counts an attempt, and the sweep fails a run that has none left.
    """
    with structlog.contextvars.bound_contextvars(run=run_id):
        attempt = _claim(ctx, run_id)
        if attempt is None:
            return False
        try:
            return _reduce(ctx, run_id)
        except SoftTimeLimitExceeded:
            limit = ctx.settings.queue.lease
            late = TransientError(f"not done in {limit} seconds ([queue] lease)")
            _release(ctx, run_id, attempt, late)
        except Exception as error:
            log.exception("reduction_raised")
            _release(ctx, run_id, attempt, error)
        return False


def _claim(ctx: Context, run_id: int) -> int | None:
    queue = ctx.settings.queue
    with ctx.database.begin() as session:
        return run_states.claim_reduction(
            session, run_id, lease=min(queue.lease, LOCKED_WITHIN), attempts=queue.attempts
        )


def _release(ctx: Context, run_id: int, attempt: int, error: Exception) -> None:
    reason = str(error) if isinstance(error, RecallwatchError) else repr(error)
    wait = wait_before_retry(error, attempt=attempt)
    with ctx.database.begin() as session:
        run_states.release_reduction(session, run_id, attempt=attempt, error=reason, wait=wait)


def _reduce(ctx: Context, run_id: int) -> bool:
    with ctx.database.begin() as session:
        if run_states.lock(session, run_id) is None or not shards.all_done(session, run_id):
            return False
        found = runs.get(session, run_id)
        aggregate = results.aggregate(session, found.run)
        complete = aggregate.counts.total == found.run.size
        alert_ids = (
            _complete(ctx, session, found, aggregate)
            if complete
            else _refuse(ctx, session, found, aggregate.counts.total)
        )
    doorbell.deliver(alert_ids)
    return complete


def _complete(ctx: Context, session: Session, found: RunContext, aggregate: Aggregate) -> list[int]:
    _write(session, found, aggregate)
    session.flush()
    alert_ids = write_alerts(session, found, ctx.settings.alerts)
    log.info("run_completed", verdict=found.run.verdict)
    return alert_ids


def _refuse(ctx: Context, session: Session, found: RunContext, stored: int) -> list[int]:
    """Fail a run whose shards are all done and whose results are not all there.

    A shard's results and its close are one transaction, so no worker does this: somebody deleted
    rows, or restored a part of a backup.
    """
    log.error("results_missing", stored=stored, size=found.run.size)
    reason = (
        f"{found.run.size - stored} of {found.run.size} results are missing though every shard is"
        " done: were rows deleted, or a part of a backup restored? Start a new run"
    )
    return fail_within(ctx, session, [found.run.id], reason)[1]


def _write(session: Session, found: RunContext, aggregate: Aggregate) -> None:
    run = found.run
    run.n_scored = aggregate.counts.scored
    run.n_failed = aggregate.counts.failed
    run.n_ineligible = aggregate.counts.ineligible
    run.metrics = aggregate.means
    run.by_category = _groups(session, found, "category")
    run.by_tenant = _groups(session, found, "tenant")
    run.by_source = _groups(session, found, "source")
    stats = results.shard_stats(session, run.id)
    run.facts = results.facts(session, run.id) | {
        "underfilled": from_stats(stats),
        "unknown_keys": stats.get("unknown_keys", 0),
        "leaks": results.leaks(session, run),
    }
    run.latency = _latency(stats) | {"search_ms": results.latency(session, run.id)}
    run.cost = _cost(stats)
    run.exact = exact_figures.summary(session, run)
    judgement = judge_run(session, found, aggregate)
    if run.compared_to is not None:
        before = runs.get(session, run.compared_to).run.latency or {}
        # A new object: SQLAlchemy does not see what changes within one.
        run.latency = {**run.latency, "search_ms_before": before.get("search_ms")}
    run_states.complete(run, judgement)


def _groups(session: Session, found: RunContext, column: str) -> dict[str, Any]:
    groups = results.aggregate_by(session, found.run, column, found.version.id)
    return {
        name: {
            "scored": group.counts.scored,
            "failed": group.counts.failed,
            "ineligible": group.counts.ineligible,
            "metrics": group.means,
        }
        for name, group in groups.items()
    }


def _latency(stats: dict[str, float]) -> dict[str, float]:
    """Return seconds by step, summed over shards, and milliseconds of retrieval a question."""
    seconds = {name: value for name, value in stats.items() if name.endswith("_seconds")}
    asked = stats.get("questions", 0)
    each = 1000 * stats.get("retrieve_seconds", 0.0) / asked if asked else 0.0
    return seconds | {"retrieve_ms_per_question": each}


def _cost(stats: dict[str, float]) -> dict[str, float]:
    """Return what money and rate limits hang on; a batch's shared embedding stands once.

    It counts for the first of the batch's runs that need vectors.
    """
    return {name: stats[name] for name in shards.SPENT if name in stats}
