"""What beat starts by the clock."""

from typing import Any

from workers.doorbell import SWEEP, TICK

SWEEP_EVERY = 60
"""Seconds between two sweeps."""

TICK_EVERY = 60
"""Seconds between two looks at the schedules; their own times are `pipeline.schedules`'."""


def beat_schedule() -> dict[str, Any]:
    """Return Celery's beat schedule; a task that waited out its slot is dropped, not piled up."""
    return {"sweep": _each(SWEEP_EVERY, SWEEP), "tick": _each(TICK_EVERY, TICK)}


def _each(seconds: int, task: str) -> dict[str, Any]:
    return {
        "task": task,
        "schedule": seconds,
        "options": {"queue": "default", "expires": seconds},
    }
