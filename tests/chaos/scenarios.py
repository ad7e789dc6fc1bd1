"""What catches each mutant: one run, struck at a chosen point instead of a random moment.

The same scenarios go through the product as it is, where they must show nothing.
"""

import random
import signal
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import psutil

from tests.chaos import mutants
from tests.chaos.catalogue import Planned
from tests.chaos.faults import Fault, signal_all
from tests.chaos.invariants import Violation
from tests.chaos.outside_faults import ServerFails
from tests.chaos.people_faults import Ghost, ResultDeleted
from tests.chaos.profiles import SCENARIO
from tests.chaos.runner import run_once
from tests.chaos.server_faults import BrokerKilled, MessagesTripled
from tests.chaos.switches import SECOND_IS_SLOW
from tests.chaos.world import KEEP, World, insist, opened

PATIENCE = 20.0
"""Seconds that a scenario waits for a process to come to its point."""


class StoppedAt(Fault):
    """The first process that comes to a point stops; what follows is up to `go_on`."""

    point: ClassVar[str]
    before_start = True

    def strike(self) -> None:
        self.world.switches.set(f"arm-{self.point}", on=True)

    def settle(self) -> None:
        self.world.switches.clear()

    def arrived(self, arrival: int) -> psutil.Process | None:
        """Wait for the first (0) or the second (1) process at the point; None: none came."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            pid = self.world.switches.arrived(self.point, arrival)
            if pid is not None:
                return psutil.Process(pid)
            time.sleep(0.02)
        return None

    @abstractmethod
    def go_on(self, first: psutil.Process) -> None:
        """Say what becomes of the process that stopped."""


class OvertakenBeforeStore(StoppedAt):
    """It goes on while a second process, which took the shard over, is still at it."""

    name = "stopped before it stores, overtaken"
    point = "store"

    def go_on(self, first: psutil.Process) -> None:
        self.arrived(1)
        signal_all([first], signal.SIGCONT)


class OvertakenBeforeReduce(StoppedAt):
    """It goes on when a second process has written the run's record."""

    name = "stopped before it reduces, overtaken"
    point = "reduce"

    def go_on(self, first: psutil.Process) -> None:
        self.arrived(1)
        time.sleep(1.0 + SECOND_IS_SLOW)
        signal_all([first], signal.SIGCONT)
        time.sleep(1.0)


class KilledAfterPost(StoppedAt):
    name = "killed when it has posted an alert"
    point = "posted"

    def go_on(self, first: psutil.Process) -> None:
        signal_all([first], signal.SIGKILL)


class Released(Fault):
    """The second half of a scenario: what stopped goes on, or never will."""

    name = "released"

    def strike(self) -> None:
        for fault in self.scene.struck:
            if isinstance(fault, StoppedAt) and (first := fault.arrived(0)):
                fault.go_on(first)


class GoneForGood(ServerFails):
    """Longer than a shard has tries: its run must end as failed, and say why."""

    name = "provider: 500 for good"
    reasons = (f"failed {SCENARIO.attempts} times",)
    until_end = True


def _stopped(kind: type[StoppedAt]) -> Sequence[Planned]:
    return [Planned(kind, -0.1), Planned(Released, 0.1)]


SCENARIOS: Mapping[str, Sequence[Planned]] = {
    "unique key dropped": [Planned(Ghost, 0.1)],
    "token check off": _stopped(OvertakenBeforeStore),
    "count check off": [Planned(ResultDeleted, 0.1)],
    "lock off": _stopped(OvertakenBeforeReduce),
    "sweep off": [Planned(BrokerKilled, 0.3)],
    "unknown alerts resent": _stopped(KilledAfterPost),
    "lease ignored": [Planned(MessagesTripled, -0.1)],
    "attempt cap off": [Planned(GoneForGood, -0.1)],
    "alert claimed after the post": _stopped(KilledAfterPost),
}


@dataclass(frozen=True)
class Caught:
    """What was seen of one mutant; `control`: without it, in the same scenario: must be nothing."""

    mutant: str
    violations: list[Violation]
    control: list[Violation]
    seconds: float

    @property
    def survived(self) -> bool:
        return not self.violations


def hunt(name: str, seed: int, control: list[Violation] | None = None) -> Caught:
    """Run a mutant's scenario against it, in a world of its own."""
    began = time.monotonic()
    with opened(SCENARIO, seed, mutant=name) as world:
        if name in mutants.STATEMENTS:
            insist(partial(_execute, world, mutants.STATEMENTS[name]))
        seen = play(world, name, 1, seed)
        # What a mutant breaks is no news.
        (world.folder / KEEP).unlink(missing_ok=True)
    return Caught(name, seen, control or [], time.monotonic() - began)


def controls(seed: int) -> dict[str, list[Violation]]:
    """Run every scenario against the product as it is; return what was seen, by mutant."""
    with opened(SCENARIO, seed) as world:
        return {name: play(world, name, number, seed)
                for number, name in enumerate(SCENARIOS, start=1)}  # fmt: skip


def play(world: World, name: str, number: int, seed: int) -> list[Violation]:
    """Run one scenario."""
    rng = random.Random(f"{seed} {name}")  # noqa: S311 - to be repeated, not secret
    return run_once(world, number, SCENARIOS[name], rng).violations


def _execute(world: World, statement: str) -> None:
    with world.connect() as connection:
        connection.execute(statement)
