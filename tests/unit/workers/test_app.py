import asyncio
import inspect

import pytest
from celery import Celery, Task
from celery.backends.base import DisabledBackend
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pipeline.settings import QueueSettings, Settings
from workers import doorbell
from workers.app import TASK_MODULES, PlainTask, _configuration, app, broker_url
from workers.queues import QUEUES


def configured(lease: int = 300) -> Celery:
    """Return an app as these settings make it, apart from the process's own."""
    settings = Settings(
        redis_url=SecretStr("redis://localhost:1/2"), queue=QueueSettings(lease=lease)
    )
    celery = Celery("test", set_as_current=False)
    celery.conf.update(_configuration(settings))
    return celery


def our_tasks() -> dict[str, Task]:
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if name.startswith("recallwatch.")}


def test_messages_are_json_and_nothing_else_is_taken() -> None:
    conf = configured().conf

    assert conf.task_serializer == "json"
    assert list(conf.accept_content) == ["json"]


def test_there_is_no_result_backend() -> None:
    celery = configured()

    assert celery.conf.result_backend is None
    assert isinstance(celery.backend, DisabledBackend)
    assert celery.conf.task_ignore_result is True


def test_a_message_is_acknowledged_when_its_task_is_done() -> None:
    conf = configured().conf

    assert conf.task_acks_late is True
    assert conf.task_reject_on_worker_lost is True
    assert conf.worker_prefetch_multiplier == 1


def test_a_task_that_kills_its_worker_is_not_tried_for_ever() -> None:
    conf = configured().conf

    assert conf.task_retry_on_worker_lost is True
    assert conf.task_annotations["*"]["max_retries"] == 2


@given(lease=st.integers(1, 3600))
def test_no_message_is_delivered_again_while_its_task_may_still_run(lease: int) -> None:
    conf = configured(lease).conf

    assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit
    assert conf.task_time_limit > conf.task_soft_time_limit >= lease


def test_a_broker_that_does_not_answer_holds_nobody_for_ever() -> None:
    conf = configured().conf

    assert 0 < conf.broker_transport_options["socket_timeout"] < 10
    assert 0 < conf.broker_transport_options["socket_connect_timeout"] < 10
    assert conf.task_publish_retry_policy["max_retries"] <= 1


def test_a_worker_waits_for_a_broker_that_restarts() -> None:
    conf = configured().conf

    assert conf.broker_connection_retry_on_startup is True
    assert conf.broker_connection_max_retries is None


def test_the_clock_is_utc() -> None:
    conf = configured().conf

    assert (conf.enable_utc, conf.timezone) == (True, "UTC")


def test_every_task_module_registers_tasks_under_names_of_our_own() -> None:
    tasks = our_tasks()

    assert {task.__module__ for task in tasks.values()} == set(TASK_MODULES)
    assert tasks.keys() >= {
        doorbell.EMBED_SHARD, doorbell.EVALUATE_SHARD, doorbell.REDUCE_RUN, doorbell.DELIVER_ALERT,
        doorbell.SWEEP, doorbell.TICK, doorbell.REINDEXED,
    }  # fmt: skip


def test_every_task_is_rung_to_a_queue_that_workers_listen_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beat = configured().conf.beat_schedule.values()
    rung = {entry["task"]: entry["options"]["queue"] for entry in beat}
    monkeypatch.setattr(doorbell, "_ring", lambda task, queue, _: rung.update({task: queue}))
    doorbell.embed(1, [])
    doorbell.evaluate([])
    doorbell.reduce([])
    doorbell.deliver([])
    doorbell.ask([])
    doorbell.submit([])
    doorbell.poll([])
    doorbell.screen([])

    # Only other apps send the notice of a re-index, as its module says.
    assert rung.keys() == our_tasks().keys() - {doorbell.REINDEXED}
    assert set(rung.values()) <= set(QUEUES)


def test_a_plain_worker_takes_every_queue_and_no_message_lands_in_two() -> None:
    queues = configured().amqp.queues

    assert {name: queue.routing_key for name, queue in queues.items()} == {
        name: name for name in QUEUES
    }


def test_a_coroutine_is_refused_when_it_is_registered() -> None:
    celery = Celery("test", task_cls=PlainTask, set_as_current=False)

    async def wait() -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match=r"^task test\.wait is a coroutine function"):
        celery.task(name="test.wait", lazy=False)(wait)


def test_all_our_tasks_refuse_to_be_coroutines() -> None:
    assert {PlainTask in type(task).mro() for task in our_tasks().values()} == {True}


def test_every_task_that_we_ring_takes_ids_only() -> None:
    for name, task in our_tasks().items():
        if name == doorbell.REINDEXED:
            continue
        parameters = inspect.signature(task.run).parameters.values()
        assert {parameter.annotation for parameter in parameters} <= {int}


def test_a_task_of_beat_that_waited_out_its_turn_is_dropped() -> None:
    entries = configured().conf.beat_schedule.values()

    assert {entry["task"] for entry in entries} == {doorbell.SWEEP, doorbell.TICK}
    for entry in entries:
        assert entry["options"]["expires"] <= entry["schedule"] == 60


@pytest.mark.parametrize(
    ("ours", "kombus"),
    [
        ("redis://localhost:6379/1", "redis://localhost:6379/1"),
        ("rediss://:pw@host/0?ssl_cert_reqs=none", "rediss://:pw@host/0?ssl_cert_reqs=none"),
        ("rediss://:pw@host/0", "rediss://:pw@host/0?ssl_cert_reqs=required"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix://:p%40w@/run/r.sock?db=3", "redis+socket://:p%40w@/run/r.sock?virtual_host=3"),
        (
            "unix:///run/r.sock?password=p%40w&db=3",
            "redis+socket://:p%40w@/run/r.sock?virtual_host=3",
        ),
        (
            "unix:///run/r.sock?db=3&username=me&password=pw",
            "redis+socket://me:pw@/run/r.sock?virtual_host=3",
        ),
    ],
)
def test_a_redis_url_is_spelt_as_kombu_reads_it(ours: str, kombus: str) -> None:
    assert broker_url(ours) == kombus


def test_a_worker_without_queues_named_takes_all_of_them() -> None:
    assert set(app.amqp.queues.consume_from) == set(QUEUES)
    assert {queue.routing_key for queue in app.amqp.queues.values()} == set(QUEUES)
