"""One shard: what stops it, what is told of it, and that no fault becomes a miss."""

from collections.abc import Sequence

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from pydantic import SecretStr

from db.models import GoldenItem, Run
from db.results import ResultRow
from db.session import Database
from pipeline.errors import PermanentError, TransientError
from tests.integration.db.building import (
    claim,
    claimed,
    execute,
    expire,
    fetch,
    shard_of,
    wait_of,
)
from tests.integration.workers.conftest import GOLDEN, Opener, embedding_of
from tests.integration.workers.working import (
    NOWHERE,
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    run_of,
    start_runs,
)
from tests.loopback.openai_server import Exchange, OpenAIServer, Reply, refuse, vectors
from workers import evaluation
from workers.context import Context
from workers.doorbell import REDUCE_RUN
from workers.evaluation import evaluate
from workers.measuring import measure

pytestmark = pytest.mark.usefixtures("bell")

DEAD = SecretStr("postgresql://postgres@/app?host=/nowhere")


def start(ctx: Context, strategy: str = "fulltext") -> int:
    """Start a run of three shards, and let every message be lost."""
    return start_runs(ctx, strategy).run_ids[0]


def results(db: Database) -> int:
    [count] = fetch(db, "SELECT count(*) FROM recallwatch.result")
    assert isinstance(count, int)
    return count


def test_a_shard_is_evaluated_once(ctx: Context, bell: Bell, db: Database) -> None:
    run_id = start(ctx)

    evaluate(ctx, run_id, 0)
    evaluate(ctx, run_id, 0)

    shard = shard_of(db, run_id)
    assert (shard.state, shard.token, shard.attempts) == ("done", 1, 1)
    assert run_of(ctx, run_id).status == "running"
    assert results(db) == 3
    assert bell.take()[3:] == []


def test_a_shard_that_somebody_holds_is_left_to_them(ctx: Context, db: Database) -> None:
    run_id = start(ctx)
    claimed(db, run_id)

    evaluate(ctx, run_id, 0)
    evaluate(ctx, run_id, 99)
    evaluate(ctx, run_id + 1, 0)

    assert results(db) == 0
    assert shard_of(db, run_id).token == 1


def test_the_last_shard_rings_the_reducer(ctx: Context, bell: Bell) -> None:
    run_id = start(ctx)
    bell.take()

    for number in (2, 0, 1):
        assert bell.messages == []
        evaluate(ctx, run_id, number)

    assert bell.messages == [(REDUCE_RUN, (run_id,))]


def test_a_corpus_that_does_not_answer_hands_the_shard_back(
    ctx: Context, open_context: Opener, db: Database
) -> None:
    run_id = start(ctx)

    evaluate(open_context(corpus_url=DEAD), run_id, 0)

    shard = shard_of(db, run_id)
    assert (shard.state, shard.attempts) == ("pending", 1)
    assert shard.error is not None
    assert "the corpus database does not answer" in shard.error
    assert 0 < wait_of(db, run_id) <= 2
    assert results(db) == 0
    assert run_of(ctx, run_id).status == "running"


def test_the_wait_doubles_with_each_attempt(
    ctx: Context, open_context: Opener, db: Database
) -> None:
    run_id = start(ctx)
    dead = open_context(corpus_url=DEAD)

    evaluate(dead, run_id, 0)
    evaluate(dead, run_id, 0)
    assert shard_of(db, run_id).attempts == 1, "its time had not come"
    expire(db, run_id)
    evaluate(dead, run_id, 0)

    assert shard_of(db, run_id).attempts == 2
    assert 2 < wait_of(db, run_id) <= 4


def test_a_provider_that_asks_for_patience_gets_it(
    remote: Context, provider: OpenAIServer, db: Database
) -> None:
    run_id = start(remote, "vector")
    provider.default = refuse(429, "slow down", headers={"Retry-After": "47"})

    evaluate(remote, run_id, 0)

    assert shard_of(db, run_id).state == "pending"
    assert 40 < wait_of(db, run_id) <= 47


def test_patience_counts_as_an_attempt_where_the_cache_lost_what_was_paid_for(
    open_context: Opener, provider: OpenAIServer, db: Database
) -> None:
    embedding = embedding_of(provider).model_copy(update={"max_inputs": 1, "concurrency": 1})
    without = open_context(redis_url=SecretStr(NOWHERE), embedding=embedding)
    run_id = start(without, "vector")
    patience = refuse(429, headers={"Retry-After": "47"})

    provider.script = [patience]
    evaluate(without, run_id, 0)
    assert shard_of(db, run_id).attempts == 0, "nothing was paid for"

    provider.script = [vectors(), patience]
    expire(db, run_id)
    evaluate(without, run_id, 0)

    assert shard_of(db, run_id).attempts == 1
    assert 40 < wait_of(db, run_id) <= 47


def test_a_refusal_for_good_fails_the_run_which_is_then_unmeasured(
    remote: Context, provider: OpenAIServer, db: Database
) -> None:
    run_id = start(remote, "vector")
    provider.default = refuse(401, "Incorrect API key", code="invalid_api_key")

    evaluate(remote, run_id, 0)

    run = run_of(remote, run_id)
    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert "OPENAI_API_KEY is not accepted" in run.reasons[0]
    assert fetch(db, "SELECT DISTINCT state FROM recallwatch.shard") == ["failed"]
    assert results(db) == 0


def test_a_corpus_table_that_is_gone_fails_the_run(ctx: Context, db: Database) -> None:
    run_id = start(ctx)
    execute(db, "DROP SCHEMA recallwatch_corpus CASCADE")

    evaluate(ctx, run_id, 0)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert "no table recallwatch_corpus.chunks" in run.reasons[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("boom"), "RuntimeError('boom')"),
        (
            SoftTimeLimitExceeded(),
            "not evaluated in 60 seconds: raise [queue] lease or lower [eval] shard_size",
        ),
    ],
)
def test_an_unforeseen_error_counts_an_attempt_and_says_what_it_was(
    ctx: Context, db: Database, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    run_id = start(ctx)
    monkeypatch.setattr(evaluation, "measure", fail)

    evaluate(ctx, run_id, 0)

    shard = shard_of(db, run_id)
    assert (shard.state, shard.attempts, shard.error) == ("pending", 1, said)
    assert wait_of(db, run_id) > 0


def test_a_shard_that_fails_each_time_fails_its_run_in_the_end(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TransientError("the server is gone")

    run_id = start(ctx)
    bell.take()
    monkeypatch.setattr(evaluation, "measure", fail)

    for _ in range(ctx.settings.queue.attempts):
        evaluate(ctx, run_id, 1)
        expire(db, run_id, 1)
    finish_by_sweeping(ctx, bell)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons == ["shard 1 failed 3 times: the server is gone"]


def spoil(text: str) -> Reply:
    """Answer with vectors, but NaN for one text."""

    def reply(exchange: Exchange) -> None:
        position = exchange.request.texts.index(text) if text in exchange.request.texts else None
        spoilt = {} if position is None else {position: float("nan")}
        vectors(spoil=spoilt)(exchange)

    return reply


def test_a_question_that_cannot_be_embedded_is_failed_and_no_miss(
    remote: Context, provider: OpenAIServer, bell: Bell
) -> None:
    provider.default = spoil(GOLDEN[3].text)

    [run] = finish_runs(remote, bell, "vector")

    rows = rows_of(remote, run.id)
    assert [row[1] for row in rows] == ["scored"] * 3 + ["failed"] + ["scored"] * 2 + [
        "ineligible"
    ] * 2
    assert (run.n_scored, run.n_failed, run.n_ineligible) == (5, 1, 2)
    _, _, retrieved, _, measured, first_rank, _, error = rows[3]
    assert (retrieved, measured, first_rank) == ([], None, None)
    assert "no vector" in error
    hits = [row[4][run.measures.index("hit@3")] for row in rows if row[1] == "scored"]
    assert run.metrics is not None
    assert run.metrics["hit@3"] == pytest.approx(sum(hits) / 5)


def test_a_failed_question_is_named_by_its_id(
    remote: Context, provider: OpenAIServer, bell: Bell, db: Database
) -> None:
    text = GOLDEN[5].text
    provider.default = spoil(text)

    [run] = finish_runs(remote, bell, "vector")

    [question_id] = fetch(
        db, "SELECT id FROM recallwatch.question WHERE text = :text", {"text": text}
    )
    assert f"text {question_id}" in rows_of(remote, run.id)[5][7]


def test_a_worker_that_lost_its_shard_while_measuring_stores_nothing(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start(ctx)
    bell.take()

    def measure_too_long(
        ctx: Context, run: Run, items: Sequence[GoldenItem]
    ) -> tuple[list[ResultRow], dict[str, float]]:
        expire(db, run_id)
        assert claim(db, run_id, worker="another") is not None
        return measure(ctx, run, items)

    monkeypatch.setattr(evaluation, "measure", measure_too_long)
    evaluate(ctx, run_id, 0)

    shard = shard_of(db, run_id)
    assert (shard.state, shard.worker, shard.token) == ("leased", "another", 2)
    assert results(db) == 0
    assert bell.messages == []


def test_a_worker_that_lost_its_shard_cannot_hand_it_back(
    ctx: Context, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start(ctx)

    def fail_too_late(*_: object) -> None:
        expire(db, run_id)
        assert claim(db, run_id, worker="another") is not None
        raise TransientError("too late")

    monkeypatch.setattr(evaluation, "measure", fail_too_late)
    evaluate(ctx, run_id, 0)

    shard = shard_of(db, run_id)
    assert (shard.state, shard.worker, shard.error) == ("leased", "another", None)


def test_a_shard_whose_run_ended_meanwhile_stores_nothing(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start(ctx)

    def end_and_fail(*_: object) -> None:
        execute(db, "UPDATE recallwatch.run SET deadline_at = now()")
        finish_by_sweeping(ctx, bell)
        raise PermanentError("too late as well")

    bell.take()
    monkeypatch.setattr(evaluation, "measure", end_and_fail)
    evaluate(ctx, run_id, 0)

    assert results(db) == 0
    run = run_of(ctx, run_id)
    assert run.reasons is not None
    assert "deadline" in run.reasons[0]


def test_a_run_is_measured_by_its_own_settings_not_by_the_workers(
    ctx: Context, open_context: Opener, bell: Bell
) -> None:
    [expected] = finish_runs(ctx, bell, "vector")
    run_id = start(ctx, "vector")
    settings = ctx.settings
    other = open_context(
        eval=settings.eval.model_copy(update={"k": 1, "relevance_threshold": 2}),
        embedding=settings.embedding.model_copy(update={"dimensions": 128}),
        strategies={},
    )

    bell.work(other)

    assert rows_of(ctx, run_id) == rows_of(ctx, expected.id)
