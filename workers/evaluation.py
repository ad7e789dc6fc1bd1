"""Task evaluate_shard: claim, load, embed, retrieve, score, store, close.

An exact shard, which asks what exact search would have found, goes the same way; but whatever goes
wrong with it, its run lives: see `db.exact.give_up`.
"""

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import exact, golden, results, run_states, runs, shards
from db.exact import Served
from db.models import GoldenItem, Run
from db.session import Session
from db.shards import Claim
from pipeline.errors import RecallwatchError, TransientError
from pipeline.types import ShardKind
from workers import context, doorbell
from workers.app import app
from workers.context import Context
from workers.doorbell import EVALUATE_SHARD
from workers.exact import measure_exact
from workers.failing import fail_claimed
from workers.measuring import measure
from workers.retrying import asks_patience, wait_before_retry

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed shard, and what is needed to evaluate it: `served` if it is an exact one."""

    claim: Claim
    run: Run
    items: Sequence[GoldenItem] = ()
    served: Sequence[Served] = ()


@dataclass(frozen=True, slots=True)
class Leads:
    """What a stored shard leads to: exact shards whose turn has come, or the end of its run."""

    exact: Sequence[int] = ()
    reduce: bool = False


@app.task(name=EVALUATE_SHARD)
def evaluate_shard(run_id: int, number: int) -> None:
    """Evaluate one shard of a run, unless somebody else has it."""
    evaluate(context.current(), run_id, number)


def evaluate(ctx: Context, run_id: int, number: int) -> None:
    """Claim the shard, measure it outside any transaction of ours, store it under the token.

    Whatever goes wrong, no question becomes a miss by it: an error that waiting may cure hands
    the shard back, one that it does not cure fails the run, or ends its exact search; an
    unforeseen one counts an attempt.
    """
    with structlog.contextvars.bound_contextvars(run=run_id, shard=number):
        work = _begin(ctx, run_id, number)
        if work is None:
            return
        started = time.monotonic()
        try:
            leads = _exact(ctx, work) if _is_exact(work) else _served(ctx, work)
        except TransientError as error:
            _hand_back(ctx, work.claim, error)
        except RecallwatchError as error:
            _end(ctx, work, str(error))
        except SoftTimeLimitExceeded:
            _stop(ctx, work)
        except Exception as error:
            log.exception("shard_raised")
            _hand_back(ctx, work.claim, error)
        else:
            seconds = round(time.monotonic() - started, 3)
            log.info("shard_evaluated", kind=work.claim.kind, seconds=seconds)
            _ring(run_id, leads)


def _begin(ctx: Context, run_id: int, number: int) -> Work | None:
    """Claim the shard and load its run and questions; None: it is not to be had."""
    queue = ctx.settings.queue
    with ctx.database.begin() as session:
        claim = shards.claim(
            session,
            run_id,
            number,
            worker=f"{socket.gethostname()}:{os.getpid()}",
            lease=queue.lease,
            attempts=queue.attempts,
        )
        return None if claim is None else _load(session, claim)


def _load(session: Session, claim: Claim) -> Work:
    run_states.mark_running(session, claim.run_id)
    found = runs.get(session, claim.run_id)
    if claim.kind is ShardKind.EXACT:
        return Work(claim, found.run, served=exact.served(session, found.version.id, claim))
    items = golden.items(session, found.version.id, claim.first, claim.last)
    return Work(claim, found.run, items)


def _is_exact(work: Work) -> bool:
    return work.claim.kind is ShardKind.EXACT


def _served(ctx: Context, work: Work) -> Leads:
    rows, stats = measure(ctx, work.run, work.items)
    with ctx.database.begin() as session:
        last = results.store(session, work.claim, rows, stats=stats)
        waiting = shards.ring_exact(session, work.run.id) if last is False else []
    return Leads(waiting, reduce=bool(last))


def _exact(ctx: Context, work: Work) -> Leads:
    found = measure_exact(ctx, work.run, work.claim, work.served)
    with ctx.database.begin() as session:
        last = exact.store(
            session, work.claim, found.rows, stats=found.stats, ef_search=found.ef_search
        )
    return Leads(reduce=bool(last))


def _ring(run_id: int, leads: Leads) -> None:
    doorbell.evaluate((run_id, number) for number in leads.exact)
    if leads.reduce:
        doorbell.reduce([run_id])


def _end(ctx: Context, work: Work, reason: str) -> None:
    """Fail the run, or end its exact search, for a reason that waiting does not cure."""
    if not _is_exact(work):
        failed = fail_claimed(ctx, work.claim, reason)
        log.warning("run_failed" if failed else "claim_lost", reason=reason)
        return
    log.warning("exact_search_failed", reason=reason)
    with ctx.database.begin() as session:
        held = shards.holds(session, work.claim)
        last = held and exact.give_up(session, work.run.id, reason)
    _ring(work.run.id, Leads(reduce=last))


def _stop(ctx: Context, work: Work) -> None:
    """Have a shard whose time is up tried again; an exact one would take as long each time."""
    lease = ctx.settings.queue.lease
    if _is_exact(work):
        _end(ctx, work, f"it was not done in {lease} seconds ([queue] lease)")
    else:
        _hand_back(ctx, work.claim, _too_slow(lease))


def _too_slow(seconds: int) -> TransientError:
    return TransientError(
        f"not evaluated in {seconds} seconds: raise [queue] lease or lower [eval] shard_size"
    )


def _hand_back(ctx: Context, claim: Claim, error: Exception) -> None:
    """Let the shard be tried again later; the sweep sees to it when attempts are used up.

    A server that asked for patience uses up none: the shard is not what is wrong. Where the cache
    did not keep what was paid for, it does.
    """
    reason = str(error) if isinstance(error, RecallwatchError) else repr(error)
    wait = wait_before_retry(error, attempt=claim.attempt)
    log.warning("shard_handed_back", wait=wait, reason=reason)
    with ctx.database.begin() as session:
        shards.release(session, claim, error=reason, wait=wait, counted=not asks_patience(error))
