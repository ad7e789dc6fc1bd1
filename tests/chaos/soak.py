"""Nothing broken, run after run: does any process grow?"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil

from tests.chaos.profiles import CI, soaking
from tests.chaos.runner import run_once
from tests.chaos.world import World, opened

SAMPLE_EVERY = 10.0
WARM_UP = 30.0
"""Seconds of age from which a process is sampled: it loads what it needs at its first tasks."""

MOST_GROWTH = 0.2
FEWEST = 6
"""Samples that are needed to judge: two a third."""

MEGABYTE = 1024**2


@dataclass(frozen=True)
class Grown:
    """The memory of processes of a kind in the soak's first and last third: medians, in bytes."""

    name: str
    first: float
    last: float

    @property
    def share(self) -> float:
        return self.last / self.first - 1


@dataclass
class Soak:
    """Samples of memory by kind of process, and what the runs came to meanwhile.

    A pool's children are one kind: after 1000 tasks another takes a child's place, which is no way
    to hide growth from one that is sampled through all of them.
    """

    minutes: float
    runs: int = 0
    violations: list[str] = field(default_factory=list)
    samples: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def processes(self) -> list[Grown]:
        """Return each kind that was sampled often enough."""
        return [
            Grown(name, median(seen[: len(seen) // 3]), median(seen[-(len(seen) // 3) :]))
            for name, seen in sorted(self.samples.items())
            if len(seen) >= FEWEST
        ]

    @property
    def grew(self) -> bool:
        return bool(self.violations) or any(each.share > MOST_GROWTH for each in self.processes)

    def to_json(self) -> dict[str, Any]:
        return {
            "minutes": self.minutes,
            "runs": self.runs,
            "violations": self.violations,
            "processes": {each.name: [each.first, each.last] for each in self.processes},
        }

    def lines(self) -> Iterator[str]:
        yield f"{self.runs} runs in {self.minutes:g} minutes, nothing broken. Resident memory, MB:"
        yield ""
        yield "| processes | first third | last third | growth |"
        yield "| --- | --- | --- | --- |"
        for each in self.processes:
            first, last = each.first / MEGABYTE, each.last / MEGABYTE
            yield f"| {each.name} | {first:.1f} | {last:.1f} | {each.share:+.1%} |"
        yield from (f"violated: {violation}" for violation in self.violations)


def soak(minutes: float, seed: int, say: Callable[[str], None]) -> Soak:
    """Run for so many minutes and sample the memory of every worker, child and beat."""
    found = Soak(minutes)
    began = time.monotonic()
    with opened(soaking(CI), seed) as world:
        next_sample = began
        while time.monotonic() - began < 60 * minutes:
            rng = random.Random(f"{seed} soak")  # noqa: S311 - nothing is drawn from it
            outcome = run_once(world, found.runs + 1, (), rng)
            found.runs += 1
            found.violations += [f"{v.invariant}: {v.detail}" for v in outcome.violations]
            if time.monotonic() >= next_sample:
                _sample(world, found)
                next_sample = time.monotonic() + SAMPLE_EVERY
            if found.runs % 50 == 0:
                say(f"soak: {found.runs} runs, {(time.monotonic() - began) / 60:.0f} minutes")
    return found


def _sample(world: World, found: Soak) -> None:
    for service in world.supervisor.services:
        for number, process in enumerate(service.family()):
            kind = service.name if number == 0 else f"{service.name}, children"
            with suppress(psutil.NoSuchProcess):
                if time.time() - process.create_time() >= WARM_UP:
                    found.samples[kind].append(process.memory_info().rss)
