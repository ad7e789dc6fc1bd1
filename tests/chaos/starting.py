"""Start a run as `recallwatch eval` does, and know what was started whatever the call says."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.errors import RecallwatchError, TransientError
from tests.chaos.world import World, insist
from workers.enqueue import Request, start

ANSWERS_WITHIN = 20.0
"""Seconds: ten are promised with a frozen broker; the machine may be busy, the database down."""

_BATCH = """
SELECT r.id FROM recallwatch.run r JOIN recallwatch.batch b ON b.id = r.batch_id
WHERE b.requested_by = %s ORDER BY r.id
"""


@dataclass(frozen=True)
class Started:
    """The runs of a batch, and what was wrong with the call itself."""

    run_ids: Sequence[int]
    complaints: Sequence[str] = ()


def start_run(world: World, set_name: str, label: str) -> Started:
    """Start a batch, again if it was not written; `label` tells it from any other."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        began = time.monotonic()
        complaint = _complaint(world, set_name, label)
        took = time.monotonic() - began
        if complaint is None and took > ANSWERS_WITHIN:
            complaint = f"starting a run took {took:.1f} s"
        run_ids = insist(partial(_written, world, label))
        if run_ids or complaint:
            return Started(run_ids, [complaint] if complaint else [])
        time.sleep(0.2)
    return Started([], ["no run could be started in 90 s"])


def _complaint(world: World, set_name: str, label: str) -> str | None:
    try:
        start(world.context, Request(set_name=set_name, requested_by=label))
    except TransientError:
        return None  # a clear error; whether the run is there is looked up
    except RecallwatchError as error:
        return f"starting a run was refused: {error}"
    except Exception as error:  # noqa: BLE001 - whatever a user would see as a traceback
        return f"starting a run raised {error!r}"
    return None


def _written(world: World, label: str) -> list[int]:
    with world.connect() as connection:
        return [run_id for (run_id,) in connection.execute(_BATCH, [label])]
