"""A generation that is over, taken up again: what failed, was not sent, or may be there by now."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import generations
from db.generation_requests import ASKED_KEYS
from db.locks import lock_set
from db.models import Generation
from pipeline.errors import InputError
from pipeline.generation.base import GenerationStatus

ASKED_BY_ANOTHER = "another generation of the set asked for its chunks since"

_LEAVE_OUT = f"""
UPDATE recallwatch.generation_request r
SET state = 'failed', error = :why, token = token + 1, lease_until = NULL, next_at = NULL
WHERE r.generation_id = :id AND (r.state = 'failed' OR :over AND r.state IN ('pending', 'leased'))
  AND EXISTS (SELECT FROM jsonb_array_elements(r.ask->'chunks') AS chunk
              WHERE chunk->>'key' IN ({ASKED_KEYS}))
RETURNING r.number
"""
_REOPEN = """
UPDATE recallwatch.generation_request
SET state = 'pending', attempts = 0, token = token + 1, error = NULL,
    cost = CASE WHEN reserved > 0 THEN coalesce(cost, 0) + reserved ELSE cost END, reserved = 0,
    lease_until = NULL, next_at = NULL, rung_at = NULL, message_batch = NULL, batch_gone = false
WHERE generation_id = :id AND (state = 'failed' AND number <> ALL(:left_out)
    OR :ask_again AND state = 'unknown' AND (message_batch IS NULL OR batch_gone))
"""
_LOOK_AGAIN = """
UPDATE recallwatch.generation_request SET state = 'asked', rung_at = NULL
WHERE generation_id = :id AND state = 'unknown' AND message_batch IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a generation is now; `left_out`: requests whose chunks another generation asked for."""

    status: GenerationStatus
    message_batches: bool
    left_out: int


def resume(
    session: Session,
    generation_id: int,
    *,
    ask_again: bool,
    max_cost: float | None,
    deadline: timedelta,
) -> Resumed:
    """Take up what a generation left undone.

    Requests that failed were not paid for, and are sent again, but for those whose chunks another
    generation of the set asked for since: unless `--again` said that it may. Those whose outcome is
    unknown may have been paid for. The message batches that they are in are looked at again; they
    are sent only with `ask_again`, and then what they may have cost stays spent: where there is no
    batch, or the provider said that it has no answers. `max_cost` replaces the cap; None leaves it.
    Raises InputError when there is nothing to take up.
    """
    generations.get(session, generation_id)
    found = generations.lock(session, generation_id)
    left_out = _leave_out(session, found)
    values = {"id": generation_id, "ask_again": ask_again, "left_out": left_out}
    session.execute(text(_REOPEN), values)
    session.execute(text(_LOOK_AGAIN), {"id": generation_id})
    state = generations.counts(session, generation_id)
    waiting = state.asked_for > state.over
    if not waiting and not state.candidates.get("drafted"):
        raise InputError(_nothing_left(found, state.requests.get("unknown", 0), len(left_out)))
    status = GenerationStatus.RUNNING if waiting else GenerationStatus.SCREENING
    _restart(session, generation_id, status, max_cost, deadline)
    return Resumed(status, found.message_batches, len(left_out))


def _leave_out(session: Session, found: Generation) -> list[int]:
    """End the requests for what another generation asked for since, and return their numbers."""
    if found.settings.get("again"):
        return []
    lock_set(session, found.set_name)
    values = {
        "id": found.id, "but": found.id, "set_name": found.set_name,
        "over": found.status in generations.OVER, "why": ASKED_BY_ANOTHER,
    }  # fmt: skip
    return list(session.execute(text(_LEAVE_OUT), values).scalars())


def _restart(
    session: Session,
    generation_id: int,
    status: GenerationStatus,
    max_cost: float | None,
    deadline: timedelta,
) -> None:
    session.execute(
        text("""
            UPDATE recallwatch.generation SET status = :status, error = NULL, finished_at = NULL,
                max_cost = coalesce(:max_cost, max_cost), screen_attempts = 0,
                screen_next_at = NULL, screen_error = NULL,
                deadline_at = clock_timestamp() + CAST(:deadline AS interval)
            WHERE id = :id
        """),
        {"id": generation_id, "status": status, "max_cost": max_cost, "deadline": deadline},
    )


def _nothing_left(found: Generation, unknown: int, left_out: int) -> str:
    reason = f"generation {found.id} is {found.status}, and nothing of it is left to do"
    if left_out:
        reason += f" ({_requests(left_out)}: {ASKED_BY_ANOTHER})"
    if unknown:
        reason += (
            f" ({_requests(unknown)} may have been paid for and have no answer; to send them again,"
            " and perhaps pay twice: --ask-again)"
        )
    return reason


def _requests(n: int) -> str:
    return f"{n} request{'s' if n != 1 else ''}"
