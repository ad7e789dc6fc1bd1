"""The broker and the database killed, frozen, full."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress

import redis

from tests.chaos.faults import Fault, signal_all
from tests.chaos.servers import kill
from tests.chaos.switches import TRIPLE
from tests.chaos.world import World


class BrokerKilled(Fault):
    name = "kill -9 of the broker, queue lost"

    def strike(self) -> None:
        kill(self.world.valkey.processes())


class BrokerFrozen(Fault):
    name = "broker frozen"
    between = (2, 4)

    def strike(self) -> None:
        signal_all(self.world.valkey.processes(), signal.SIGSTOP)

    def undo(self) -> None:
        signal_all(self.world.valkey.processes(), signal.SIGCONT)


class BrokerFrozenForLong(BrokerFrozen):
    """For a minute in a release's profile."""

    name = "broker frozen for long"

    def lasts(self) -> float:
        return self.world.profile.broker_frozen


class BrokerFrozenAtStart(BrokerFrozen):
    name = "broker frozen while a run is started"
    before_start = True


class BrokerFull(Fault):
    name = "Redis out of memory"
    between = (1.5, 3)

    def strike(self) -> None:
        _set_memory(self.world, 1)

    def undo(self) -> None:
        _set_memory(self.world, 0)


class BrokerFullAtStart(BrokerFull):
    name = "Redis out of memory while a run is started"
    before_start = True


def _set_memory(world: World, limit: int) -> None:
    # A broker that was killed meanwhile starts without the limit.
    with suppress(redis.RedisError), redis.Redis.from_url(world.valkey.url, socket_timeout=2) as r:
        r.config_set("maxmemory", limit)


class MessagesTripled(Fault):
    name = "every message sent three times"
    before_start = True
    until_end = True

    def strike(self) -> None:
        self.world.switches.set(TRIPLE, on=True)

    def undo(self) -> None:
        self.world.switches.set(TRIPLE, on=False)


class DatabaseKilled(Fault):
    name = "kill -9 of PostgreSQL"

    def strike(self) -> None:
        kill(self.world.postgres.processes())


class BackendKilled(Fault):
    name = "kill -9 of a PostgreSQL backend"

    def strike(self) -> None:
        backends = [
            process
            for process in self.world.postgres.processes()
            if "recallwatch " in " ".join(process.cmdline())
        ]
        kill([self.scene.rng.choice(backends)] if backends else [])


class DiskFull(Fault):
    name = "disk full for PostgreSQL"
    needs_small_disk = True
    between = (1, 2.5)

    def strike(self) -> None:
        # Others may take the last of it first.
        ballast = os.open(self.world.disk / "ballast", os.O_CREAT | os.O_WRONLY)
        with suppress(OSError):
            free = os.fstatvfs(ballast)
            os.posix_fallocate(ballast, 0, free.f_bavail * free.f_frsize)
        os.close(ballast)

    def undo(self) -> None:
        (self.world.disk / "ballast").unlink(missing_ok=True)


SERVER_FAULTS: Sequence[type[Fault]] = (
    BrokerKilled, BrokerFrozen, BrokerFrozenForLong, BrokerFrozenAtStart, BrokerFull,
    BrokerFullAtStart, MessagesTripled, DatabaseKilled, BackendKilled, DiskFull,
)  # fmt: skip
