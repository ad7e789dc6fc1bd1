"""One run after the other, each with its faults; then everything about it is checked."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from tests.chaos import audit, checks, invariants
from tests.chaos.audit import Change
from tests.chaos.catalogue import Planned
from tests.chaos.faults import Fault, Scene
from tests.chaos.invariants import Violation, Watched
from tests.chaos.outside_faults import ProviderFault
from tests.chaos.starting import start_run
from tests.chaos.waiting import Clock, wait
from tests.chaos.world import KEEP, World, insist

REPEATED = 4
"""One run in so many asks the questions of the one before: it finds their vectors in the cache."""


@dataclass
class Outcome:
    """What became of one run of the suite, which may be several of the product's.

    `faults` are names and seconds after the start; `failed` the reasons of runs that had one;
    `struck_under_way` counts the faults that struck before the run and its alerts had ended.
    `kept` is the folder with the logs, when something was violated.
    """

    number: int
    faults: Sequence[tuple[str, float]]
    run_ids: Sequence[int] = ()
    right: int = 0
    failed: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    alerts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    struck_under_way: int = 0
    kept: str | None = None

    def violate(self, invariant: str, details: Sequence[str]) -> None:
        self.violations += [Violation(invariant, detail) for detail in details]


def run_once(world: World, number: int, plan: Sequence[Planned], rng: random.Random) -> Outcome:
    """Start a run, strike it, wait for its end, check it; leave a world that is whole again."""
    began = time.monotonic()
    outcome = Outcome(number, [(each.kind.name, each.at) for each in plan])
    scene = Scene(world, rng)
    set_name = _import(world, _set_number(number, plan))
    with _undone(scene):
        clock = Clock()
        for each in plan:
            if each.at < 0:
                _strike(scene, clock, each.kind)
        started = start_run(world, set_name, f"chaos {number}")
        scene.run_ids += started.run_ids
        outcome.violate("starting a run answers clearly", started.complaints)
        for each in plan:
            if each.at >= 0:
                clock.at(each.at, partial(_strike, scene, clock, each.kind))
        outcome.violate("every run and alert ends", wait(world, scene.run_ids, clock))
    for fault in scene.struck:
        fault.settle()
    outcome.violate("what a fault promises holds", scene.complaints)
    outcome.violate("every run and alert ends", wait(world, scene.run_ids, Clock()))
    insist(partial(_check, scene, outcome))
    outcome.seconds = time.monotonic() - began
    return outcome


def _set_number(number: int, plan: Sequence[Planned]) -> int:
    """Choose the questions: what is cached asks nothing of a provider that is to fail."""
    fresh = any(issubclass(each.kind, ProviderFault) for each in plan)
    return number if fresh or number % REPEATED else number - 1


def _import(world: World, number: int) -> str:
    name = f"set {number}"
    world.import_questions(name, world.collection.questions(number))
    return name


@contextmanager
def _undone(scene: Scene) -> Iterator[None]:
    """Undo, at the end, whatever lasts until then."""
    try:
        yield
    finally:
        for fault in scene.struck:
            fault.undo()


def _strike(scene: Scene, clock: Clock, kind: type[Fault]) -> None:
    fault = kind(scene)
    scene.struck.append(fault)
    fault.struck_at = time.time()
    fault.strike()
    if (lasts := fault.lasts()) and not fault.until_end:
        clock.at(clock.now + lasts, fault.undo)


def _check(scene: Scene, outcome: Outcome) -> None:
    """Read what the database holds, and hold it against the oracle and the invariants."""
    world = scene.world
    with world.connect() as connection:
        found = checks.records(connection, scene.run_ids)
        logged = audit.changes(connection, scene.run_ids)
    outcome.run_ids = [record.id for record in found]
    last = max((change.at.timestamp() for change in logged), default=0.0)
    outcome.struck_under_way = sum(fault.struck_at <= last for fault in scene.struck)
    for record in found:
        mine = [change for change in logged if change.run_id == record.id]
        taken = [taken for taken in world.receiver.taken if taken.run_id == record.id]
        watched = Watched(mine, taken, world.application, world.profile.attempts)
        outcome.violations += invariants.check(watched)
        outcome.violate("alerts are written", list(checks.missing_alerts(record)))
        outcome.alerts.update(str(alert["state"]) for alert in record.alerts)
        _judge(scene, record, outcome)
    if outcome.violations:
        _keep(world, outcome, logged)


def _keep(world: World, outcome: Outcome, logged: Sequence[Change]) -> None:
    """Leave what there is to look at: the logs of all processes, and every change of a row."""
    (world.folder / KEEP).touch()
    outcome.kept = str(world.folder)
    head = [f"{name} at {at:g} s" for name, at in outcome.faults]
    lines = [f"{c.at:%H:%M:%S.%f} {c.place}: {c.states} token {(c.new or {}).get('token')} {c.app}"
             for c in logged]  # fmt: skip
    (world.log / f"violated-{outcome.number}.txt").write_text("\n".join([*head, *lines]))


def _judge(scene: Scene, record: checks.Record, outcome: Outcome) -> None:
    """Say whether a run ended right, or failed for a reason that a fault gave it."""
    if record.completed:
        expected = scene.world.expected[record.run["set_name"]]
        wrong = list(checks.wrong_numbers(record, expected))
        outcome.right += not wrong
        outcome.violate("every number is right", wrong[:3])
        if record.id in scene.must_fail:
            outcome.violate("what cannot be measured fails", [f"run {record.id} completed"])
    elif any(word in record.reason for word in scene.may_fail):
        outcome.failed.append(record.reason)
    else:
        detail = f"run {record.id} is {record.run['status']}: {record.reason!r}"
        outcome.violate("no run fails without a cause", [detail])
