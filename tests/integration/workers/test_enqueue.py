"""Starting a batch: all of it is there before anybody is rung, or nothing is."""

import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from db import runs
from db.session import Database
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import CorpusError, InputError, RecallwatchError, TransientError, UsageError
from pipeline.retrieval.strategies import VectorStrategy
from pipeline.settings import Settings
from tests.conftest import REPOSITORY
from tests.integration.db.building import execute, fetch, import_set
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import DIMENSIONS, NOWHERE, Bell, finish_runs, start_runs
from workers import context, enqueue, key_check
from workers.context import Context
from workers.doorbell import EMBED_SHARD, EVALUATE_SHARD
from workers.enqueue import Request, start, start_batch
from workers.key_check import Liveness


def rows(db: Database) -> list[int]:
    """Count what a start writes: versions, batches, runs and shards."""
    return fetch(
        db,
        "SELECT count(*) FROM recallwatch.golden_version"
        " UNION ALL SELECT count(*) FROM recallwatch.batch"
        " UNION ALL SELECT count(*) FROM recallwatch.run"
        " UNION ALL SELECT count(*) FROM recallwatch.shard",
    )


def test_a_run_records_all_that_a_worker_needs(ctx: Context, bell: Bell) -> None:
    started = start(ctx, Request(["vector"], git_sha="abc", requested_by="me", trigger="ci"))

    with ctx.database.begin() as session:
        found = runs.get(session, started.run_ids[0])
    run = found.run
    assert (found.batch.trigger, found.batch.requested_by, run.git_sha) == ("ci", "me", "abc")
    assert found.version.set_name == "default"
    assert (run.size, run.k, run.level, run.convention) == (8, 3, "chunk", "rw-1")
    assert run.settings["strategy"]["ef_search"] == 40
    assert run.settings["embedding"]["dimensions"] == DIMENSIONS
    assert run.settings["corpus"]["table"] == "recallwatch_corpus.chunks"
    assert "password" not in str(run.settings)
    assert run.gate["metrics"] == ["recall@3", "ndcg@3"]
    assert "hit@3" in run.measures
    assert run.corpus_fingerprint["chunks"] == 8
    assert run.embedding_model is not None
    assert (run.deadline_at - run.created_at).total_seconds() == 6 * 3600
    assert bell.messages == [(EMBED_SHARD, (started.batch_id, number)) for number in range(3)]


def test_a_corpus_that_takes_its_time_does_not_undo_a_start(
    settings: Settings, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = key_check.check_liveness

    def look_slowly(*arguments: Any, **named: Any) -> Liveness:  # noqa: ANN401 - check_liveness' arguments
        time.sleep(1.5)
        return look(*arguments, **named)

    monkeypatch.setattr(enqueue, "check_liveness", look_slowly)
    worker = Context(settings, idle_limit=1)

    started = start_runs(worker, "fulltext")

    assert bell.messages == [(EVALUATE_SHARD, (started.run_ids[0], number)) for number in range(3)]
    worker.close()


def test_dead_keys_are_warned_of(ctx: Context, bell: Bell) -> None:
    started = start_runs(ctx, "fulltext")

    assert started.warnings == ["3 of 9 expected keys are not in the corpus, as 'gone:0'"]
    assert len(bell.messages) == 3


def test_at_document_level_documents_are_looked_up(ctx: Context, bell: Bell) -> None:
    started = start(ctx, Request(["fulltext"], level="document"))

    assert started.warnings == ["1 of 5 expected keys are not in the corpus, as 'gone'"]
    assert len(bell.messages) == 3


@pytest.mark.usefixtures("bell")
def test_two_batches_over_an_unchanged_set_share_its_version(ctx: Context) -> None:
    one, other = start_runs(ctx, "fulltext"), start_runs(ctx, "vector")

    assert one.version_id == other.version_id
    # Three shards a run, and an exact one for the vectors.
    assert rows(ctx.database) == [1, 2, 2, 7]


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"strategies": ["vectr"]}, UsageError, "unknown strategy 'vectr'"),
        ({"k": 0}, UsageError, "k must be from 1"),
        ({"k": 10_000}, UsageError, "k must be from 1"),
        ({"set_name": "faq"}, InputError, "golden set 'faq' has no active question"),
    ],
)
def test_a_request_that_cannot_be_starts_nothing(
    ctx: Context, bell: Bell, request_: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        start(ctx, Request(**request_))

    assert rows(ctx.database) == [0, 0, 0, 0]
    assert bell.messages == []


@pytest.mark.parametrize(
    ("statement", "strategy", "message"),
    [
        ("TRUNCATE recallwatch_corpus.chunks", "fulltext", "is empty; run: recallwatch corpus"),
        ("DROP TABLE recallwatch_corpus.chunks", "fulltext", "no table recallwatch_corpus.chunks"),
        (
            "UPDATE recallwatch_corpus.chunks SET embedding = NULL",
            "hybrid",
            "no chunk of corpus table recallwatch_corpus.chunks has an embedding",
        ),
        (
            "UPDATE recallwatch_corpus.chunks SET document_id = 'other' || document_id",
            "fulltext",
            "none of the 9 expected keys of golden set 'default' is in corpus table",
        ),
        (
            "UPDATE recallwatch_corpus.chunks SET embedding_model = 'another'",
            "vector",
            "was embedded with another",
        ),
    ],
)
def test_a_corpus_that_cannot_answer_starts_nothing(
    ctx: Context, bell: Bell, statement: str, strategy: str, message: str
) -> None:
    execute(ctx.database, statement)

    with pytest.raises(CorpusError, match=message) as caught:
        start_runs(ctx, strategy)

    assert "\n" not in str(caught.value)
    assert rows(ctx.database) == [0, 0, 0, 0]
    assert bell.messages == []


def test_vectors_of_another_length_start_nothing(open_context: Opener, bell: Bell) -> None:
    ctx = open_context(embedding=EmbeddingSettings(dimensions=128))

    with pytest.raises(CorpusError, match=r"have 64 dimensions, but .* gives 128"):
        start_runs(ctx, "hybrid")

    assert rows(ctx.database) == [0, 0, 0, 0]
    assert start_runs(ctx, "fulltext").size == 8
    assert len(bell.messages) == 3


def test_a_set_of_unanswerable_questions_is_started_and_ends_unmeasured(
    ctx: Context, bell: Bell
) -> None:
    import_set(ctx.database, [GOLDEN[-1]], replace=True)

    [run] = finish_runs(ctx, bell, "fulltext")

    assert run.verdict == "unmeasured"
    assert run.reasons == [
        "no question could be scored: 0 without a live key, 0 failed, 1 unanswerable"
    ]


@pytest.mark.parametrize("server", ["database_url", "corpus_url"])
def test_a_database_that_does_not_answer_is_transient(
    open_context: Opener, bell: Bell, server: str
) -> None:
    ctx = open_context(**{server: SecretStr("postgresql://postgres@/app?host=/nowhere")})

    with pytest.raises(TransientError, match="nowhere"):
        start_runs(ctx, "fulltext")

    assert bell.messages == []


def test_strategies_of_one_kind_stand_side_by_side(open_context: Opener, bell: Bell) -> None:
    settings = open_context().settings
    wide = settings.strategies | {"wide": VectorStrategy(ef_search=400)}

    vector, other = finish_runs(open_context(strategies=wide), bell, "vector", "wide")

    assert vector.settings["strategy"]["ef_search"] == 40
    assert other.settings["strategy"]["ef_search"] == 400
    assert (vector.verdict, other.verdict) == ("baseline", "baseline")


def test_a_users_own_table_without_tenants_refuses_questions_that_have_one(
    open_context: Opener, bell: Bell
) -> None:
    table = CorpusSettings(table="recallwatch_corpus.chunks", tenant=None)
    ctx = open_context(corpus=table)

    [run] = finish_runs(ctx, bell, "fulltext")

    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert "has no tenant column" in run.reasons[0]


@pytest.fixture
def own_process(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Let this process have the servers in its environment, as a user's own script does."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    monkeypatch.setenv("DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("REDIS_URL", settings.redis_url.get_secret_value())
    monkeypatch.setenv("RECALLWATCH_EVAL__SHARD_SIZE", "4")
    monkeypatch.setenv("RECALLWATCH_GATE__MAX_INELIGIBLE", "0.5")
    monkeypatch.setattr(context, "_current", None)
    return settings


@pytest.mark.usefixtures("own_process")
def test_a_users_own_code_starts_a_batch_by_its_environment(db: Database, bell: Bell) -> None:
    started = start_batch(["fulltext"], trigger="ci", requested_by="nightly build", k=2)

    assert len(bell.messages) == 2
    assert fetch(db, "SELECT trigger, requested_by FROM recallwatch.batch") == [
        ("ci", "nightly build")
    ]
    assert fetch(db, "SELECT k FROM recallwatch.run") == [2]
    assert started.size == 8
    context.current().close()


@pytest.mark.usefixtures("own_process")
def test_a_queue_that_does_not_answer_leaves_a_batch_that_a_sweep_starts(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", NOWHERE)
    script = (
        "import time; from pipeline.errors import TransientError;"
        "from workers.enqueue import start_batch\n"
        "started = time.monotonic()\n"
        "try: start_batch(['fulltext'])\n"
        "except TransientError as error: print(error)\n"
        "print(time.monotonic() - started)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    message, seconds = done.stdout.splitlines()
    assert "the queue at redis+socket:///nowhere/redis.sock does not answer" in message
    assert float(seconds) < 10
    assert rows(db) == [1, 1, 1, 2]


def test_every_error_of_a_start_is_one_of_ours(ctx: Context, bell: Bell) -> None:
    import_set(ctx.database, [replace(GOLDEN[0], expected={"nowhere:0": 1})], replace=True)

    with pytest.raises(RecallwatchError) as caught:
        start_runs(ctx)

    assert caught.value.exit_code == 2
    assert bell.messages == []
