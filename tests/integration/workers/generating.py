"""Generations in this process, over a loopback server that bills."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from db import generation_figures, generations
from db.generation_figures import Figures
from db.models import Generation
from pipeline.generation.base import Category
from tests.integration.db.building import execute
from tests.integration.workers.working import Bell
from tests.loopback.anthropic_server import AnthropicServer
from workers.context import Context
from workers.doorbell import (
    ASK_REQUEST,
    POLL_MESSAGE_BATCH,
    SCREEN_GENERATION,
    SUBMIT_GENERATION,
)
from workers.drawing import Wanted
from workers.generating import prepare, start
from workers.generation import ask, poll, submit

TASKS: dict[str, Callable[..., object]] = {
    ASK_REQUEST: ask,
    SUBMIT_GENERATION: submit,
    POLL_MESSAGE_BATCH: poll,
}
KEY = "sk-ant-test"


def wanted(ctx: Context, *, max_cost: float | None = None, **changes: Any) -> Wanted:  # noqa: ANN401 - fields of Wanted
    settings = ctx.settings.generation.model_copy(update={"max_cost": max_cost})
    made = Wanted(
        set_name="made", generation=settings, sample=3, per_chunk=1, multi_chunk=0,
        unanswerable=0, categories={Category.FACTUAL: 1}, seed=1,
    )  # fmt: skip
    return replace(made, **changes)


def begin(ctx: Context, **changes: Any) -> int:  # noqa: ANN401 - see wanted
    return start(ctx, prepare(ctx, wanted(ctx, **changes)))


def work(ctx: Context, bell: Bell) -> list[int]:
    """Work on all messages but those that ask for filtering; return which generations these are."""
    to_screen: list[int] = []
    while messages := bell.take():
        for task, arguments in messages:
            if task == SCREEN_GENERATION:
                to_screen += arguments
            else:
                TASKS[task](ctx, *arguments)
    return to_screen


def seen(ctx: Context, generation_id: int) -> tuple[Generation, Figures]:
    with ctx.database.begin() as session:
        return (
            generations.get(session, generation_id),
            generation_figures.figures(session, generation_id),
        )


def cost_of(claude: AnthropicServer) -> float:
    """Return what the server billed, in dollars."""
    tokens = sum(p.usage["input_tokens"] + p.usage["output_tokens"] for p in claude.paid)
    return tokens / 1_000_000


def let_leases_end(ctx: Context) -> None:
    execute(ctx.database, "UPDATE recallwatch.generation_request SET next_at = NULL,"
                          " lease_until = lease_until - interval '1 hour'")  # fmt: skip
