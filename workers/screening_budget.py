"""What checking a generation's questions costs: their embedding counts as the asking does."""

import structlog

from db import generation_costs
from pipeline.errors import PermanentError, RecallwatchError
from workers.context import Context

log = structlog.get_logger(__name__)


class GenerationBudget:
    """What one generation spends, in its row: the budget that embedding asks."""

    def __init__(self, ctx: Context, generation_id: int) -> None:
        self._ctx = ctx
        self._id = generation_id

    def reserve(self, cost: float) -> None:
        """Add to what was spent, before the request; raises PermanentError above the cap."""
        if not cost:
            return
        with self._ctx.database.begin() as session:
            if generation_costs.reserve(session, self._id, cost):
                return
        raise PermanentError("the cost cap leaves no room to embed questions")

    def settle(self, reserved: float, cost: float) -> None:
        """Put a reservation right; where that fails it stays, and too much counts as spent."""
        if reserved == cost:
            return
        try:
            with self._ctx.database.begin() as session:
                generation_costs.settle(session, self._id, cost - reserved)
        except RecallwatchError as error:
            log.warning("cost_not_put_right", generation=self._id, reason=str(error))
