"""Messages on a real broker: which queue they wait in, what they carry, how they fail."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis

from pipeline.errors import TransientError
from tests.integration.workers.working import NOWHERE
from workers import doorbell, presence
from workers.app import app, broker_url
from workers.context import Context
from workers.queues import QUEUES


@pytest.fixture
def client(valkey: str) -> Iterator[Redis]:
    with Redis.from_url(valkey) as client:
        yield client


Use = Callable[[str], None]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Give what lets this process's Celery talk to the broker at a Redis URL."""

    def use(redis_url: str) -> None:
        monkeypatch.setattr(app.conf, "broker_url", broker_url(redis_url))
        monkeypatch.setattr(app, "_pool", None)

    return use


@pytest.fixture
def broker(use: Use, valkey: str) -> None:
    """Let this process's Celery ring at the test's own broker."""
    use(valkey)


def messages(client: Redis, queue: str) -> list[tuple[str, list[Any]]]:
    """Return what waits in a queue, first in first out: task and arguments."""
    found = []
    for raw in reversed(client.lrange(queue, 0, -1)):
        message = json.loads(raw)
        assert message["content-type"] == "application/json"
        arguments, *_ = json.loads(base64.b64decode(message["body"]))
        found.append((message["headers"]["task"], arguments))
    return found


@pytest.mark.usefixtures("broker")
def test_each_task_waits_in_its_own_queue(client: Redis) -> None:
    doorbell.embed(7, range(2))
    doorbell.evaluate([(1, 0), (2, 0)])
    doorbell.reduce([3])

    assert messages(client, "embedding") == [
        ("recallwatch.embed_shard", [7, 0]),
        ("recallwatch.embed_shard", [7, 1]),
    ]
    assert messages(client, "evaluation") == [
        ("recallwatch.evaluate_shard", [1, 0]),
        ("recallwatch.evaluate_shard", [2, 0]),
    ]
    assert messages(client, "default") == [("recallwatch.reduce_run", [3])]


@pytest.mark.usefixtures("broker")
def test_nothing_to_ring_sends_nothing(client: Redis) -> None:
    doorbell.embed(7, [])
    doorbell.evaluate([])
    doorbell.reduce([])

    assert client.keys() == []


@pytest.mark.usefixtures("broker")
def test_a_message_is_due_at_once_and_never_expires(client: Redis) -> None:
    doorbell.reduce([3])

    [raw] = client.lrange("default", 0, -1)
    headers = json.loads(raw)["headers"]
    assert (headers["eta"], headers["expires"]) == (None, None)


IN_FRONT = "{user}:{password}@{path}?db={db}"
BEHIND = "{path}?password={password}&username={user}&db={db}"


@pytest.mark.parametrize("account", [IN_FRONT, BEHIND])
def test_a_broker_behind_a_unix_socket_may_ask_for_a_password(
    valkey: str, client: Redis, account: str, use: Use
) -> None:
    parts = urlsplit(valkey)
    database = parts.query.removeprefix("db=")
    user, password = f"tester{database}", "canary"
    client.acl_setuser(
        user, enabled=True, passwords=[f"+{password}"], keys=["*"], channels=["*"],
        commands=["+@all"], reset=True,
    )  # fmt: skip
    given = account.format(user=user, password=password, path=parts.path, db=database)
    use(f"unix://{given}")

    doorbell.reduce([3])

    assert messages(client, "default") == [("recallwatch.reduce_run", [3])]
    client.acl_deluser(user)


@pytest.mark.parametrize("url", [NOWHERE, "redis://:canary@127.0.0.1:1/0"])
def test_a_broker_that_is_down_is_said_within_ten_seconds(url: str, use: Use) -> None:
    use(url)
    started = time.monotonic()

    with pytest.raises(TransientError, match=r"^the queue at .* does not answer: ") as caught:
        doorbell.evaluate([(1, 0)])

    assert time.monotonic() - started < 10
    assert "canary" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_broker_says_what_it_is_and_what_waits(ctx: Context, client: Redis) -> None:
    client.rpush("evaluation", "{}", "{}")

    facts = presence.broker_facts(ctx)

    assert (facts.server, facts.version.split(".")[0].isdigit()) == ("Valkey", True)
    assert facts.eviction_policy == "noeviction"
    assert facts.waiting == dict.fromkeys(QUEUES, 0) | {"evaluation": 2}


@pytest.mark.usefixtures("broker")
def test_without_workers_nobody_answers() -> None:
    assert presence.answering(timeout=0.2) == []


def test_asking_a_broker_that_is_down_is_transient(use: Use) -> None:
    use(NOWHERE)

    with pytest.raises(TransientError, match="the queue does not answer"):
        presence.answering(timeout=0.2)
