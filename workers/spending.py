"""What a batch may cost: estimated when it starts, and kept to at each request."""

import math
from dataclasses import dataclass
from itertools import islice

import structlog

from db import golden, spending
from db.models import Run
from db.session import Session
from pipeline.embedding.packing import most_tokens
from pipeline.embedding.pricing import cost_of, dollars, price_of
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import PermanentError, RecallwatchError, UsageError
from workers.context import Context

LOOKED_UP = 20_000
"""Questions looked up in the cache at a time."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many questions have no vector in the cache, and what embedding them costs at most.

    In US dollars, with a token for each byte: no tokenizer makes more of them, and most make a
    fourth of that of English.
    """

    questions: int
    cost: float

    def __str__(self) -> str:
        return (
            f"estimated cost: at most {dollars(self.cost)} for {self.questions:,} new"
            f" question{'s' if self.questions != 1 else ''}"
        )


class BatchBudget:
    """What one batch spends, in its row: the budget that its requests ask."""

    def __init__(self, ctx: Context, batch_id: int) -> None:
        self._ctx = ctx
        self._batch_id = batch_id

    def reserve(self, cost: float) -> None:
        """Add to what was spent, before the request; raises PermanentError above the cap."""
        if not cost:
            return
        with self._ctx.database.begin() as session:
            if spending.reserve(session, self._batch_id, cost):
                return
            spent, cap = spending.of_batch(session, self._batch_id)
        raise PermanentError(
            f"the batch's cost cap of {dollars(cap or 0)} is used up ({dollars(spent)} spent, and"
            f" the next request may cost {dollars(cost)}): raise [embedding] max_cost, then"
            " recallwatch runs resume"
        )

    def settle(self, reserved: float, cost: float) -> None:
        """Put a reservation right; where that fails it stays, and the batch has spent too much."""
        if reserved == cost:
            return
        try:
            with self._ctx.database.begin() as session:
                spending.settle(session, self._batch_id, cost - reserved)
        except RecallwatchError as error:
            log.warning("cost_not_put_right", batch=self._batch_id, reason=str(error))


def check_amount(max_cost: float | None) -> None:
    """Refuse a cap that is no amount of money: nothing is above NaN; raises UsageError."""
    if max_cost is not None and not 0 <= max_cost < math.inf:
        raise UsageError(f"a cost cap is a number of US dollars from 0 on, not {max_cost:g}")


def check_cap(embedding: EmbeddingSettings, max_cost: float | None) -> None:
    """Refuse a cap that nothing can be held against; raises UsageError."""
    check_amount(max_cost)
    if max_cost is not None and price_of(embedding) is None:
        raise UsageError(
            f"a cost cap of {dollars(max_cost)} needs a price: what {embedding.model} costs is not"
            " known; set [embedding] price (US dollars for a million tokens, 0 where it is free)"
        )


def estimate(
    ctx: Context, session: Session, version_id: int, dimensions: int | None
) -> Estimate | None:
    """Count what a version's questions cost that are not cached; None: its vectors are free."""
    embedding = ctx.settings.embedding
    if not price_of(embedding):
        return None
    embedder = ctx.embedder(dimensions=dimensions)
    texts = golden.texts(session, version_id)
    questions = tokens = 0
    while batch := list(islice(texts, LOOKED_UP)):
        missing = embedder.missing(batch)
        questions += len(missing)
        tokens += sum(map(most_tokens, missing))
    return Estimate(questions, cost_of(tokens, embedding))


def check_estimate(estimated: Estimate | None, max_cost: float | None) -> None:
    """Refuse to start what may cost more than its cap; raises UsageError."""
    if estimated is not None and max_cost is not None and estimated.cost > max_cost:
        raise UsageError(
            f"{estimated}, which is above the cap of {dollars(max_cost)} (--max-cost or [embedding]"
            " max_cost): raise it, or evaluate fewer questions"
        )


def renew_cap(ctx: Context, session: Session, run: Run) -> None:
    """Raise the cap of a run that somebody resumes to that of today's settings.

    It is never lowered: other runs of its batch may be at work, started with a higher one.
    """
    if ctx.settings.embedding.max_cost is not None:
        spending.raise_cap(session, run.batch_id, ctx.settings.embedding.max_cost)
