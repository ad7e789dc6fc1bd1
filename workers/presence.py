"""Who is there: the broker, and the workers that answer a ping over it."""

from collections.abc import Mapping
from dataclasses import dataclass

import redis
from kombu.exceptions import OperationalError

from pipeline.errors import TransientError
from workers.context import Context
from workers.queues import QUEUES


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What the broker says of itself; `waiting` counts messages by queue.

    `eviction_policy` is "unknown" where the server hides its configuration.
    """

    server: str
    version: str
    memory: str
    eviction_policy: str
    waiting: Mapping[str, int]


def broker_facts(ctx: Context) -> BrokerFacts:
    """Ask the broker how it is; raises TransientError when it does not answer."""
    client = ctx.redis
    try:
        info = client.info()
        waiting = {queue: client.llen(queue) for queue in QUEUES}
    except redis.RedisError as error:
        raise TransientError(f"the queue does not answer: {error}") from error
    return BrokerFacts(
        server="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info["redis_version"],
        memory=info["used_memory_human"],
        eviction_policy=info.get("maxmemory_policy", "unknown"),
        waiting=waiting,
    )


def answering(timeout: float = 2.0) -> list[str]:
    """Return the names of the workers that answer within `timeout` seconds.

    Raises TransientError when the broker does not answer.
    """
    from workers.app import app  # noqa: PLC0415 - reads settings, which a command sets up first

    try:
        replies = app.control.ping(timeout=timeout)
    except (OperationalError, OSError) as error:
        raise TransientError(f"the queue does not answer: {error}") from error
    return sorted(name for reply in replies for name in reply)
