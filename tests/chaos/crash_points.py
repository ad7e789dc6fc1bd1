"""Crash before and after each commit, each request and each message, and carry on.

    python -m tests.chaos.crash_points --times 10

A calm process first shows which points there are, so that one added to the product is covered by
itself. For each point another process does the same until there and is killed. Messages that it
sent are delivered, lost, doubled, in any order, as a seed says; then sweeps find what is left. In
the end everything must be as after the calm one. Prints a table of points and how it ended.
"""

import argparse
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from cli.embedded.stack import open_stack
from db import migrate
from pipeline.errors import UsageError
from pipeline.log import configure
from pipeline.settings import LogSettings
from tests.chaos.crash_points_child import ACTS, Job, Point
from tests.chaos.crash_points_scenarios import SCENARIOS, Prepared, Scenario
from tests.chaos.crash_points_state import check_in_between, final_state, planned
from tests.chaos.crash_points_world import Crash, World, open_world
from tests.conftest import at_database
from tests.integration.conftest import copy_of, opened
from tests.integration.workers.conftest import GOLDEN, chunks
from tests.integration.workers.templates import filled
from tests.loopback.hook_server import answer
from tests.loopback.openai_server import vectors
from workers.doorbell import DELIVER_ALERT

SEED = 4


@dataclass(frozen=True, slots=True)
class Calm:
    """A scenario that nobody died in: its points, what was planned by it, and how it ended."""

    scenario: Scenario
    points: Sequence[Point]
    planned: Mapping[str, int]
    state: Mapping[str, Any]


def record(world: World, scenario: Scenario) -> Calm:
    """Run a scenario undisturbed."""
    _, crash = _do(world, scenario, die_at=None)
    assert crash.code == 0, f"{scenario.name}: the process failed; see its traceback above"
    made = planned(world)
    _heal(world, scenario)
    world.bell.messages = crash.waiting
    world.sweep_until_settled()
    return Calm(scenario, crash.points, made, final_state(world))


def die_and_carry_on(world: World, calm: Calm, number: int, chance: random.Random) -> str:
    """Have a process die at a point, counted from 1, and carry on; say in a word how it ended.

    Raises AssertionError where it did not end as the calm one.
    """
    scenario = calm.scenario
    prepared, crash = _do(world, scenario, die_at=number)
    assert crash.code == -signal.SIGKILL, f"it ended with {crash.code}"
    assert crash.points == list(calm.points[:number]), f"it died at {crash.points[-1]}"
    check_in_between(world, calm.planned)
    _heal(world, scenario)
    world.bell.messages = _delivered(crash, chance)
    _do_again(world, scenario, prepared)
    world.sweep_until_settled()
    return _ending(world, calm, calm.points[number - 1])


def _do(world: World, scenario: Scenario, die_at: int | None) -> tuple[Prepared, Crash]:
    world.begin_anew()
    prepared = scenario.prepare(world)
    world.bell.take()
    job = Job(
        settings=world.ctx.settings,
        environment=world.environment,
        act=scenario.act,
        run_ids=prepared.run_ids,
        messages=prepared.messages,
        work=scenario.work,
        die_at=die_at,
    )
    return prepared, world.zygote.do(job)


def _heal(world: World, scenario: Scenario) -> None:
    if scenario.heals:
        world.provider.default, world.hook.default = vectors(), answer(200, b"ok")
        # What was refused has not arrived; what may have arrived is never posted to that channel
        # again, unless it takes repeats.
        world.hook.posted.clear()


def _delivered(crash: Crash, chance: random.Random) -> list[tuple[str, tuple[int, ...]]]:
    """Return the messages that reach another worker, in the order in which they do."""
    fate = chance.choice(["kept", "doubled", "lost"])
    if fate == "lost":
        return []
    messages = crash.waiting * (2 if fate == "doubled" else 1)
    chance.shuffle(messages)
    redelivered = [crash.interrupted] if crash.interrupted and chance.random() < 0.5 else []
    return [*redelivered, *messages]


def _do_again(world: World, scenario: Scenario, prepared: Prepared) -> None:
    """Do what the one would do who saw the process die: look, and do it again if need be."""
    there = scenario.act == "start" and any(planned(world).values())
    if scenario.act is None or there:
        return
    try:
        ACTS[scenario.act](world.ctx, prepared.run_ids)
    except UsageError:
        # The run is not any more as it must be for the act: it was done.
        return


def _ending(world: World, calm: Calm, died_at: Point) -> str:
    state = dict(final_state(world))
    expected = dict(calm.state)
    alerts, calm_alerts = state.pop("alerts"), expected.pop("alerts")
    assert state == expected, "it did not end as the calm one"
    assert alerts.keys() == calm_alerts.keys(), "other alerts than after the calm one"
    others = {of: ended for of, ended in alerts.items() if ended != calm_alerts[of]}
    if calm.scenario.heals:
        # What the calm one posted to an unwell receiver, this one may have posted to a healed one.
        others = {of: ended for of, ended in others.items() if ended != "sent"}
    while_posting = died_at.task == DELIVER_ALERT.removeprefix("recallwatch.")
    assert not others or (while_posting and list(others.values()) == ["unknown"]), others
    assert world.most_posts_of_an_alert() <= 1, "an alert was posted twice"
    sent = sum(ended == "sent" for ended in alerts.values())
    assert sent <= len(world.hook.posted) <= sent + len(others), "an alert was not posted"
    return "as calm, an alert unknown" if others else "as calm"


def distinct(calm: Calm) -> list[int]:
    """Return the numbers of the points that lead to different states of the world.

    Between a point and a message or request right before it nothing happens; of messages sent in
    a row the last stands for those between; tasks that went alike are looked at once.
    """
    seen: set[tuple[Point, ...]] = set()
    numbers: list[int] = []
    for _, group in groupby(enumerate(calm.points, start=1), key=lambda each: each[1].task):
        stretch = list(group)
        shape = tuple(point for _, point in stretch)
        if shape not in seen:
            seen.add(shape)
            numbers += [
                number
                for (number, point), following in zip(stretch, [*shape[1:], None], strict=True)
                if point.moment not in {"before message", "before POST"}
                and not (
                    point.moment == "after message"
                    and following
                    and following.moment == "before message"
                )
            ]
    return numbers


def try_point(world: World, calm: Calm, number: int, seed: str) -> str:
    """Do the same as `die_and_carry_on`, and say where and with what seed it went wrong."""
    chance = random.Random(seed)  # noqa: S311 - to shuffle messages
    try:
        return die_and_carry_on(world, calm, number, chance)
    except AssertionError as error:
        place = f"{calm.scenario.name}, {number} ({calm.points[number - 1]}), seed {seed!r}"
        raise AssertionError(f"{place}: {error}") from error


def _endings(world: World, calm: Calm, number: int, times: int, seed: int) -> Counter[str]:
    endings: Counter[str] = Counter()
    for time in range(times):
        try:
            endings[try_point(world, calm, number, f"{seed} {time} {number}")] += 1
        except AssertionError as error:
            endings[f"WRONG: {error}"] += 1
    return endings


@contextmanager
def _own_world() -> Iterator[World]:
    """Give a world on servers of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="recallwatch-crash-") as folder,
        open_stack(Path(folder), postgres=True, valkey=True) as stack,
        copy_of(stack.servers, "template1") as migrated,
    ):
        assert stack.servers.database_url is not None
        with opened(at_database(stack.servers.database_url, migrated)) as database:
            migrate.upgrade(database)
        with (
            filled(stack.servers, migrated, chunks(), GOLDEN) as template,
            open_world(stack.servers, template, redis_number=0) as world,
        ):
            yield world


def main(arguments: Sequence[str] | None = None) -> int:
    """Crash at every point; return 1 if one of them ended wrong."""
    parser = argparse.ArgumentParser("python -m tests.chaos.crash_points", allow_abbrev=False)
    parser.add_argument("--times", type=int, default=10, help="crashes at each point")
    parser.add_argument("--seed", type=int, default=SEED, help="what becomes of messages")
    parser.add_argument("--scenario", help="only those whose name holds this")
    options = parser.parse_args(arguments)
    configure(LogSettings(level="error"))
    total: Counter[str] = Counter()
    with _own_world() as world:
        for scenario in SCENARIOS:
            if options.scenario and options.scenario not in scenario.name:
                continue
            calm = record(world, scenario)
            for number, point in enumerate(calm.points, start=1):
                endings = _endings(world, calm, number, options.times, options.seed)
                total += endings
                told = "; ".join(f"{n} x {ending}" for ending, n in endings.items())
                _say(f"{scenario.name:30} {number:3}  {point!s:32} {told}")
    for ending, n in total.most_common():
        _say(f"{n:5} x {ending}")
    return int(any(ending.startswith("WRONG") for ending in total))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
