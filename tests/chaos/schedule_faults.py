"""Beat down for three slots of a schedule: the last one is made up for, once."""

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from tests.chaos.faults import Fault
from tests.chaos.settings_file import SCHEDULE
from tests.chaos.world import insist

DAYS = 3
PATIENCE = 40.0
"""Seconds within which the last slot must have its batch."""

_AGE = (
    "UPDATE recallwatch.seen_schedule SET seen_at = seen_at - make_interval(days => %s)",
    "UPDATE recallwatch.schedule_slot SET due_at = due_at - make_interval(days => %s)",
)
_SLOTS = """
SELECT s.due_at, s.outcome, array_remove(array_agg(r.id), NULL)
FROM recallwatch.schedule_slot s LEFT JOIN recallwatch.run r ON r.batch_id = s.batch_id
WHERE s.schedule = %s GROUP BY s.due_at, s.outcome ORDER BY s.due_at
"""
_BATCHES = "SELECT count(*) FROM recallwatch.batch WHERE requested_by = %s"

Slot = tuple[Any, str, list[int]]


class SlotsMissed(Fault):
    """All beats are down, and the schedule's past moves back by three days: as if they passed."""

    name = "beat down for three slots, then two beats"
    between = (1.0, 1.0)
    slots: Sequence[Slot] = ()
    batches = 0

    def strike(self) -> None:
        for beat in self.world.beats:
            beat.hold()
        insist(self._age)

    def _age(self) -> None:
        with self.world.connect() as connection, connection.transaction():
            self.slots, self.batches = _slots(connection), _batches(connection)
            for statement in _AGE:
                connection.execute(statement, [DAYS])

    def undo(self) -> None:
        for beat in self.world.beats:
            beat.held = False

    def settle(self) -> None:
        """Wait for the last slot's batch, whose runs are then checked as all others are."""
        end = time.monotonic() + PATIENCE
        while not (new := self._new_slots()) and time.monotonic() < end:
            time.sleep(0.1)
        self.world.beats[1].hold()
        outcomes = [outcome for _, outcome, _ in new]
        if outcomes != ["started"]:
            self.scene.complaints.append(f"of {DAYS} missed slots these were taken: {outcomes}")
        started = insist(self._batches) - self.batches
        if started != outcomes.count("started"):
            self.scene.complaints.append(f"{started} batches were started for {len(new)} slots")
        self.scene.run_ids += [run_id for _, _, run_ids in new for run_id in run_ids]

    def _new_slots(self) -> Sequence[Slot]:
        return insist(self._all_slots)[len(self.slots) :]

    def _all_slots(self) -> Sequence[Slot]:
        with self.world.connect() as connection:
            return _slots(connection)

    def _batches(self) -> int:
        with self.world.connect() as connection:
            return _batches(connection)


def _slots(connection: psycopg.Connection[Any]) -> Sequence[Slot]:
    return connection.execute(_SLOTS, [SCHEDULE]).fetchall()


def _batches(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(_BATCHES, [SCHEDULE]).fetchone()
    return int(row[0]) if row else 0


SCHEDULE_FAULTS: Sequence[type[Fault]] = (SlotsMissed,)
