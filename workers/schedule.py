"""What beat starts by the clock."""

from typing import Any

from workers.doorbell import SWEEP

SWEEP_EVERY = 60
"""Seconds between two sweeps."""


def beat_schedule() -> dict[str, Any]:
    """Return Celery's beat schedule; a sweep that waited out its slot is dropped, not piled up."""
    return {
        "sweep": {
            "task": SWEEP,
            "schedule": SWEEP_EVERY,
            "options": {"queue": "default", "expires": SWEEP_EVERY},
        }
    }
