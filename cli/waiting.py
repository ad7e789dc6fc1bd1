"""Wait for runs: progress over questions, doorbells that were lost, workers that are not there."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from cli.alarm import raising_after
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

FROZEN_AFTER = 20.0
"""Seconds past its time after which a command is stuck in a server that does not answer."""

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
    done_before: int = 0

    def wait(self, description: str) -> None:
        """Return when every run is finished.

        Raises UnmeasuredError after `timeout` seconds or when the database is lost, UsageError
        when no worker is there: the runs go on when one comes.
        """
        frozen = f"no answer from a server for {self.timeout + FROZEN_AFTER:g} seconds"
        try:
            with raising_after(self.timeout + FROZEN_AFTER, lambda: TransientError(frozen)):
                self._follow(description)
        except TransientError as error:
            raise UnmeasuredError(f"{error}; {left(self.run_ids)}") from error

    def _follow(self, description: str) -> None:
        seen = self._look()
        self.done_before = _done(seen)
        with progress(description, None) as bar:
            while any(p.status in UNFINISHED for p in seen):
                bar.move_to(_done(seen), sum(p.size for p in seen))
                self._look_after(seen)
                time.sleep(POLL)
                seen = self._look()
        self._let_alerts_out()

    def _look(self) -> Sequence[Progress]:
        with self.ctx.database.begin() as session:
            return runs.progress(session, self.run_ids)

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
            late = f"not finished after {self.timeout:g} seconds"
            raise UnmeasuredError(f"{late}; {left(self.run_ids)}")
        if not self.asked and now - self.started > NOBODY_AFTER:
            self.asked = True
            self._ask_for_workers(seen)
        if now - self.swept > SWEEP_EVERY:
            self.swept = now
            self._sweep()

    def _ask_for_workers(self, seen: Sequence[Progress]) -> None:
        if self.revive is None and not self._moves(seen) and not answering():
            raise UsageError(
                f"no worker took a shard in {NOBODY_AFTER:g} seconds and none answers; start one"
                " (recallwatch up, or: celery -A workers.app worker), or leave out --no-start;"
                f" {left(self.run_ids)}"
            )

    def _moves(self, seen: Sequence[Progress]) -> bool:
        """Say whether a worker took or finished a shard: of a resumed run some were done before."""
        return _done(seen) > self.done_before or any(p.claimed for p in seen)

    def _sweep(self) -> None:
        if self.revive is not None:
            self.revive()
        try:
            sweep(self.ctx)
        except TransientError as error:
            log.warning("sweep_postponed", reason=str(error))


def _done(seen: Sequence[Progress]) -> int:
    return sum(p.done for p in seen)


def left(run_ids: Sequence[int]) -> str:
    """Say what becomes of runs that nobody waits for any more, and how to end them."""
    ids = ", ".join(map(str, run_ids))
    cancel = " ".join(map(str, run_ids))
    return f"run {ids} goes on when workers run; to end it: recallwatch runs cancel {cancel}"
