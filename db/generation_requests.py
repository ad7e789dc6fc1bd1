"""Requests to a model: claimed as shards are, paid for once, and never sent twice by themselves.

`pending -> leased -> asked -> answered` (or refused, failed, unknown). The step to `asked` is
committed before the request goes out, with what it may cost at most. So a request that is found
`asked` when its lease is over may have been paid for: it becomes `unknown`, and only a person has
it sent again. One that is found `leased` was not sent.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from db import generation_costs, generations
from pipeline.generation.base import Answer, Ask, Draft, GenerationStatus, SourceChunk
from pipeline.generation.stored import ask_from_json, reply_to_json
from pipeline.types import Kind


class Leave(Enum):
    """Whether a claimed request may be sent."""

    GRANTED = auto()
    NO_ROOM = auto()
    """It may cost more than is left of the cap while others are under way: ask again later."""
    USED_UP = auto()
    """It may cost more than is left of the cap."""
    LOST = auto()
    """Somebody else holds the request, or the generation is over."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's hold on a request: it is heard while `token` is still the newest.

    `attempt` counts from 1.
    """

    generation_id: int
    number: int
    token: int
    attempt: int
    ask: Ask

    @property
    def name(self) -> str:
        """What the request is called in a message batch."""
        return f"g{self.generation_id}-r{self.number}-t{self.token}"


CLAIMABLE = """g.status IN ('queued', 'running')
    AND r.attempts < CAST(g.settings->'generation'->>'attempts' AS integer)
    AND (r.state = 'pending' AND coalesce(r.next_at <= clock_timestamp(), true)
         OR r.state = 'leased' AND r.lease_until < clock_timestamp())"""


def claim(
    session: Session, generation_id: int, *, numbers: Sequence[int] | None = None, limit: int = 1,
    lease: float,
) -> list[Claim]:  # fmt: skip
    """Take waiting requests, those of these numbers or any, in one UPDATE that raises their token.

    One that somebody changes at this moment is not waited for.
    """
    query = text(f"""
        WITH wanted AS MATERIALIZED (
            SELECT r.generation_id, r.number FROM recallwatch.generation_request r
            JOIN recallwatch.generation g ON g.id = r.generation_id
            WHERE r.generation_id = :id AND {CLAIMABLE}
              AND (CAST(:numbers AS integer[]) IS NULL OR r.number = ANY(:numbers))
            ORDER BY r.number LIMIT :limit FOR NO KEY UPDATE OF r SKIP LOCKED)
        UPDATE recallwatch.generation_request r SET state = 'leased', token = token + 1,
            attempts = attempts + 1, next_at = NULL,
            lease_until = clock_timestamp() + make_interval(secs => :lease)
        FROM wanted w WHERE r.generation_id = w.generation_id AND r.number = w.number
        RETURNING r.number, r.token, r.attempts, r.ask
    """)
    values = {"id": generation_id, "lease": lease, "limit": limit,
              "numbers": None if numbers is None else list(numbers)}  # fmt: skip
    claims = [
        Claim(generation_id, row.number, row.token, row.attempts, ask_from_json(row.ask))
        for row in session.execute(query, values)
    ]
    return sorted(claims, key=lambda each: each.number)


def leave_to_send(session: Session, claim: Claim, cost: float, *, lease: float) -> Leave:
    """Reserve what a request may cost at most, in US dollars, and note that it goes out.

    Its answer has `lease` seconds; after them nobody waits for it any more.

    Commit before it does: what a worker that dies had reserved stays spent, as it may have been
    billed. The generation is locked, so that of requests at once none is let past the cap.
    """
    found = generations.lock(session, claim.generation_id)
    if found.status not in generations.ASKING or not _holds(session, claim):
        return Leave.LOST
    if not generation_costs.reserve(session, claim.generation_id, cost):
        return Leave.NO_ROOM if _others_are_asked(session, claim.generation_id) else Leave.USED_UP
    session.execute(
        text("""
            UPDATE recallwatch.generation_request SET state = 'asked', reserved = :cost,
                lease_until = clock_timestamp() + make_interval(secs => :lease)
            WHERE generation_id = :id AND number = :number
        """),
        _of(claim) | {"cost": cost, "lease": lease},
    )
    generations.mark_running(session, claim.generation_id)
    return Leave.GRANTED


def _of(claim: Claim) -> dict[str, Any]:
    return {"id": claim.generation_id, "number": claim.number, "token": claim.token}


def _holds(session: Session, claim: Claim) -> bool:
    query = text("""
        SELECT 1 FROM recallwatch.generation_request
        WHERE generation_id = :id AND number = :number AND token = :token AND state = 'leased'
        FOR NO KEY UPDATE
    """)
    return session.scalar(query, _of(claim)) is not None


def _others_are_asked(session: Session, generation_id: int) -> bool:
    query = text("""
        SELECT EXISTS (SELECT FROM recallwatch.generation_request
                       WHERE generation_id = :id AND state = 'asked')
    """)
    return bool(session.scalar(query, {"id": generation_id}))


def _reserved(session: Session, claim: Claim) -> float | None:
    """Return what a request that went out, or may go out, has reserved; None: the claim was lost.

    One that was given up as unknown is still its asker's: the answer was late, and is paid for.
    """
    generations.lock(session, claim.generation_id)
    query = text("""
        SELECT reserved FROM recallwatch.generation_request
        WHERE generation_id = :id AND number = :number AND token = :token
          AND state IN ('leased', 'asked', 'unknown')
    """)
    reserved: float | None = session.scalar(query, _of(claim))
    return reserved


def store(
    session: Session, claim: Claim, answer: Answer, cost: float
) -> GenerationStatus | None:  # fmt: skip
    """Store an answer and its drafts, put right what was reserved, and move the generation on.

    Twice changes nothing, and nothing is stored for a claim that was lost. Returns what the
    generation turned to: see `generations.close_if_over`.
    """
    reserved = _reserved(session, claim)
    if reserved is None:
        return None
    session.execute(
        text("""
            UPDATE recallwatch.generation_request SET state = :state, error = :refusal,
                reply = CAST(:reply AS jsonb), cost = coalesce(cost, 0) + :cost, reserved = 0,
                input_tokens = coalesce(input_tokens, 0) + :input,
                output_tokens = coalesce(output_tokens, 0) + :output,
                lease_until = NULL, next_at = NULL
            WHERE generation_id = :id AND number = :number
        """),
        _of(claim) | {
            "state": "answered" if answer.refusal is None else "refused",
            "refusal": answer.refusal, "reply": json.dumps(reply_to_json(answer)), "cost": cost,
            "input": answer.usage.all_input_tokens, "output": answer.usage.output_tokens,
        },
    )  # fmt: skip
    generation_costs.settle(session, claim.generation_id, cost - reserved)
    _insert_candidates(session, claim, answer.drafts)
    return generations.close_if_over(session, claim.generation_id)


def _insert_candidates(session: Session, claim: Claim, drafts: Sequence[Draft]) -> None:
    if not drafts:
        return
    ask, first = claim.ask, claim.ask.chunks[0]
    shared = {"kind": ask.kind, "tenant": first.tenant, "language": ask.language or first.language}
    session.execute(
        text("""
            INSERT INTO recallwatch.candidate (generation_id, number, ordinal, text, expected,
                kind, category, tenant, language)
            VALUES (:id, :number, :ordinal, :text, CAST(:expected AS jsonb), :kind, :category,
                :tenant, :language)
        """),
        [
            _of(claim) | shared
            | {"ordinal": ordinal, "text": draft.text, "category": draft.category,
               "expected": json.dumps(_expected(ask, draft))}
            for ordinal, draft in enumerate(drafts, start=1)
        ],
    )  # fmt: skip


def _expected(ask: Ask, draft: Draft) -> Mapping[str, int]:
    """Return what should come back: the chunks that the draft needs, or all where it names none."""
    if ask.kind is Kind.UNANSWERABLE:
        return {}
    needed = [ask.chunks[number - 1] for number in draft.chunk_numbers] or ask.chunks
    return {chunk.key: 1 for chunk in needed}


def put_back(
    session: Session, claim: Claim, *, error: str | None, wait: float, counted: bool = True
) -> bool:
    """Have a request that was not billed sent again in `wait` seconds; False: the claim was lost.

    `counted=False` takes the attempt back: a server asked for patience, or there was no room in
    the cap, which is no fault of the request's. The generation's deadline bounds it.
    """
    reserved = _reserved(session, claim)
    if reserved is None:
        return False
    session.execute(
        text("""
            UPDATE recallwatch.generation_request SET state = 'pending', reserved = 0,
                lease_until = NULL, error = :error,
                attempts = attempts - CASE WHEN :counted THEN 0 ELSE 1 END,
                next_at = clock_timestamp() + make_interval(secs => :wait)
            WHERE generation_id = :id AND number = :number
        """),
        _of(claim) | {"error": error, "wait": wait, "counted": counted},
    )
    generation_costs.settle(session, claim.generation_id, -reserved)
    return True


def fail(session: Session, claim: Claim, error: str) -> GenerationStatus | None:
    """End a request that was not billed and has no answer; what it reserved is free again."""
    reserved = _reserved(session, claim)
    if reserved is None:
        return None
    _end(session, claim, "failed", error, reserved=0)
    generation_costs.settle(session, claim.generation_id, -reserved)
    return generations.close_if_over(session, claim.generation_id)


def give_up(
    session: Session, claim: Claim, error: str, *, batch_gone: bool = False
) -> GenerationStatus | None:
    """End a request that may have been billed: what it reserved stays spent.

    `batch_gone`: the message batch that it is in has no answers to give.
    """
    reserved = _reserved(session, claim)
    if reserved is None:
        return None
    _end(session, claim, "unknown", error, reserved=reserved, batch_gone=batch_gone)
    return generations.close_if_over(session, claim.generation_id)


def _end(
    session: Session, claim: Claim, state: str, error: str, *, reserved: float,
    batch_gone: bool = False,
) -> None:  # fmt: skip
    session.execute(
        text("""
            UPDATE recallwatch.generation_request SET state = :state, error = :error,
                reserved = :reserved, batch_gone = :gone, lease_until = NULL, next_at = NULL
            WHERE generation_id = :id AND number = :number
        """),
        _of(claim) | {"state": state, "error": error, "reserved": reserved, "gone": batch_gone},
    )


def stop(session: Session, generation_id: int, reason: str) -> GenerationStatus | None:
    """Send none of a generation's requests that did not go out yet; those under way are awaited."""
    found = generations.lock(session, generation_id)
    if found.status not in generations.ASKING:
        return None
    session.execute(
        text("""
            UPDATE recallwatch.generation_request SET state = 'failed', error = :reason,
                lease_until = NULL, next_at = NULL
            WHERE generation_id = :id AND state IN ('pending', 'leased')
        """),
        {"id": generation_id, "reason": reason},
    )
    session.execute(
        text("UPDATE recallwatch.generation SET error = :reason WHERE id = :id"),
        {"id": generation_id, "reason": reason},
    )
    return generations.close_if_over(session, generation_id)


_ASKED = """(r.state IN ('asked', 'answered', 'refused', 'unknown')
    OR g.status IN ('queued', 'running') AND r.state IN ('pending', 'leased'))"""
"""Of a request r of a generation g: it was paid for, or is going to be."""

ASKED_KEYS = f"""
SELECT chunk->>'key' FROM recallwatch.generation_request r
JOIN recallwatch.generation g ON g.id = r.generation_id
CROSS JOIN jsonb_array_elements(r.ask->'chunks') AS chunk
WHERE g.set_name = :set_name AND g.id <> :but AND {_ASKED}
"""
"""The keys of the chunks that a set's generations but one asked for, or are going to."""


def asked_chunks(session: Session, set_name: str) -> list[SourceChunk]:
    """Return the chunks that a set's generations asked for, or are going to."""
    query = text(f"""
        SELECT DISTINCT chunk FROM recallwatch.generation_request r
        JOIN recallwatch.generation g ON g.id = r.generation_id
        CROSS JOIN jsonb_array_elements(r.ask->'chunks') AS chunk
        WHERE g.set_name = :set_name AND {_ASKED}
    """)
    found = session.execute(query, {"set_name": set_name}).scalars()
    return [SourceChunk(**chunk) for chunk in found]
