"""What people do to a run: cancel it and let it go on, delete its rows, store them once more."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg

from pipeline.errors import UsageError
from tests.chaos.faults import Fault
from tests.chaos.world import insist
from workers import resuming

PATIENCE = 10.0
"""Seconds that a fault waits for a result to be stored."""


class CancelledAndResumed(Fault):
    name = "cancelled, then resumed"

    def strike(self) -> None:
        """Cancel, wait up to a second, resume; a run that has ended is left alone."""
        ctx = self.world.context
        for run_id in self.scene.run_ids:
            if insist(partial(resuming.cancel, ctx, [run_id])):
                time.sleep(self.scene.rng.random())
                # Refused when the answer to a first try was lost: the run goes on already.
                with suppress(UsageError):
                    insist(partial(resuming.resume, ctx, run_id))


class ResultDeleted(Fault):
    """Somebody deletes a stored result of a run under way: it must end failed, never scored."""

    name = "a stored result deleted"
    statement = """
        WITH open_run AS (
            SELECT id FROM recallwatch.run WHERE id = ANY(%s) AND status IN ('queued', 'running')
            ORDER BY id LIMIT 1 FOR UPDATE)
        DELETE FROM recallwatch.result r USING open_run o
        WHERE r.run_id = o.id AND r.position = (
            SELECT min(position) FROM recallwatch.result WHERE run_id = o.id) RETURNING r.run_id
    """

    def strike(self) -> None:
        if run_ids := self._once_stored():
            self.scene.must_fail.update(run_ids)
            self.scene.may_fail.append("results are missing")

    def _once_stored(self) -> Sequence[int]:
        """Repeat the statement until it finds a stored result, or the run has ended.

        Returns the runs in which it found one.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(psycopg.OperationalError), self.world.connect() as connection:
                if found := connection.execute(self.statement, [self.scene.run_ids]).fetchall():
                    return [run_id for (run_id,) in found]
                if not _unfinished(connection, self.scene.run_ids):
                    return []
            time.sleep(0.02)
        return []


class Ghost(ResultDeleted):
    """A worker of an older version, without tokens, stores a finished shard's results again."""

    name = "results stored again by a worker without a claim"
    statement = """
        INSERT INTO recallwatch.result SELECT r.* FROM recallwatch.result r
        JOIN recallwatch.run ON run.id = r.run_id
        WHERE r.run_id = ANY(%s) AND run.status IN ('queued', 'running')
        ORDER BY r.run_id, r.position LIMIT 5 RETURNING run_id
    """

    def strike(self) -> None:
        with suppress(psycopg.errors.UniqueViolation):
            self._once_stored()


def _unfinished(connection: psycopg.Connection[Any], run_ids: Sequence[int]) -> bool:
    query = "SELECT 1 FROM recallwatch.run WHERE id = ANY(%s) AND status IN ('queued', 'running')"
    return connection.execute(query, [list(run_ids)]).fetchone() is not None


PEOPLE_FAULTS: Sequence[type[Fault]] = (CancelledAndResumed, ResultDeleted, Ghost)
