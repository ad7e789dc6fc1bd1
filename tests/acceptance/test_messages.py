"""What a worker makes of a message that none of ours would send."""

import pickle
from pathlib import Path

import redis
from celery import Celery

from cli.embedded.stack import Servers
from tests.acceptance.command import wait_until
from tests.acceptance.conftest import standing_project
from workers.app import broker_url
from workers.doorbell import SWEEP


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.file,)


def test_a_pickled_message_is_thrown_away_and_not_decoded(servers: Servers) -> None:
    with standing_project(servers) as project:
        url = project.servers()["REDIS_URL"]
        planted = project.folder / "planted"
        pickle.loads(pickle.dumps(Planted(planted)))  # noqa: S301 - to see that it would work
        planted.unlink()
        sender = Celery("stranger", broker=broker_url(url), set_as_current=False)
        with project.worker() as worker, redis.Redis.from_url(url) as queue:
            for serializer, arguments in (("pickle", [Planted(planted)]), ("json", [])):
                sender.send_task(SWEEP, arguments, serializer=serializer, queue="default")
                wait_until(lambda: not queue.llen("default") and not queue.hlen("unacked"))
                assert worker.process.poll() is None
        assert not planted.exists()
