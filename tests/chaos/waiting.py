"""Wait for runs and alerts to end, and do meanwhile what is due."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from tests.chaos.world import World

LOOK_EVERY = 0.05
SETTLES_WITHIN = 45.0
"""Seconds after a run's last moment in which its alerts come to their end."""

# The runs and alerts that are open, in words; the runs that should have ended long ago.
_OPEN = """
SELECT 'run ' || id || ' is ' || status,
    deadline_at < now() - make_interval(secs => %(slack)s) AS hangs
FROM recallwatch.run WHERE id = ANY(%(ids)s) AND status IN ('queued', 'running')
UNION ALL SELECT 'alert of run ' || run_id || ' to ' || channel || ' is ' || state, false
FROM recallwatch.alert WHERE run_id = ANY(%(ids)s) AND state IN ('pending', 'claimed')
"""


class Clock:
    """Actions at their times, in seconds since it was made, done while somebody waits."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._due: list[tuple[float, Callable[[], None]]] = []

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    @property
    def empty(self) -> bool:
        return not self._due

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        self._due.append((seconds, action))
        self._due.sort(key=lambda each: each[0])

    def tick(self) -> None:
        """Do what is due."""
        while self._due and self._due[0][0] <= self.now:
            self._due.pop(0)[1]()


def wait(world: World, run_ids: Sequence[int], clock: Clock) -> Sequence[str]:
    """Wait until the clock is empty and all has ended; return what seems not to end at all."""
    most = world.profile.deadline + world.profile.slack + SETTLES_WITHIN
    end = time.monotonic() + most
    while True:
        clock.tick()
        still = _open(world, run_ids)
        hanging = [what for what, hangs in still or () if hangs]
        if hanging:
            return hanging
        if time.monotonic() > end:
            return [what for what, _ in still or [("the database does not answer", True)]]
        if still == [] and clock.empty:
            return []
        time.sleep(LOOK_EVERY)


def _open(world: World, run_ids: Sequence[int]) -> list[tuple[str, bool]] | None:
    """Return what is open, and whether it is so for too long; None: the database is down."""
    values = {"ids": list(run_ids), "slack": world.profile.slack}
    with suppress(psycopg.OperationalError), world.connect() as connection:
        return connection.execute(_OPEN, values).fetchall()
    return None
