"""Procfile: the same processes as docker-compose.yml has, for other ways to run them."""

import shlex

from tests.unit.deployment.commands import celery_options, is_recallwatch
from tests.unit.deployment.files import compose, procfile
from workers.queues import QUEUES


def test_each_queue_has_a_process_type_beside_beat_and_the_release() -> None:
    assert sorted(procfile()) == sorted([*QUEUES, "beat", "release"])


def test_a_release_migrates_first() -> None:
    assert is_recallwatch(procfile()["release"])
    assert procfile()["release"] == ["recallwatch", "migrate"]


def test_workers_are_those_of_the_compose_file() -> None:
    services = compose()["services"]
    for queue in QUEUES:
        name, options = celery_options(procfile()[queue])
        assert (name, options["queues"]) == ("worker", [queue])
        assert (name, options) == celery_options(shlex.split(services[queue]["command"]))


def test_beat_starts_with_a_schedule_file_outside_the_checkout() -> None:
    name, options = celery_options(procfile()["beat"])
    assert name == "beat"
    assert options["schedule"].startswith("/")
