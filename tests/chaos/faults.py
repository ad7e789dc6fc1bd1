"""What is broken: each fault strikes at one moment, and is undone at a later one where it lasts.

Here: the processes of workers and beats.
"""

import random
import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import psutil

from tests.chaos.world import World


@dataclass
class Scene:
    """The runs under way, the faults that have struck them, and what these know of them.

    `may_fail` are words of the reasons that a run may end with because of them: a run that ends
    as failed without any of them is a violation. `must_fail` are runs that may not complete.
    `complaints` are violations that only the fault itself can see.
    """

    world: World
    rng: random.Random
    run_ids: list[int] = field(default_factory=list)
    may_fail: list[str] = field(default_factory=list)
    must_fail: set[int] = field(default_factory=set)
    struck: "list[Fault]" = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


class Fault(ABC):
    """One way to break the world, once."""

    name: ClassVar[str]
    before_start: ClassVar[bool] = False
    """It strikes before the run is started: it is about the start, or about the whole run."""
    until_end: ClassVar[bool] = False
    """It is undone only when the runs have ended and their alerts are out."""
    between: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """Seconds until it is undone, at least and at most."""
    needs_small_disk: ClassVar[bool] = False

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.world = scene.world
        self.struck_at = 0.0

    def lasts(self) -> float:
        """Return the seconds until it is undone; 0: there is nothing to undo."""
        return self.scene.rng.uniform(*self.between)

    @abstractmethod
    def strike(self) -> None:
        """Break something."""

    def undo(self) -> None:  # noqa: B027 - most faults heal without help
        """Put right what the strike left; twice changes nothing."""

    def settle(self) -> None:  # noqa: B027
        """Look, when the runs have ended, at what only this fault knows of, and complain."""


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may be gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def pool_children(world: World) -> list[psutil.Process]:
    """Return the processes that do the work."""
    return [child for worker in world.workers for child in worker.children()]


class ChildKilled(Fault):
    name = "kill -9 of a pool child"

    def strike(self) -> None:
        if children := pool_children(self.world):
            signal_all([self.scene.rng.choice(children)], signal.SIGKILL)


class WorkerKilled(Fault):
    """The children live on for a while, and finish what they do."""

    name = "kill -9 of a worker"

    def strike(self) -> None:
        signal_all(self.scene.rng.choice(self.world.workers).family()[:1], signal.SIGKILL)


class MachineLost(Fault):
    name = "kill -9 of a worker and its pool"

    def strike(self) -> None:
        signal_all(self.scene.rng.choice(self.world.workers).family(), signal.SIGKILL)


class WorkerStopped(Fault):
    name = "SIGSTOP of a worker for longer than its lease"
    stopped: Sequence[psutil.Process] = ()

    def lasts(self) -> float:
        return self.world.profile.longer_than_lease

    def strike(self) -> None:
        self.stopped = self.scene.rng.choice(self.world.workers).family()
        signal_all(self.stopped, signal.SIGSTOP)

    def undo(self) -> None:
        signal_all(self.stopped, signal.SIGCONT)


class ChildStopped(WorkerStopped):
    name = "SIGSTOP of a pool child for longer than its lease"

    def strike(self) -> None:
        if children := pool_children(self.world):
            self.stopped = [self.scene.rng.choice(children)]
            signal_all(self.stopped, signal.SIGSTOP)


class BeatKilled(Fault):
    name = "kill -9 of beat"

    def strike(self) -> None:
        signal_all(self.world.beats[0].family(), signal.SIGKILL)


class BeatDown(Fault):
    name = "beat down, several sweeps missed"
    between = (3, 5)

    def strike(self) -> None:
        self.world.beats[0].hold()

    def undo(self) -> None:
        self.world.beats[0].held = False


class TwoBeats(Fault):
    name = "two beats"
    before_start = True
    until_end = True

    def strike(self) -> None:
        self.world.beats[1].held = False

    def undo(self) -> None:
        self.world.beats[1].hold()


PROCESS_FAULTS: Sequence[type[Fault]] = (
    ChildKilled, WorkerKilled, MachineLost, WorkerStopped, ChildStopped, BeatKilled, BeatDown,
    TwoBeats,
)  # fmt: skip
