"""Servers, providers and workers that are not there, or say no."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, Record
from tests.acceptance.conftest import fresh_database, standing_project
from tests.loopback.openai_server import OpenAIServer, Reply, refuse, tokens_of, vectors

KEY = "sk-canary-4711"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Give a port that nobody listens on, and that nobody else gets meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    guides.load(project)
    return project


@pytest.mark.parametrize("command", ["eval", "migrate"])
def test_a_dead_postgresql_is_told_with_its_address_and_without_its_password(
    fresh: Project, closed_port: int, command: str
) -> None:
    url = f"postgresql://someone:canary-pw@127.0.0.1:{closed_port}/mine"
    complaint = fresh.fails(command, code=2, DATABASE_URL=url)
    assert "127.0.0.1" in complaint
    assert str(closed_port) in complaint
    assert "refused" in complaint
    assert "canary-pw" not in complaint
    assert fresh.processes() == []


def test_a_dead_queue_is_told_with_its_address_and_nothing_is_queued(
    loaded: Project, closed_port: int
) -> None:
    url = f"redis://:canary-pw@127.0.0.1:{closed_port}/0"
    before = loaded.json_rows("runs", "list")
    complaint = loaded.fails("eval", code=2, REDIS_URL=url)
    assert "queue" in complaint
    assert f"127.0.0.1:{closed_port}" in complaint
    assert "canary-pw" not in complaint
    assert loaded.json_rows("runs", "list") == before


def test_a_dead_cache_slows_a_load_and_does_not_stop_it(loaded: Project, closed_port: int) -> None:
    changed = [chunk | {"content": f"{chunk['content']} Really."} for chunk in guides.chunks()]
    file = loaded.write("changed.jsonl", changed)
    report = loaded.json("corpus", "load", file, REDIS_URL=f"redis://127.0.0.1:{closed_port}/0")
    assert report["embedded"] == report["updated"] == len(changed)


def test_a_database_without_our_tables_is_told_with_the_command_that_makes_them(
    fresh: Project, servers: Servers
) -> None:
    with fresh_database(servers) as url:
        assert "recallwatch migrate" in fresh.fails("eval", code=2, DATABASE_URL=url)
        assert "revision" in fresh.run("migrate", DATABASE_URL=url).out
        assert "recallwatch corpus load" in fresh.fails("eval", DATABASE_URL=url)
        assert "up to date" in fresh.run("migrate", DATABASE_URL=url).out


def test_a_missing_key_is_told_by_its_name_before_anything_is_queued(loaded: Project) -> None:
    before = loaded.json_rows("runs", "list")
    complaint = loaded.fails(
        "eval", RECALLWATCH_EMBEDDING__PROVIDER="openai", RECALLWATCH_EMBEDDING__MODEL="made-up"
    )
    assert "OPENAI_API_KEY is not set" in complaint
    assert loaded.json_rows("runs", "list") == before


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with OpenAIServer(dimensions=8) as server:
        yield server


@pytest.fixture(scope="module")
def embedding_elsewhere(servers: Servers, provider: OpenAIServer) -> Iterator[Project]:
    """Give a project with corpus and golden set whose embeddings come from an API."""
    environment = {
        "RECALLWATCH_EMBEDDING__PROVIDER": "openai",
        "RECALLWATCH_EMBEDDING__MODEL": "made-up-embeddings",
        "RECALLWATCH_EMBEDDING__BASE_URL": provider.url,
        "OPENAI_API_KEY": KEY,
    }
    with standing_project(servers, environment) as project:
        guides.load(project)
        yield project


def test_a_key_that_is_refused_leaves_what_needs_no_vectors_measured(
    embedding_elsewhere: Project, provider: OpenAIServer
) -> None:
    with answering(provider, refuse(401, "Incorrect API key provided")):
        vector, fulltext = embedding_elsewhere.evaluate("vector", "fulltext", code=3)
    assert fulltext["verdict"] in {"baseline", "ok"}
    assert_unmeasured(vector, "OPENAI_API_KEY is not accepted", provider.host, "401")


def test_a_used_up_quota_is_told_as_one_and_not_retried(
    embedding_elsewhere: Project, provider: OpenAIServer
) -> None:
    asked = len(provider.requests)
    with answering(provider, refuse(429, "You exceeded it", code="insufficient_quota")):
        (vector,) = embedding_elsewhere.evaluate("vector", code=3)
    assert_unmeasured(vector, "quota", provider.host, "add credit")
    assert len(provider.requests) == asked + 1


def test_a_load_that_is_refused_says_why_and_changes_nothing(
    embedding_elsewhere: Project, provider: OpenAIServer
) -> None:
    before = embedding_elsewhere.json("corpus", "show")
    file = embedding_elsewhere.write("new.jsonl", [
        {"document_id": "zither", "chunk_index": 0, "content": "The zither is new here."}
    ])  # fmt: skip
    with answering(provider, refuse(401, "Incorrect API key provided")):
        complaint = embedding_elsewhere.fails("corpus", "load", file, code=3)
    assert "OPENAI_API_KEY is not accepted" in complaint
    assert KEY not in complaint
    assert embedding_elsewhere.json("corpus", "show") == before


def test_what_was_unmeasured_is_measured_when_the_provider_answers_again(
    embedding_elsewhere: Project, provider: OpenAIServer
) -> None:
    # Has to stand behind the tests above: it leaves the vectors of the golden set in the cache.
    with answering(provider, refuse(401, "Incorrect API key provided")):
        (refused,) = embedding_elsewhere.evaluate("vector", options=["--k", 3], code=3)
    (measured,) = embedding_elsewhere.evaluate("vector", options=["--k", 3])
    assert (measured["scored"], measured["failed"]) == (120, 0)
    assert measured["verdict"] == "baseline", "an unmeasured run is no reference"
    shown = embedding_elsewhere.run("runs", "show", refused["id"]).out
    assert "unmeasured" in shown
    assert "not accepted" in shown


def test_a_model_that_changed_its_dimensions_is_not_scored(
    embedding_elsewhere: Project, provider: OpenAIServer
) -> None:
    question = {"question": "Is the kettle new?", "expected": {"kettle:0": 1}}
    file = embedding_elsewhere.write("new.jsonl", [question])
    embedding_elsewhere.run("golden", "import", file, "--set", "new")
    with answering(provider, vectors(dimensions=5)):
        (vector,) = embedding_elsewhere.evaluate("vector", options=["--set", "new"], code=3)
    assert_unmeasured(vector, "5 dimensions", "8")


def test_what_it_may_cost_is_told_before_and_what_it_cost_after(
    embedding_elsewhere: Project,
) -> None:
    asked = "How dear is the kettle today, in all?"
    file = embedding_elsewhere.write("dear.jsonl", [
        {"question": asked, "expected": {"kettle:0": 1}}
    ])  # fmt: skip
    embedding_elsewhere.run("golden", "import", file, "--set", "dear")
    command = ("eval", "--set", "dear", "--strategy", "vector", "--max-cost")
    price = "1000"  # a tenth of a cent for a token
    estimate = f"estimated cost: at most ${len(asked) / 1000} for 1 new question"

    complaint = embedding_elsewhere.fails(*command, 0.03, RECALLWATCH_EMBEDDING__PRICE=price)
    evaluated = embedding_elsewhere.run(*command, 0.04, RECALLWATCH_EMBEDDING__PRICE=price)

    assert complaint.startswith(f"{estimate}, which is above the cap of $0.03")
    assert estimate in evaluated.err.splitlines()
    cost = f"embedding cost ${tokens_of([asked]) / 1000:.2f} of at most $0.04"
    assert cost in evaluated.out
    unknown = embedding_elsewhere.fails(*command, 0.04)
    assert "set [embedding] price" in unknown


START_BATCH = """
from pipeline.errors import TransientError
from workers.enqueue import start_batch
try:
    start_batch(["fulltext"])
except TransientError as error:
    print(error)
"""


def test_runs_that_found_no_queue_or_no_worker_go_on_when_there_is_one(
    servers: Servers, closed_port: int
) -> None:
    with standing_project(servers) as project:
        guides.load(project)
        dead = f"redis://127.0.0.1:{closed_port}/0"
        script = project.start_program("-c", START_BATCH, REDIS_URL=dead).finish()
        assert "does not answer" in script.out
        _age_by_a_minute(project)
        complaint = project.fails("eval", "-s", "vector", "--no-start", code=2)
        assert "no worker" in complaint
        assert "recallwatch up" in complaint
        vector, fulltext = project.json_rows("runs", "list")
        assert [vector["status"], fulltext["status"]] == ["queued", "queued"]
        assert f"run {vector['id']} " in complaint
        assert "queued" in project.fails("runs", "export", vector["id"])
        with project.worker():
            project.wait_for_run(vector["id"])
            project.wait_for_run(fulltext["id"])
            (run,) = project.evaluate("vector", options=["--no-start"])
        assert run["verdict"] == "ok"
        assert run["compared_to"] == vector["id"]


def _age_by_a_minute(project: Project) -> None:
    """Spare the wait after which a shard that nobody took is rung again."""
    with psycopg.connect(project.environment["DATABASE_URL"]) as database:
        database.execute("UPDATE recallwatch.run SET created_at = created_at - interval '1 min'")


@contextmanager
def answering(provider: OpenAIServer, reply: Reply) -> Iterator[None]:
    """Let the provider answer every request like this."""
    usual = provider.default
    provider.default = reply
    try:
        yield
    finally:
        provider.default = usual


def assert_unmeasured(run: Record, *words: str) -> None:
    assert run["verdict"] == "unmeasured"
    (reason,) = run["reasons"]
    assert all(word in reason for word in words), reason
    assert KEY not in reason
    assert run["metrics"] is None
