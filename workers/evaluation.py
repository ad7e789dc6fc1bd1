"""Task evaluate_shard: claim, load, embed, retrieve, score, store, close."""

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import golden, results, runs, shards
from db.models import GoldenItem, Run
from db.session import Session
from db.shards import Claim
from pipeline.errors import RecallwatchError, TransientError
from workers import context, doorbell
from workers.app import app
from workers.context import Context
from workers.doorbell import EVALUATE_SHARD
from workers.failing import fail_runs
from workers.measuring import measure
from workers.retrying import wait_before_retry

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed shard with what is needed to evaluate it; `attempt` counts from 1."""

    claim: Claim
    run: Run
    items: Sequence[GoldenItem]


@app.task(name=EVALUATE_SHARD)
def evaluate_shard(run_id: int, number: int) -> None:
    """Evaluate one shard of a run, unless somebody else has it."""
    evaluate(context.current(), run_id, number)


def evaluate(ctx: Context, run_id: int, number: int) -> None:
    """Claim the shard, measure it outside any transaction of ours, store it under the token.

    Whatever goes wrong, no question becomes a miss by it: an error that waiting may cure hands
    the shard back, one that it does not cure fails the run, an unforeseen one counts an attempt.
    """
    with structlog.contextvars.bound_contextvars(run=run_id, shard=number):
        work = _begin(ctx, run_id, number)
        if work is None:
            return
        started = time.monotonic()
        try:
            rows, stats = measure(ctx, work.run, work.items)
            with ctx.database.begin() as session:
                last = results.store(session, work.claim, rows, stats=stats)
        except TransientError as error:
            _hand_back(ctx, work.claim, error)
        except RecallwatchError as error:
            log.warning("run_failed", reason=str(error))
            fail_runs(ctx, [run_id], str(error))
        except SoftTimeLimitExceeded:
            _hand_back(ctx, work.claim, _too_slow(ctx.settings.queue.lease))
        except Exception as error:
            log.exception("shard_raised")
            _hand_back(ctx, work.claim, error)
        else:
            seconds = round(time.monotonic() - started, 3)
            log.info("shard_evaluated", questions=len(work.items), seconds=seconds)
            if last:
                doorbell.reduce([run_id])


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
    runs.mark_running(session, claim.run_id)
    found = runs.get(session, claim.run_id)
    items = golden.items(session, found.version.id, claim.first, claim.last)
    return Work(claim, found.run, items)


def _too_slow(seconds: int) -> TransientError:
    return TransientError(
        f"not evaluated in {seconds} seconds: raise [queue] lease or lower [eval] shard_size"
    )


def _hand_back(ctx: Context, claim: Claim, error: Exception) -> None:
    """Let the shard be tried again later; the sweep fails the run when attempts are used up."""
    reason = str(error) if isinstance(error, RecallwatchError) else repr(error)
    wait = wait_before_retry(error, attempt=claim.attempt)
    log.warning("shard_handed_back", wait=wait, reason=reason)
    with ctx.database.begin() as session:
        shards.release(session, claim, error=reason, wait=wait)
