"""A worker in this process: messages are kept in a list and worked on when a test says so."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from db import alerts, results, runs
from db.models import Alert, Run
from db.results import ResultRow
from pipeline.alerts.message import Alert as AlertMessage
from pipeline.alerts.settings import AlertSettings, ChannelSettings
from tests.integration.db.building import GATE, failed, scored, start_run, store_all
from workers.alerting import deliver
from workers.context import Context
from workers.doorbell import DELIVER_ALERT, EMBED_SHARD, EVALUATE_SHARD, REDUCE_RUN
from workers.embedding import embed
from workers.enqueue import Request, StartedBatch, start
from workers.evaluation import evaluate
from workers.reducing import reduce
from workers.sweeping import sweep

DIMENSIONS = 64

NOWHERE = "unix:///nowhere/redis.sock?db=0"

Rung = tuple[str, tuple[int, ...]]

TASKS: Mapping[str, Callable[..., object]] = {
    EMBED_SHARD: embed,
    EVALUATE_SHARD: evaluate,
    REDUCE_RUN: reduce,
    DELIVER_ALERT: deliver,
}


class Bell:
    """The messages that were rung and not worked on yet, in order: task and arguments."""

    def __init__(self) -> None:
        self.messages: list[Rung] = []
        self.queues: list[str] = []

    def ring(self, task: str, queue: str, messages: Iterable[tuple[int, ...]]) -> None:
        self.messages += [(task, tuple(arguments)) for arguments in messages]
        self.queues.append(queue)

    def take(self) -> list[Rung]:
        taken, self.messages = self.messages, []
        return taken

    def work(self, ctx: Context) -> None:
        """Work on messages, and on those they lead to, until there are none."""
        while self.messages:
            task, arguments = self.messages.pop(0)
            TASKS[task](ctx, *arguments)


def start_runs(ctx: Context, *strategies: str) -> StartedBatch:
    return start(ctx, Request(strategies=strategies or None))


def finish_runs(ctx: Context, bell: Bell, *strategies: str) -> list[Run]:
    """Start a batch and work until it is finished; return its runs."""
    started = start_runs(ctx, *strategies)
    bell.work(ctx)
    return [run_of(ctx, run_id) for run_id in started.run_ids]


def finish_by_sweeping(ctx: Context, bell: Bell) -> None:
    """Let sweeps find what to do until there is nothing left."""
    while True:
        swept = sweep(ctx, quiet=0)
        assert swept is not None
        if not (swept.failed or swept.rung or swept.reduced):
            return
        bell.work(ctx)


def run_of(ctx: Context, run_id: int) -> Run:
    with ctx.database.begin() as session:
        return runs.get(session, run_id).run


def rows_of(ctx: Context, run_id: int) -> Sequence[tuple[Any, ...]]:
    """Return all that was measured of each question, in order."""
    with ctx.database.begin() as session:
        return [
            (row.position, row.outcome, row.retrieved, row.scores, row.measured, row.first_rank,
             row.missing, row.error)
            for row in results.details(session, run_id)
        ]  # fmt: skip


def finished(
    ctx: Context,
    name: str,
    rows: Iterable[ResultRow],
    changes: Mapping[str, Any] | None = None,
    **gate: Any,  # noqa: ANN401 - fields of Gate
) -> Run:
    """Run a set with these results and reduce it; `changes` are of the plan, `gate` of the gate."""
    plan = {"gate": asdict(GATE) | gate, **(changes or {})}
    run_id = start_run(ctx.database, plan, set_name=name, shard_size=2)
    store_all(ctx.database, run_id, list(rows))
    assert reduce(ctx, run_id)
    return run_of(ctx, run_id)


def values(*each: float) -> Iterator[ResultRow]:
    """Yield scored results whose measures all have these values."""
    for position, value in enumerate(each):
        yield scored(position, value, value, value)


def alerts_of(ctx: Context) -> list[Alert]:
    """Return the outbox, in order."""
    with ctx.database.begin() as session:
        return list(alerts.recent(session, limit=1000))[::-1]


BROKEN = "broken"
"""The result of a run whose every question fails."""


def finished_as(
    ctx: Context, name: str, result: Sequence[float] | str, **gate: Any  # noqa: ANN401 - of Gate
) -> Run:  # fmt: skip
    """Run a set whose questions score these values, or all fail, and reduce it."""
    if result == BROKEN:
        return finished(ctx, name, (failed(p, "the server is gone") for p in range(4)), **gate)
    return finished(ctx, name, values(*map(float, result)), **gate)


def telling(**channels: ChannelSettings) -> AlertSettings:
    return AlertSettings(channels=channels)


def told(ctx: Context) -> list[tuple[int, str]]:
    """Return the runs that alerts were written of, and their kinds, in order."""
    return [(alert.run_id, alert.kind) for alert in alerts_of(ctx)]


def messages(ctx: Context) -> list[tuple[str, AlertMessage]]:
    """Return each alert's channel and what it is to say, in order."""
    return [(alert.channel, AlertMessage.from_json(alert.payload)) for alert in alerts_of(ctx)]
