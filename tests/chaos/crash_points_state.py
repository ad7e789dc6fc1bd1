"""What the tables say after a crash, and in the end: compared with a process that nobody killed."""

from collections.abc import Mapping
from typing import Any

from db import runs
from db.models import Run
from tests.chaos.crash_points_world import World
from tests.integration.db.building import fetch
from tests.integration.workers.working import alerts_of, rows_of

SAID = ("strategy", "status", "verdict", "reasons", "size", "n_scored", "n_failed",
        "n_ineligible", "metrics", "by_category", "by_tenant", "facts")  # fmt: skip

TIMES = ("seconds", "ef_search")
"""What the record of exact search says of time."""

_PLANNED = """
SELECT (SELECT count(*) FROM recallwatch.batch) AS batches,
    (SELECT count(*) FROM recallwatch.run) AS runs,
    (SELECT count(*) FROM recallwatch.shard) AS shards,
    (SELECT count(*) FROM recallwatch.schedule_slot) AS slots
"""


def planned(world: World) -> Mapping[str, int]:
    """Count what a start writes in one transaction."""
    names = ("batches", "runs", "shards", "slots")
    return dict(zip(names, fetch(world.ctx.database, _PLANNED)[0], strict=True))


_SPLIT_SHARDS = """
SELECT s.run_id, s.number FROM recallwatch.shard s
WHERE s.kind = 'served' AND (s.state = 'done') <> (
    EXISTS (SELECT FROM recallwatch.result r WHERE r.run_id = s.run_id
            AND r.position BETWEEN s.first_position AND s.last_position))
"""

_OPEN_SHARDS_OF_FINISHED = """
SELECT s.run_id, s.number FROM recallwatch.shard s JOIN recallwatch.run r ON r.id = s.run_id
WHERE r.status NOT IN ('queued', 'running') AND s.state IN ('pending', 'leased')
"""


def check_in_between(world: World, whole: Mapping[str, int]) -> None:
    """See that what belongs together was written together, or not at all."""
    left = planned(world)
    assert left == whole or not any(left.values()), f"a part of a batch was left behind: {left}"
    split = fetch(world.ctx.database, _SPLIT_SHARDS)
    assert not split, f"shards done without results, or with results and not done: {split}"
    still_open = fetch(world.ctx.database, _OPEN_SHARDS_OF_FINISHED)
    assert not still_open, f"runs ended without their shards: {still_open}"


def final_state(world: World) -> Mapping[str, Any]:
    """Return all that must be the same whoever died: records, results, slots, states of alerts.

    Runs come in order, without their ids; "alerts" maps (run, channel, kind) to a state.
    """
    ctx = world.ctx
    ids = fetch(ctx.database, "SELECT id FROM recallwatch.run ORDER BY id")
    return {
        "runs": [_run(world, run_id) for run_id in ids],
        "planned": planned(world),
        "slots": fetch(
            ctx.database, "SELECT schedule, due_at, outcome FROM recallwatch.schedule_slot"
        ),
        "alerts": {
            (ids.index(alert.run_id), alert.channel, alert.kind): alert.state
            for alert in alerts_of(ctx)
        },
    }


def _run(world: World, run_id: int) -> Mapping[str, Any]:
    ctx = world.ctx
    with ctx.database.begin() as session:
        run = runs.get(session, run_id).run
    positions = [row[0] for row in rows_of(ctx, run_id)]
    assert len(positions) == len(set(positions)), f"a question counts twice: {positions}"
    return {
        "record": {name: _rounded(getattr(run, name)) for name in SAID},
        "exact": _exact(run),
        "results": rows_of(ctx, run_id),
        "exact_results": fetch(ctx.database, _EXACT_RESULTS, {"run": run_id}),
        "shards": fetch(ctx.database, _SHARDS, {"run": run_id}),
    }


_EXACT_RESULTS = """
SELECT position, retrieved, measured FROM recallwatch.exact_result WHERE run_id = :run
ORDER BY position
"""
_SHARDS = """
SELECT number, kind, first_position, last_position, state FROM recallwatch.shard
WHERE run_id = :run ORDER BY number
"""


def _exact(run: Run) -> Mapping[str, Any] | None:
    said = run.exact
    return said and _rounded({name: said[name] for name in said if name not in TIMES})


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Round every mean: the last bit of a sum hangs on the order in which shards were stored."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return round(value, 12) if isinstance(value, float) else value
