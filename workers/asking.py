"""What becomes of a generation's requests when they are sent: stored, tried again, or given up."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Self, TypeVar

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from pydantic import SecretStr

from db import generation_requests, generations
from db.generation_requests import Claim, Leave
from db.models import Generation
from db.session import Session
from pipeline.embedding.pricing import dollars
from pipeline.errors import RecallwatchError, TransientError
from pipeline.generation.base import Answer, GenerationStatus, Price, UnknownOutcomeError, Usage
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.pricing import price_of
from pipeline.generation.settings import GenerationSettings
from pipeline.generation.sizes import size
from workers import doorbell
from workers.context import Context
from workers.retrying import asks_patience, wait_before_retry

log = structlog.get_logger(__name__)

NOT_STORED = "its answer could not be stored: see the worker's log (request_not_stored)"

ROOM_AFTER = 5.0
"""Seconds after which a request looks again for room in the cost cap, while others are asked."""

STORE_WAITS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds between tries to store what was paid for: a minute, in which a database may restart."""

SPARE = 0.1
"""Of [queue] lease: for all that a task does beside asking, and waiting to store the answer."""

Sent = TypeVar("Sent")
Built = TypeVar("Built")
Builder = Callable[[GenerationSettings, SecretStr | None], Built]
Change = Callable[..., GenerationStatus | None]


@dataclass(frozen=True, slots=True)
class Asking:
    """The requests of one generation, and what they have in common."""

    ctx: Context
    generation_id: int
    plan: GenerationPlan
    price: Price | None

    @classmethod
    def of(cls, ctx: Context, generation: Generation) -> Self:
        """Return that of a stored generation."""
        plan = GenerationPlan.from_json(generation.settings)
        price = price_of(plan.generation, message_batches=generation.message_batches)
        return cls(ctx, generation.id, plan, price)

    @property
    def settings(self) -> GenerationSettings:
        """The generation's settings, with a timeout that leaves a task time to store an answer."""
        longest = longest_request(self.ctx.settings.queue.lease)
        settings = self.plan.generation
        return settings.model_copy(update={"timeout": min(settings.timeout, longest)})

    def build(self, builder: Builder[Built]) -> Built:
        """Return the generator for these settings; raises SettingsError."""
        return builder(self.settings, self.ctx.settings.anthropic_api_key)

    def built(self, claims: Sequence[Claim], builder: Builder[Built]) -> Built | None:
        """Return the same; None: it cannot be made, which ends the claims and the generation."""
        try:
            return self.build(builder)
        except RecallwatchError as error:
            self.fail(claims, str(error))
            self.stop(str(error))
            return None

    def grant(
        self, claims: Sequence[Claim], *, lease: float, room_after: float = ROOM_AFTER
    ) -> list[Claim]:
        """Return the claims that may be sent now, noted as sent: answers have `lease` seconds.

        The others wait `room_after` seconds for room in the cost cap; where there will be none, the
        generation stops.
        """
        granted: list[Claim] = []
        too_much = None
        with self.ctx.database.begin() as session:
            for position, claim in enumerate(claims):
                most = self._cost_of(size(claim.ask)[1])
                leave = generation_requests.leave_to_send(session, claim, most, lease=lease)
                if leave is Leave.GRANTED:
                    granted.append(claim)
                elif leave is Leave.NO_ROOM:
                    _wait_for_room(session, claims[position:], room_after)
                    break
                elif leave is Leave.USED_UP:
                    too_much = most
                    break
        if too_much is not None:
            self._stop_at_cap(too_much)
        return granted

    def send(self, claims: Sequence[Claim], call: Callable[[], Sent]) -> Sent | None:
        """Make the call that sends these requests and return what it does.

        None: it raised, and the requests are pending again, failed or unknown, by what it raised.
        """
        try:
            return call()
        except TransientError as error:
            self._try_again(claims, error)
        except UnknownOutcomeError as error:
            self.give_up(claims, str(error))
        except SoftTimeLimitExceeded:
            self.give_up(claims, "no answer within [queue] lease: it may have been paid for")
        except RecallwatchError as error:
            self.fail(claims, str(error))
            self.stop(str(error))
        except Exception as error:
            log.exception("asking_raised")
            self.give_up(claims, f"{error!r}: it may have been paid for")
        return None

    def store(self, claim: Claim, answer: Answer) -> None:
        """Store what came back for a request, and what it cost."""
        cost = self._cost_of(answer.usage)
        with self._each_by_itself(claim):
            self.persist(partial(self._change, generation_requests.store, claim, answer, cost))

    def persist(self, store: Callable[[], Sent]) -> Sent:
        """Store what was paid for: a database that is away for a while is waited for."""
        for wait in store_waits(self.ctx.settings.queue.lease):
            try:
                return store()
            except TransientError as error:
                log.warning("not_stored_yet", reason=str(error), seconds=wait)
                time.sleep(wait)
        return store()

    def fail(self, claims: Sequence[Claim], reason: str) -> None:
        """End requests that were not billed."""
        for claim in claims:
            with self._each_by_itself(claim):
                self._change(generation_requests.fail, claim, reason)

    def give_up(self, claims: Sequence[Claim], reason: str, *, batch_gone: bool = False) -> None:
        """End requests that may have been billed; `batch_gone`: and their message batch is gone."""
        log.warning("outcome_unknown", requests=len(claims), reason=reason)
        give_up = partial(generation_requests.give_up, batch_gone=batch_gone)
        for claim in claims:
            with self._each_by_itself(claim):
                self._change(give_up, claim, reason)

    @contextmanager
    def _each_by_itself(self, claim: Claim) -> Iterator[None]:
        """Keep what cannot be stored of one request from keeping the others from being stored."""
        try:
            yield
        except (TransientError, SoftTimeLimitExceeded):
            raise
        except Exception:
            log.exception("request_not_stored", request=claim.number)
            self._change(generation_requests.give_up, claim, NOT_STORED)

    def stop(self, reason: str) -> None:
        """Send no more of the generation's requests."""
        log.warning("generation_stopped", reason=reason)
        self._change(generation_requests.stop, self.generation_id, reason)

    def _try_again(self, claims: Sequence[Claim], error: TransientError) -> None:
        """Have requests that were not billed sent again, unless they used up their attempts."""
        patience = asks_patience(error)
        for claim in claims:
            if not patience and claim.attempt >= self.plan.generation.attempts:
                self.fail([claim], f"{claim.attempt} attempts failed: {error}")
                continue
            with self.ctx.database.begin() as session:
                generation_requests.put_back(
                    session, claim, error=str(error), counted=not patience,
                    wait=wait_before_retry(error, attempt=claim.attempt),
                )  # fmt: skip

    def _stop_at_cap(self, too_much: float) -> None:
        with self.ctx.database.begin() as session:
            found = generations.get(session, self.generation_id)
        self.stop(
            f"the cost cap of {dollars(found.max_cost or 0)} is used up ({dollars(found.spent)}"
            f" spent, and the next request may cost {dollars(too_much)}): raise it with"
            f" recallwatch golden generations resume {found.id} --max-cost"
        )

    def _cost_of(self, usage: Usage) -> float:
        return self.price.of(usage) if self.price is not None else 0.0

    def _change(self, change: Change, *arguments: object) -> None:
        """Change states in a transaction; ring where the generation is to be filtered then."""
        with self.ctx.database.begin() as session:
            status = change(session, *arguments)
        if status is GenerationStatus.SCREENING:
            doorbell.screen([self.generation_id])


def store_waits(lease: float) -> list[float]:
    """Return the STORE_WAITS that a task of `lease` seconds has left after its longest request."""
    left = (1 - SPARE) * lease - longest_request(lease)
    return [
        wait
        for wait, passed in zip(STORE_WAITS, accumulate(STORE_WAITS), strict=True)
        if passed <= left
    ]


def longest_request(lease: float) -> float:
    """Return the seconds that a request may take of a task's `lease`, whatever the settings say.

    What is left is time to store the answer: all STORE_WAITS, or half of a lease that is short.
    """
    return max((1 - SPARE) * lease - sum(STORE_WAITS), lease / 2)


def _wait_for_room(session: Session, claims: Sequence[Claim], seconds: float) -> None:
    for claim in claims:
        generation_requests.put_back(
            session, claim, error="waits for room in the cost cap", wait=seconds, counted=False
        )
