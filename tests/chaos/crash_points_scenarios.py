"""What the process is at when it dies: between them, every transition that the product commits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.types import Trigger
from tests.chaos.crash_points_child import EARLIER
from tests.chaos.crash_points_world import World
from tests.integration.db.building import execute, fetch
from tests.integration.workers.working import TASKS, Rung
from tests.loopback.hook_server import answer
from tests.loopback.openai_server import refuse, refuse_longer_than, vectors
from workers.doorbell import DELIVER_ALERT, EMBED_SHARD, EVALUATE_SHARD, REDUCE_RUN
from workers.enqueue import Request, StartedBatch, start
from workers.resuming import cancel
from workers.scheduling import tick


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the process gets: the runs to act on, the messages to work on."""

    run_ids: Sequence[int] = ()
    messages: Sequence[Rung] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """An act, or messages, of one process; `prepare` is done before by one that lives.

    `work`: it works on the messages that it sends, too. `heals`: provider and receivers that
    misbehaved are well again once the process is dead.
    """

    name: str
    prepare: Callable[[World], Prepared]
    act: str | None = None
    work: bool = False
    heals: bool = False


def _start(world: World, *strategies: str, trigger: Trigger = Trigger.MANUAL) -> StartedBatch:
    return start(world.ctx, Request(strategies=strategies, trigger=trigger))


def _work_but(world: World, *left: str) -> list[Rung]:
    """Work on all messages but those of some tasks, which are returned."""
    kept = []
    while world.bell.messages:
        task, arguments = message = world.bell.messages.pop(0)
        if task in left:
            kept.append(message)
        else:
            TASKS[task](world.ctx, *arguments)
    return kept


def _nothing(_: World) -> Prepared:
    return Prepared()


def _forgotten(world: World) -> Prepared:
    """Leave one run of each kind that a sweep finds something to do for."""
    _start(world, "hybrid")
    _work_but(world, DELIVER_ALERT)
    _start(world, "unreduced")
    _work_but(world, REDUCE_RUN)
    exhausted = _start(world, "exhausted").run_ids[0]
    execute(
        world.ctx.database,
        "UPDATE recallwatch.shard SET attempts = 3, error = 'boom' WHERE run_id = :run",
        {"run": exhausted},
    )
    _start(world, "waiting", trigger=Trigger.REINDEX)
    _start(world, "fulltext")
    world.bell.take()
    world.let_time_pass()
    return Prepared()


def _seen(world: World) -> Prepared:
    tick(world.ctx, EARLIER)
    return Prepared()


def _half_done(world: World) -> Prepared:
    run_id = _start(world, "fulltext").run_ids[0]
    world.bell.take()
    TASKS[EVALUATE_SHARD](world.ctx, run_id, 0)
    return Prepared([run_id])


def _cancelled(world: World) -> Prepared:
    prepared = _half_done(world)
    cancel(world.ctx, prepared.run_ids)
    return prepared


def _partly_failed(world: World) -> Prepared:
    """Finish a run of which the provider refused the longest question."""
    world.provider.default = refuse_longer_than(44, "maximum context length is 8 tokens")
    run_id = _start(world, "vector").run_ids[0]
    world.bell.work(world.ctx)
    world.provider.default = vectors()
    [n_failed] = fetch(world.ctx.database, "SELECT n_failed FROM recallwatch.run")
    assert n_failed == 1
    return Prepared([run_id])


def _refused(world: World) -> Prepared:
    world.provider.default = refuse(401)
    _start(world, "vector")
    return Prepared(messages=world.bell.take())


def _unwell(world: World) -> Prepared:
    started = _start(world, "vector")
    world.bell.take()
    world.provider.default = refuse(500)
    embedding = EMBED_SHARD, (started.batch_id, 0)
    return Prepared(messages=[embedding, (EVALUATE_SHARD, (started.run_ids[0], 1))])


def _without_exact(world: World) -> Prepared:
    """Leave exact search to be done, without the vectors, by a provider that refuses."""
    run_id = _start(world, "vector").run_ids[0]
    [number] = fetch(
        world.ctx.database, "SELECT number FROM recallwatch.shard WHERE kind = 'exact'"
    )
    exact = EVALUATE_SHARD, (run_id, number)
    while exact not in world.bell.messages:
        task, arguments = world.bell.messages.pop(0)
        TASKS[task](world.ctx, *arguments)
    world.ctx.redis.flushdb()
    world.provider.default = refuse(401)
    return Prepared(messages=world.bell.take())


def _incomplete(world: World) -> Prepared:
    _start(world, "short")
    messages = _work_but(world, REDUCE_RUN)
    execute(world.ctx.database, "DELETE FROM recallwatch.result WHERE position = 5")
    return Prepared(messages=messages)


def _to_post(status: int) -> Callable[[World], Prepared]:
    def prepare(world: World) -> Prepared:
        _start(world, "fulltext")
        messages = _work_but(world, DELIVER_ALERT)
        world.hook.default = answer(status)
        return Prepared(messages=messages)

    return prepare


SCENARIOS = (
    Scenario("a batch", _nothing, act="start", work=True),
    Scenario("a sweep", _forgotten, act="sweep"),
    Scenario("a schedule", _seen, act="tick"),
    Scenario("a cancel", _half_done, act="cancel"),
    Scenario("a resume", _cancelled, act="resume"),
    Scenario("a retry of failed questions", _partly_failed, act="retry_failed"),
    Scenario("a key that is refused", _refused),
    Scenario("a provider that is unwell", _unwell, heals=True),
    Scenario("exact search that fails", _without_exact),
    Scenario("results that are missing", _incomplete),
    Scenario("alerts that are refused", _to_post(429), heals=True),
    Scenario("alerts that may have arrived", _to_post(500), heals=True),
)
