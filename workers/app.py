"""The Celery application: `celery -A workers.app worker` and `celery -A workers.app beat`.

PostgreSQL owns all state and messages are doorbells that carry ids, so the broker may lose
everything. Hence no result backend (publishing to a frozen broker with one blocked for 65 s in a
trial) and no countdowns: a shard that has to wait says so in its `next_at` column.
"""

from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from celery import Celery, Task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import beat_init, celeryd_init, setup_logging

from pipeline.log import configure
from pipeline.settings import Settings
from pipeline.settings_loading import load_settings
from workers import context
from workers.queues import QUEUES
from workers.schedule import beat_schedule

TASK_MODULES = (
    "workers.alerting",
    "workers.embedding",
    "workers.evaluation",
    "workers.generation",
    "workers.reducing",
    "workers.reindexing",
    "workers.scheduling",
    "workers.screening",
    "workers.sweeping",
)


def broker_url(redis_url: str) -> str:
    """Return kombu's spelling of a Redis URL.

    It knows a unix socket as redis+socket, its database as virtual_host, and user and password in
    front of the path only. Without an option for TLS it would look at no certificate.
    """
    parts = urlsplit(redis_url)
    if parts.scheme == "rediss" and not parts.query:
        return f"{redis_url.removesuffix('?')}?ssl_cert_reqs=required"
    if parts.scheme != "unix":
        return redis_url
    options = dict(parse_qsl(parts.query))
    account = parts.netloc
    if not account and "password" in options:
        account = f"{quote(options.get('username', ''))}:{quote(options['password'])}@"
    return f"redis+socket://{account}{parts.path}?virtual_host={options.get('db', '0')}"


def _configuration(settings: Settings) -> dict[str, Any]:
    lease = settings.queue.lease
    time_limit = lease + 30
    redis_url = settings.redis_url.get_secret_value() if settings.redis_url else None
    return {
        "broker_url": broker_url(redis_url) if redis_url else None,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": 5,
        "broker_transport_options": {
            # Above the longest task, so that no message is delivered twice while it is worked on;
            # a worker that died is found by the sweep long before.
            "visibility_timeout": 2 * time_limit,
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,
            # A broker that froze must not hold a publisher for ever.
            "socket_timeout": 8,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 25,
        },
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0, "interval_max": 0.2},
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        # Without the bound, a task that kills its process would loop for ever.
        "task_retry_on_worker_lost": True,
        "task_annotations": {"*": {"max_retries": 2, "default_retry_delay": 1}},
        # Named here, so that a worker without --queues takes all of them.
        "task_queues": {name: {} for name in QUEUES},
        "task_default_queue": "default",
        "task_soft_time_limit": lease,
        "task_time_limit": time_limit,
        "worker_prefetch_multiplier": 1,
        "worker_max_tasks_per_child": 1000,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "enable_utc": True,
        "timezone": "UTC",
        "beat_schedule": beat_schedule(),
    }


class PlainTask(Task):  # type: ignore[misc]  # Celery has no types
    """A task that is a plain function.

    Celery would call a coroutine function, await nothing, and acknowledge the message: a shard that
    looks done and is not.
    """

    @classmethod
    def on_bound(cls, app: Celery) -> None:  # noqa: ARG003 - Celery's signature
        """Refuse a coroutine when it is registered; raises TypeError."""
        if iscoroutinefunction(cls.run):
            raise TypeError(f"task {cls.name} is a coroutine function, which Celery never awaits")


_loaded = load_settings()
_settings = _loaded.settings

# Not the current app: it must not take over the shared tasks of a program that calls start_batch.
app = Celery("recallwatch", task_cls=PlainTask, include=TASK_MODULES, set_as_current=False)
app.conf.update(_configuration(_settings))


@celeryd_init.connect
@beat_init.connect
def _refuse_without_servers(**_: object) -> None:
    """Say in one line what is missing, where Celery would look for a broker of its own."""
    for name in ("database_url", "redis_url"):
        if getattr(_settings, name) is None:
            raise SystemExit(f"error: {name.upper()} is not set; see: recallwatch up --help")


@setup_logging.connect
def _configure_logging(**_: object) -> None:
    """Keep Celery from installing its own log handlers."""
    configure(_settings.log, secrets=_loaded.secret_values())


context.pass_on(SoftTimeLimitExceeded)
