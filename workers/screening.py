"""Task screen_generation: filter what the model wrote, and store what became of each question."""

import time
from collections.abc import Sequence
from dataclasses import replace

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import candidates, generations, screening
from db.candidates import Alternative
from db.locks import lock_set
from db.models import Generation
from db.session import Session
from pipeline.errors import RecallwatchError, TransientError
from pipeline.generation.filters import Finding, Rejection
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.similarity import same_words
from pipeline.types import Status
from workers import context, doorbell
from workers.app import app
from workers.context import Context
from workers.deciding import Decision, decide
from workers.doorbell import SCREEN_GENERATION
from workers.retrying import wait_before_retry

log = structlog.get_logger(__name__)

BATCH = 200
"""Candidates that are decided on together, and stored in one transaction."""

_ASKED_SINCE = "it is asked already: the set got it while this one was looked at"

SHARE = 0.4
"""Of [queue] lease: after so long a task leaves the rest to another, before its time is up."""


@app.task(name=SCREEN_GENERATION)
def screen_generation(generation_id: int) -> None:
    """Filter the candidates of a generation, unless somebody else does."""
    screen(context.current(), generation_id)


def screen(ctx: Context, generation_id: int) -> bool:
    """Claim the candidates, decide on them a batch at a time, store; say whether that is finished.

    Nothing is asked of the model, and each candidate is decided on once: a second message, or a
    worker that comes after one that died, takes up where the last stored batch ended. Whatever
    goes wrong counts an attempt, until a batch is stored; the sweep fails a generation that has
    none left.
    """
    with structlog.contextvars.bound_contextvars(generation=generation_id):
        queue = ctx.settings.queue
        with ctx.database.begin() as session:
            token = generations.claim_screening(
                session, generation_id, lease=queue.lease, attempts=queue.attempts
            )
        if token is None:
            return False
        try:
            return _screen(ctx, generation_id, token)
        except SoftTimeLimitExceeded:
            late = TransientError(f"not done in {queue.lease} seconds ([queue] lease)")
            _release(ctx, generation_id, token, late)
        except Exception as error:
            log.exception("screening_raised")
            _release(ctx, generation_id, token, error)
        return False


def _screen(ctx: Context, generation_id: int, token: int) -> bool:
    started = time.monotonic()
    with ctx.database.begin() as session:
        generation = generations.get(session, generation_id)
    while batch := _batch(ctx, generation_id):
        newest = _newest(ctx, generation)
        decisions = decide(ctx, generation, batch)
        with ctx.database.begin() as session:
            lease = ctx.settings.queue.lease
            if not generations.renew_screening(session, generation_id, token, lease=lease):
                log.warning("screening_lost")
                return False
            _store(session, generation, _without_repeats(session, generation, decisions, newest))
        log.info("candidates_screened", candidates=len(batch))
        if time.monotonic() - started > SHARE * ctx.settings.queue.lease:
            return _pass_on(ctx, generation_id, token)
    with ctx.database.begin() as session:
        finished = generations.finish(session, generation_id)
    if finished:
        log.info("generation_completed")
    return finished


def _batch(ctx: Context, generation_id: int) -> Sequence[candidates.CandidateRow]:
    with ctx.database.begin() as session:
        return candidates.drafted(session, generation_id, BATCH)


def _newest(ctx: Context, generation: Generation) -> int:
    with ctx.database.begin() as session:
        return screening.newest(session, generation.set_name)


def _without_repeats(
    session: Session, generation: Generation, decisions: Sequence[Decision], newest: int
) -> list[Decision]:
    """Return the decisions, those refused whose words the set got since they were made.

    It takes the set's lock: nobody adds a question from here on, and who takes the lock and then
    waits for a row does not find it held by who waits for the lock.
    """
    lock_set(session, generation.set_name)
    tenants = {each.candidate.tenant for each in decisions}
    since = screening.added(session, generation.set_name, tenants, after=newest)
    taken = {(same_words(each.text), each.tenant) for each in since}
    return [
        replace(each, finding=Finding(Rejection.DUPLICATE, _ASKED_SINCE), proposals=())
        if each.finding is None
        and (same_words(each.candidate.text), each.candidate.tenant) in taken
        else each
        for each in decisions
    ]


def _store(session: Session, generation: Generation, decisions: Sequence[Decision]) -> None:
    activate = GenerationPlan.from_json(generation.settings).activate
    status = Status.ACTIVE if activate else Status.PROPOSED
    for decision in decisions:
        finding = decision.finding
        if finding is not None:
            candidates.reject(
                session, decision.candidate, finding.rejection, finding.detail, decision.facts
            )
        elif candidates.keep(
            session, decision.candidate, decision.facts, _alternatives(decision), status
        ) is None:  # fmt: skip
            # Another question was changed into this very one since it was looked for.
            candidates.reject(session, decision.candidate, Rejection.DUPLICATE, _ASKED_SINCE)


def _alternatives(decision: Decision) -> list[Alternative]:
    return [Alternative(each.key, each.reason, each.similarity) for each in decision.proposals]


def _pass_on(ctx: Context, generation_id: int, token: int) -> bool:
    """Let another task go on; finished it is not."""
    with ctx.database.begin() as session:
        generations.release_screening(
            session, generation_id, token, error="another task takes up the rest", wait=0
        )
    doorbell.screen([generation_id])
    return False


def _release(ctx: Context, generation_id: int, token: int, error: Exception) -> None:
    reason = str(error) if isinstance(error, RecallwatchError) else repr(error)
    with ctx.database.begin() as session:
        attempt = generations.get(session, generation_id).screen_attempts
        wait = wait_before_retry(error, attempt=attempt)
        generations.release_screening(session, generation_id, token, error=reason, wait=wait)
