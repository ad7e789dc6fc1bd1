"""The world in which a process dies, and in which the others carry on.

A database with a small corpus and golden set, a provider and two alert channels on this machine,
and in this process a worker that survives: it does what the product would do next.
"""

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from pydantic import SecretStr

from cli.embedded.stack import Servers
from pipeline.alerts.settings import FELL, AlertSettings, SlackSettings, WebhookSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.retrieval.strategies import FulltextStrategy
from pipeline.schedules import Schedule
from pipeline.settings import EvalSettings, QueueSettings, Settings
from pipeline.verdict.settings import GateSettings
from tests.chaos.crash_points_child import Ended, Job, Point, Report, Sent, Taken
from tests.conftest import REPOSITORY, at_database
from tests.integration.conftest import copy_of
from tests.integration.db.building import execute, fetch
from tests.integration.workers.working import DIMENSIONS, Bell, Rung
from tests.loopback.hook_server import HookServer, answer
from tests.loopback.openai_server import OpenAIServer, vectors
from workers import doorbell
from workers.context import Context
from workers.sweeping import sweep

TEAM, PROGRAM = "CRASH_TEAM_URL", "CRASH_PROGRAM_URL"
"""Environment variables with the channels' addresses."""

ROUNDS = 12
"""Sweeps after which what is still not done counts as waiting for ever."""

FULLTEXT = ("unreduced", "exhausted", "short", "waiting")
"""Names of strategies that are alike, so that the runs of one scenario are not compared."""

_EMPTY = """
DELETE FROM recallwatch.schedule_slot; DELETE FROM recallwatch.seen_schedule;
DELETE FROM recallwatch.run; DELETE FROM recallwatch.batch
"""

_LATER = """
UPDATE recallwatch.shard SET lease_until = lease_until - interval '1 hour',
    next_at = next_at - interval '1 hour', rung_at = rung_at - interval '1 hour'
WHERE state IN ('pending', 'leased');
UPDATE recallwatch.run SET reduce_next_at = reduce_next_at - interval '1 hour';
UPDATE recallwatch.alert SET next_at = next_at - interval '1 hour',
    claimed_at = claimed_at - interval '1 hour';
UPDATE recallwatch.batch SET quiet_until = quiet_until - interval '1 hour'
"""


class StuckError(AssertionError):
    """Something still waits after many sweeps."""


@dataclass(slots=True)
class Crash:
    """What a process did before it ended.

    `interrupted` is the message it was working on, `waiting` those that it had not come to and
    those that it sent.
    """

    points: list[Point] = field(default_factory=list)
    waiting: list[Rung] = field(default_factory=list)
    interrupted: Rung | None = None
    code: int = 0

    def note(self, report: Report) -> None:
        match report:
            case Point():
                self.points.append(report)
            case Sent(message):
                self.waiting.append(message)
            case Taken(message):
                self.interrupted = message
                if message is not None and message in self.waiting:
                    self.waiting.remove(message)
            case Ended(code):
                self.code = code


class Zygote:
    """The process that is forked for each job."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.crash_points_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
        )

    def do(self, job: Job) -> Crash:
        """Have a fork do the job; return what it did."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        crash = Crash(waiting=list(job.messages))
        pickle.dump(job, self._process.stdin)
        self._process.stdin.flush()
        while True:
            report = pickle.load(self._process.stdout)  # noqa: S301 - from a process of our own
            crash.note(report)
            if isinstance(report, Ended):
                return crash

    def close(self) -> None:
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class World:
    """Everything around a process that dies, and the worker that lives on."""

    ctx: Context
    bell: Bell
    provider: OpenAIServer
    hook: HookServer
    zygote: Zygote
    environment: dict[str, str]

    def begin_anew(self) -> None:
        """Leave nothing of what was before but corpus, golden set and its version."""
        self.bell.take()
        self.provider.default, self.hook.default = vectors(), answer(200, b"ok")
        self.hook.posted.clear()
        execute(self.ctx.database, _EMPTY)
        self.ctx.redis.flushdb()

    def let_time_pass(self) -> None:
        """Let an hour go by for all that waits; neither a day for alerts nor a deadline."""
        execute(self.ctx.database, _LATER)

    def sweep_until_settled(self) -> None:
        """Let time pass, sweep and work until nothing waits; raises StuckError."""
        for _ in range(ROUNDS):
            self.bell.work(self.ctx)
            if not self.open_rows():
                return
            self.let_time_pass()
            sweep(self.ctx, quiet=0)
        raise StuckError(f"after {ROUNDS} sweeps there are still {self.open_rows()}")

    def open_rows(self) -> dict[str, int]:
        """Count what waits for something, by kind."""
        counts = fetch(self.ctx.database, _OPEN)[0]
        kinds = ("runs", "shards", "alerts", "batches")
        return {kind: n for kind, n in zip(kinds, counts, strict=True) if n}

    def most_posts_of_an_alert(self) -> int:
        """Return how often the alert that was posted most often was posted."""
        bodies = Counter((post.path, post.body) for post in self.hook.posted)
        return max(bodies.values(), default=0)


_OPEN = """
SELECT (SELECT count(*) FROM recallwatch.run WHERE status IN ('queued', 'running')),
    (SELECT count(*) FROM recallwatch.shard WHERE state IN ('pending', 'leased')),
    (SELECT count(*) FROM recallwatch.alert WHERE state IN ('pending', 'claimed')),
    (SELECT count(*) FROM recallwatch.batch WHERE quiet_until IS NOT NULL)
"""


def _settings(database_url: str, redis_url: str, provider: OpenAIServer) -> Settings:
    return Settings(
        database_url=SecretStr(database_url),
        redis_url=SecretStr(redis_url),
        embedding=EmbeddingSettings(
            provider="openai", model="m", dimensions=DIMENSIONS, base_url=provider.url, attempts=1
        ),
        eval=EvalSettings(k=3, shard_size=4, strategies=["vector"]),
        # No run reaches the floor, so that each of them has alerts.
        gate=GateSettings(
            max_failed=0.5, rule="threshold", max_ineligible=0.5, floor={"precision": 1.0}
        ),
        queue=QueueSettings(lease=60, attempts=3, reindex_quiet=60),
        schedule=[Schedule(name="daily", every="1d", strategies=["fulltext"])],
        strategies=dict.fromkeys(FULLTEXT, FulltextStrategy()),
        alerts=AlertSettings(
            channels={
                "team": SlackSettings(url_env=TEAM, on=list(FELL)),
                "program": WebhookSettings(url_env=PROGRAM, on=list(FELL)),
            }
        ),
    )


@contextmanager
def open_world(servers: Servers, template: str, redis_number: int) -> Iterator[World]:
    """Give a world with a copy of the template, which holds a corpus and a golden set.

    Its cache is the Redis database of that number, which is emptied.
    """
    assert servers.database_url is not None
    assert servers.redis_url is not None
    redis_url = servers.redis_url.replace("db=0", f"db={redis_number}")
    with (
        copy_of(servers, template) as database,
        OpenAIServer(DIMENSIONS) as provider,
        HookServer() as hook,
        pytest.MonkeyPatch.context() as patch,
    ):
        environment = {
            TEAM: hook.url(),
            PROGRAM: hook.url("/hook"),
            "NO_PROXY": "127.0.0.1",
            # No certificates: nothing here is encrypted, and to read them takes a client 40 ms.
            "SSL_CERT_FILE": "",
            "SSL_CERT_DIR": str(REPOSITORY / "tests" / "chaos"),
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        settings = _settings(at_database(servers.database_url, database), redis_url, provider)
        ctx, bell, zygote = Context(settings), Bell(), Zygote()
        patch.setattr(doorbell, "_ring", bell.ring)
        try:
            yield World(ctx, bell, provider, hook, zygote, environment)
        finally:
            zygote.close()
            ctx.close()
