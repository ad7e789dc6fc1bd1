"""The world under test: servers, workers, beats, a provider, a receiver."""

import os
import shutil
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Never, TypeVar

import psycopg

from db import golden_import, migrate
from db.session import Database
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.errors import TransientError
from pipeline.settings_loading import load_settings
from pipeline.types import Question
from tests.acceptance.command import REPOSITORY, without_ours
from tests.chaos import audit
from tests.chaos.oracle import Collection, Expected
from tests.chaos.profiles import Profile
from tests.chaos.provider import DIMENSIONS, Provider
from tests.chaos.receiver import HOOK, SLACK, Receiver
from tests.chaos.servers import ForgetfulValkey, SmallPostgres, disk, kill, server, start
from tests.chaos.settings_file import SCHEDULED_SET, settings_file
from tests.chaos.supervisor import Service, Supervisor, marked
from tests.chaos.switches import FOLDER_VARIABLE, Switches
from workers.context import Context
from workers.queues import QUEUES

WORKERS = 2
BEATS = 2
KEEP = "keep"
"""A file of this name in a world's folder has it kept, with all logs."""

SCHEDULED = -1
"""The number of the set that a schedule evaluates."""

Result = TypeVar("Result")


class World:
    """Everything that runs; made by `opened`."""

    def __init__(
        self, profile: Profile, collection: Collection, folder: Path, mutant: str | None
    ) -> None:
        self.profile = profile
        self.collection = collection
        self.folder = folder
        self.mutant = mutant
        self.mark = uuid.uuid4().hex
        self.application = f"recallwatch {os.getpid()}@{socket.gethostname()}"
        self.disk = folder / "disk"
        self.disk_is_small = False
        self.provider = Provider()
        self.receiver = Receiver()
        self.switches = Switches(folder / "switches")
        self.log = folder / "log"
        self.log.mkdir()
        self.expected: dict[str, Mapping[str, Expected]] = {}
        self.postgres: SmallPostgres
        self.valkey: ForgetfulValkey
        self.supervisor: Supervisor
        self.context: Context

    @property
    def workers(self) -> Sequence[Service]:
        return self.supervisor.services[:WORKERS]

    @property
    def beats(self) -> Sequence[Service]:
        return self.supervisor.services[WORKERS:]

    def start_servers(self) -> None:
        """Start PostgreSQL and Valkey, make our tables and the audit's, load the corpus."""
        self.postgres = _postgres(self.disk)
        self.valkey = _valkey(self.folder)
        start(self.valkey)
        start(self.postgres)
        database = Database(self.postgres.url, pooled=False)
        migrate.upgrade(database)
        with self.connect() as connection:
            load(connection, _chunks(self.collection), _no_embedding, model="chaos",
                 dimensions=DIMENSIONS)  # fmt: skip
            audit.install(connection)

    def services(self) -> list[Service]:
        """Return two workers and two beats, the second of which is held down."""
        program = [sys.executable, "-m", "tests.chaos.worker"]
        common = ["--loglevel", "warning"]
        workers = [
            Service(f"worker{i}", [*program, "worker", "--concurrency", "2", "--hostname",
                    f"chaos{i}@%h", "--queues", ",".join(QUEUES), "--without-gossip",
                    "--without-mingle", *common], self.environment(), self.log / f"worker{i}.log")
            for i in range(WORKERS)
        ]  # fmt: skip
        beats = [
            Service(f"beat{i}", [*program, "beat", "--schedule", str(self.folder / f"beat{i}"),
                    "--pidfile", "", *common], self.environment(), self.log / f"beat{i}.log",
                    held=i > 0)
            for i in range(BEATS)
        ]  # fmt: skip
        return [*workers, *beats]

    def environment(self) -> Mapping[str, str]:
        """Return what workers and beats find in their environment."""
        mutant = {"CHAOS_MUTANT": self.mutant} if self.mutant else {}
        limit = {"CHAOS_NO_SOFT_LIMIT": "1"} if self.profile.name == "scenario" else {}
        return without_ours() | self.ours() | mutant | limit | {"CHAOS_MARK": self.mark}

    def ours(self) -> dict[str, str]:
        """Return the settings that stand in the environment."""
        return {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.valkey.url,
            "RECALLWATCH_CONFIG": str(self.folder / "recallwatch.toml"),
            "CHAOS_SLACK_URL": self.receiver.url(SLACK),
            "CHAOS_HOOK_URL": self.receiver.url(HOOK),
            FOLDER_VARIABLE: str(self.switches.path),
            "PYTHONPATH": str(REPOSITORY),
        }

    def open_context(self) -> Context:
        """Take the workers' settings as this process's own, to start runs with."""
        text = settings_file(self.profile, self.provider.url)
        (self.folder / "recallwatch.toml").write_text(text)
        os.environ.update(self.ours())
        return Context(load_settings().settings)

    def wait_until_up(self) -> None:
        """Wait until a worker has done what a beat told it: look at the schedules."""
        end = time.monotonic() + 120
        with self.connect() as connection:
            while not connection.execute("SELECT FROM recallwatch.seen_schedule").fetchall():
                assert time.monotonic() < end, f"no worker came up; see {self.log}"
                time.sleep(0.1)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self.postgres.url, autocommit=True, application_name=audit.APPLICATION,
            connect_timeout=10,
        )  # fmt: skip

    def import_questions(self, set_name: str, questions: Sequence[Question]) -> None:
        def add() -> None:
            with self.context.database.begin() as session:
                golden_import.import_questions(session, set_name, questions)

        insist(add)
        self.expected[set_name] = self.collection.expect(questions)


def insist(action: Callable[[], Result], *, seconds: float = 60) -> Result:
    """Do something until the database answers; what is done twice must change nothing."""
    end = time.monotonic() + seconds
    while True:
        try:
            return action()
        except (TransientError, psycopg.OperationalError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextmanager
def opened(
    profile: Profile, seed: int, *, mutant: str | None = None, keep: bool = False
) -> Iterator[World]:
    """Give a world that is up; end all its processes, and remove its folder, at the end."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.chmod(0o755)
    before = dict(os.environ)
    try:
        with ExitStack() as stack:
            world = World(profile, Collection(seed), folder, mutant)
            world.disk_is_small = stack.enter_context(disk(world.disk, small=profile.small_disk))
            stack.enter_context(world.provider)
            stack.enter_context(world.receiver)
            stack.callback(_stop_servers, world)
            world.start_servers()
            world.context = world.open_context()
            stack.callback(world.context.close)
            world.import_questions(SCHEDULED_SET, world.collection.questions(SCHEDULED))
            stack.callback(lambda: kill(marked(world.mark)))
            world.supervisor = Supervisor(world.services(), [world.postgres, world.valkey])
            stack.enter_context(world.supervisor)
            world.wait_until_up()
            yield world
    finally:
        os.environ.clear()
        os.environ.update(before)
        if not (keep or (folder / KEEP).exists()):
            shutil.rmtree(folder, ignore_errors=True)


def _postgres(folder: Path) -> SmallPostgres:
    made = server(SmallPostgres, folder)
    assert isinstance(made, SmallPostgres)
    return made


def _valkey(folder: Path) -> ForgetfulValkey:
    made = server(ForgetfulValkey, folder / "queue")
    assert isinstance(made, ForgetfulValkey)
    return made


def _stop_servers(world: World) -> None:
    for one in (getattr(world, "valkey", None), getattr(world, "postgres", None)):
        if one is not None:
            with suppress(OSError):
                kill(one.processes())
                one.stop()


def _chunks(collection: Collection) -> Iterator[Chunk]:
    for key, text, vector in zip(
        collection.keys, collection.texts, collection.vectors, strict=True
    ):
        document, _, index = key.rpartition(":")
        yield Chunk(document, int(index), text, embedding=vector)


def _no_embedding(texts: Sequence[str]) -> Never:
    raise AssertionError(f"{len(texts)} chunks came without a vector")
