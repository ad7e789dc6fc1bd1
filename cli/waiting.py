"""Wait for runs: progress over questions, doorbells that were lost, workers that are not there."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from cli.output import progress
from db import alerts, runs
from db.run_states import UNFINISHED
from db.runs import Progress
from pipeline.errors import TransientError, UnmeasuredError, UsageError
from workers.context import Context
from workers.presence import answering
from workers.sweeping import sweep

log = structlog.get_logger(__name__)

POLL = 0.2
"""Seconds between two looks at the runs."""

SWEEP_EVERY = 5.0
"""Seconds between two sweeps: this command need not wait for a beat that may not run."""

ALERTS_GET = 20.0
"""Seconds that the alerts of finished runs get to be posted."""

NOBODY_AFTER = 10.0
"""Seconds after which shards that no worker took are worth a question."""


@dataclass
class Waiter:
    """Follows runs to their end; `revive` starts workers again where they are ours."""

    ctx: Context
    run_ids: Sequence[int]
    revive: Callable[[], None] | None
    timeout: float
    started: float = field(default_factory=time.monotonic)
    swept: float = field(default_factory=time.monotonic)
    asked: bool = False

    def wait(self, description: str) -> None:
        """Return when every run is finished.

        Raises UnmeasuredError after `timeout` seconds or when the database is lost, UsageError
        when no worker is there: the runs stay queued and go on when one comes.
        """
        try:
            self._follow(description)
        except TransientError as error:
            raise UnmeasuredError(f"{error} {self._left()}") from error

    def _follow(self, description: str) -> None:
        with progress(description, None) as bar:
            while True:
                with self.ctx.database.begin() as session:
                    seen = runs.progress(session, self.run_ids)
                bar.move_to(sum(p.done for p in seen), sum(p.size for p in seen))
                if all(p.status not in UNFINISHED for p in seen):
                    break
                self._look_after(seen)
                time.sleep(POLL)
        self._let_alerts_out()

    def _let_alerts_out(self) -> None:
        """Give the workers time to post, before a command stops them; a later sweep posts too."""
        until = time.monotonic() + ALERTS_GET
        while time.monotonic() < until:
            with self.ctx.database.begin() as session:
                if not alerts.on_their_way(session, self.run_ids):
                    return
            time.sleep(POLL)

    def _look_after(self, seen: Sequence[Progress]) -> None:
        now = time.monotonic()
        if now - self.started > self.timeout:
            raise UnmeasuredError(f"not finished after {self.timeout:g} seconds; {self._left()}")
        if not self.asked and now - self.started > NOBODY_AFTER:
            self.asked = True
            self._ask_for_workers(seen)
        if now - self.swept > SWEEP_EVERY:
            self.swept = now
            self._sweep()

    def _ask_for_workers(self, seen: Sequence[Progress]) -> None:
        if self.revive is None and not any(p.claimed for p in seen) and not answering():
            raise UsageError(
                f"no worker took a shard in {NOBODY_AFTER:g} seconds and none answers; start one"
                " (recallwatch up, or: celery -A workers.app worker), or leave out --no-start;"
                f" {self._left()}"
            )

    def _sweep(self) -> None:
        if self.revive is not None:
            self.revive()
        try:
            sweep(self.ctx)
        except TransientError as error:
            log.warning("sweep_postponed", reason=str(error))

    def _left(self) -> str:
        ids = ", ".join(map(str, self.run_ids))
        return f"run {ids} stays queued and goes on when workers run"
