"""A process is killed before and after each commit, request and message: the end is the same.

Each point that differs from the others is looked at once; `python -m tests.chaos.crash_points` does
all of them many times.
"""

from collections.abc import Iterator

import pytest

from cli.embedded.stack import Servers
from tests.chaos.crash_points import SEED, distinct, record, try_point
from tests.chaos.crash_points_scenarios import SCENARIOS, Scenario
from tests.chaos.crash_points_world import World, open_world

NUMBERS_ABOVE = 8
"""Redis databases below are taken by other tests of the same process."""


@pytest.fixture(scope="module")
def world(servers: Servers, corpus_template: str, worker_id: str) -> Iterator[World]:
    number = NUMBERS_ABOVE + (int(worker_id[2:]) if worker_id.startswith("gw") else 0) % 8
    with open_world(servers, corpus_template, number) as world:
        yield world


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_wherever_a_process_dies_the_end_is_the_same(world: World, scenario: Scenario) -> None:
    calm = record(world, scenario)

    endings = {
        try_point(world, calm, number, f"{SEED} {scenario.name} {number}")
        for number in distinct(calm)
    }

    assert endings <= {"as calm", "as calm, an alert unknown"}
    assert endings, "there is a point to die at"


def test_the_points_of_a_batch_are_all_seen(world: World) -> None:
    batch = next(each for each in SCENARIOS if each.act == "start")

    points = {str(point) for point in record(world, batch).points}

    for task in ("start", "embed_shard", "evaluate_shard", "reduce_run"):
        for moment in ("before commit", "after commit", "before message", "after message"):
            assert f"{task}: {moment}" in points
    for task in ("embed_shard", "deliver_alert"):
        assert {f"{task}: before POST", f"{task}: after POST"} <= points
