"""Tasks that ask the model: one request at a time, or many in a message batch."""

from collections.abc import Mapping, Sequence
from functools import partial

import structlog

from db import generation_requests, generations, message_batches
from db.generation_requests import Claim
from pipeline.errors import RecallwatchError
from pipeline.generation.base import (
    MOST_ASKS,
    Answer,
    BatchGoneError,
    BatchResult,
    NotBilled,
    UnknownOutcomeError,
)
from pipeline.generation.build import build_batch_generator, build_generator
from workers import context
from workers.app import app
from workers.asking import Asking
from workers.context import Context
from workers.doorbell import ASK_REQUEST, POLL_MESSAGE_BATCH, SUBMIT_GENERATION

log = structlog.get_logger(__name__)

GRACE = 90
"""Seconds that a lease outlives what it is for: 30 of them a task has after [queue] lease."""

ROOM_IN_BATCHES_AFTER = 600.0
"""Seconds after which requests of a message batch look again for room in the cost cap."""


@app.task(name=ASK_REQUEST)
def ask_request(generation_id: int, number: int) -> None:
    """Send one request of a generation."""
    ask(context.current(), generation_id, number)


@app.task(name=SUBMIT_GENERATION)
def submit_generation(generation_id: int) -> None:
    """Send what a generation waits for, in message batches."""
    submit(context.current(), generation_id)


@app.task(name=POLL_MESSAGE_BATCH)
def poll_message_batch(generation_id: int, number: int) -> None:
    """Look whether the message batch that holds a request is done."""
    poll(context.current(), generation_id, number)


def ask(ctx: Context, generation_id: int, number: int) -> None:
    """Claim a request, note that it goes out, send it, store the answer.

    Whatever comes back ends it, but for what was not billed and waiting may cure: that is tried
    again. A second message finds nothing to claim.
    """
    with structlog.contextvars.bound_contextvars(generation=generation_id, request=number):
        asking = _asking(ctx, generation_id)
        claims = _claim(ctx, asking, limit=1, numbers=[number])
        generator = asking.built(claims, build_generator) if claims else None
        if generator is None:
            return
        for claim in asking.grant(claims, lease=asking.settings.timeout + GRACE):
            answer = asking.send([claim], partial(generator.ask, claim.ask))
            if answer is not None:
                asking.store(claim, answer)


def submit(ctx: Context, generation_id: int) -> None:
    """Claim what a generation waits for, note that it goes out, send it as a message batch.

    Sweeps have the batch looked at until it is done. Should the worker die before the batch's id is
    stored, its requests become unknown.
    """
    with structlog.contextvars.bound_contextvars(generation=generation_id):
        asking = _asking(ctx, generation_id)
        claims = _claim(ctx, asking, limit=MOST_ASKS)
        generator = asking.built(claims, build_batch_generator) if claims else None
        granted = _granted(ctx, asking, claims) if generator is not None else []
        if generator is None or not granted:
            return
        asks = {claim.name: claim.ask for claim in granted}
        message_batch = asking.send(granted, partial(generator.submit, asks))
        if message_batch is not None and not asking.persist(
            partial(_note, ctx, granted, message_batch)
        ):
            # Whoever cancelled the generation could not know of this batch.
            _cancel_batches(asking, [message_batch])


def poll(ctx: Context, generation_id: int, number: int) -> None:
    """Store the answers of a request's message batch when it is done; before that, change nothing.

    One that cannot be looked at is looked at again until the generation's deadline, for a key may
    be put right; then its requests are unknown. They are at once where the batch is gone.
    """
    with structlog.contextvars.bound_contextvars(generation=generation_id):
        asking = _asking(ctx, generation_id)
        with ctx.database.begin() as session:
            message_batch = message_batches.holding(session, generation_id, number)
            if message_batch is None:
                return
            claims = message_batches.awaited(session, generation_id, message_batch)
        try:
            asks = {claim.name: claim.ask for claim in claims}
            answers = asking.build(build_batch_generator).poll(message_batch, asks)
        except BatchGoneError as error:
            asking.give_up(claims, str(error), batch_gone=True)
        except RecallwatchError as error:
            log.warning("message_batch_not_read", batch=message_batch, reason=str(error))
            _complain(asking, message_batch, claims, str(error))
        else:
            if answers is None:
                _complain(asking, message_batch, claims, None)
            else:
                _store_all(asking, claims, answers)


def _granted(ctx: Context, asking: Asking, claims: Sequence[Claim]) -> list[Claim]:
    return asking.grant(claims, lease=_task_takes(ctx), room_after=ROOM_IN_BATCHES_AFTER)


def _complain(
    asking: Asking, message_batch: str, claims: Sequence[Claim], reason: str | None
) -> None:
    """Note why a batch could not be looked at, if so; past the deadline, give its requests up."""
    with asking.ctx.database.begin() as session:
        late = generations.is_late(session, asking.generation_id)
        if reason is not None:
            message_batches.complain(session, asking.generation_id, message_batch, reason)
    if late:
        why = reason or "it was not done by the generation's deadline"
        asking.give_up(claims, f"message batch {message_batch}: {why}")


def _note(ctx: Context, claims: Sequence[Claim], message_batch: str) -> bool:
    with ctx.database.begin() as session:
        return message_batches.note(session, claims, message_batch)


def _store_all(asking: Asking, claims: Sequence[Claim], answers: Mapping[str, BatchResult]) -> None:
    for claim in claims:
        match answers[claim.name]:
            case Answer() as answer:
                asking.store(claim, answer)
            case NotBilled(reason):
                asking.fail([claim], reason)
            case UnknownOutcomeError() as error:
                asking.give_up([claim], str(error))


def cancel(ctx: Context, generation_id: int) -> list[str]:
    """End a generation because a person wants it, and its message batches; return what failed.

    What was asked one by one is still answered and stored. Raises InputError where there is nothing
    to end.
    """
    with ctx.database.begin() as session:
        batches = generations.cancel(session, generation_id)
    return _cancel_batches(_asking(ctx, generation_id), batches)


def _cancel_batches(asking: Asking, batches: Sequence[str]) -> list[str]:
    """Have message batches end soon; return what went wrong."""
    faults = []
    for message_batch in batches:
        try:
            asking.build(build_batch_generator).cancel(message_batch)
        except RecallwatchError as error:
            log.warning("message_batch_not_cancelled", batch=message_batch, reason=str(error))
            faults.append(f"message batch {message_batch} goes on, and is paid for: {error}")
    return faults


def _asking(ctx: Context, generation_id: int) -> Asking:
    with ctx.database.begin() as session:
        return Asking.of(ctx, generations.get(session, generation_id))


def _claim(
    ctx: Context, asking: Asking, *, limit: int, numbers: Sequence[int] | None = None
) -> list[Claim]:
    with ctx.database.begin() as session:
        return generation_requests.claim(
            session, asking.generation_id, numbers=numbers, limit=limit, lease=_task_takes(ctx)
        )


def _task_takes(ctx: Context) -> float:
    """Return seconds after which the task that took something is not there any more."""
    return ctx.settings.queue.lease + GRACE
