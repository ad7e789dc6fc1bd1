"""What a batch may cost: said before it starts, kept to while it runs, and told afterwards."""

import math

import pytest
from sqlalchemy.exc import IntegrityError

from cli.records import run_record
from db import runs
from db.session import Database
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import UsageError
from tests.integration.db.building import execute, fetch
from tests.integration.workers.conftest import GOLDEN, Opener, embedding_of
from tests.integration.workers.working import Bell, finish_runs, run_of, start_runs
from tests.loopback.openai_server import OpenAIServer, tokens_of
from workers.context import Context
from workers.enqueue import Request, start
from workers.resuming import cancel, resume
from workers.spending import Estimate

pytestmark = pytest.mark.usefixtures("bell")

QUESTIONS = [question.text for question in GOLDEN]
AT_MOST = float(sum(len(text.encode()) for text in QUESTIONS))
BILLED = float(tokens_of(QUESTIONS))


def priced(provider: OpenAIServer, **settings: float) -> EmbeddingSettings:
    """Return settings by which a token costs a dollar."""
    return embedding_of(provider).model_copy(update={"price": 1e6, **settings})


@pytest.fixture
def paid(open_context: Opener, provider: OpenAIServer) -> Context:
    return open_context(embedding=priced(provider))


def test_the_estimate_counts_what_is_not_cached_a_token_a_byte(paid: Context, bell: Bell) -> None:
    assert start_runs(paid, "vector", "hybrid").estimate == Estimate(8, AT_MOST)
    bell.work(paid)

    assert start_runs(paid, "vector").estimate == Estimate(0, 0.0)


def test_what_is_free_has_no_estimate(paid: Context, remote: Context, ctx: Context) -> None:
    assert start_runs(ctx, "vector").estimate is None
    assert start_runs(remote, "vector").estimate is None, "nobody said what it costs"
    assert start_runs(paid, "fulltext").estimate is None, "it needs no vectors"


def test_a_batch_that_may_cost_more_than_its_cap_is_not_started(
    open_context: Opener, paid: Context, provider: OpenAIServer, db: Database
) -> None:
    capped = open_context(embedding=priced(provider, max_cost=AT_MOST - 1))

    for ctx, asked in ((capped, None), (paid, AT_MOST - 1)):
        with pytest.raises(UsageError) as told:
            start(ctx, Request(strategies=["vector"], max_cost=asked))
        assert str(told.value).startswith(
            f"estimated cost: at most ${AT_MOST:.2f} for 8 new questions, which is above the cap"
            f" of ${AT_MOST - 1:.2f} (--max-cost or [embedding] max_cost)"
        )
    assert fetch(db, "SELECT count(*) FROM recallwatch.batch") == [0]
    assert start(capped, Request(strategies=["vector"], max_cost=AT_MOST)).run_ids


def test_a_cap_needs_a_price_to_be_held_against(remote: Context) -> None:
    with pytest.raises(UsageError, match=r"^a cost cap of \$1\.00 needs a price: what m costs"):
        start(remote, Request(strategies=["vector"], max_cost=1.0))


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1.0])
def test_a_cap_that_is_no_amount_of_money_is_refused(
    paid: Context, db: Database, amount: float
) -> None:
    with pytest.raises(UsageError, match="a cost cap is a number of US dollars from 0 on"):
        start(paid, Request(strategies=["vector"], max_cost=amount))

    batch_id = start_runs(paid, "vector").batch_id
    with pytest.raises(IntegrityError, match="batch_max_cost_is_an_amount"):
        execute(db, "UPDATE recallwatch.batch SET max_cost = :amount WHERE id = :id",
                {"amount": amount, "id": batch_id})  # fmt: skip


def test_a_cap_of_what_is_free_is_no_fault(ctx: Context) -> None:
    assert start(ctx, Request(strategies=["vector"], max_cost=0.0)).run_ids


def test_a_batch_spends_what_was_billed_whatever_its_runs_are(paid: Context, bell: Bell) -> None:
    vector, _ = finish_runs(paid, bell, "vector", "hybrid")

    with paid.database.begin() as session:
        record = run_record(runs.get(session, vector.id))
    assert (record["batch_spent"], record["batch_max_cost"]) == (BILLED, None)


def spent_by(ctx: Context, run_id: int) -> float:
    with ctx.database.begin() as session:
        return runs.get(session, run_id).batch.spent


def test_no_request_goes_out_that_may_break_the_cap_and_the_run_says_so(
    open_context: Opener, paid: Context, provider: OpenAIServer, bell: Bell
) -> None:
    finish_runs(paid, bell, "vector")
    capped = open_context(embedding=priced(provider, max_cost=130.0))
    started = start_runs(capped, "vector", "fulltext")
    assert started.estimate == Estimate(0, 0.0)
    provider.requests.clear()
    capped.redis.flushdb()

    bell.work(capped)

    run, other = (run_of(capped, run_id) for run_id in started.run_ids)
    assert (run.status, run.verdict) == ("failed", "unmeasured")
    assert run.reasons is not None
    assert "the batch's cost cap of $130.00 is used up" in run.reasons[0]
    assert "raise [embedding] max_cost" in run.reasons[0]
    assert other.status == "completed"
    sent = [tokens_of(request.texts) for request in provider.requests]
    assert spent_by(capped, run.id) == sum(sent)
    assert 0 < sum(sent) <= 130


def test_a_run_that_ended_by_its_cap_goes_on_under_a_higher_one(
    open_context: Opener, paid: Context, provider: OpenAIServer, bell: Bell
) -> None:
    [expected] = finish_runs(paid, bell, "vector")
    capped = open_context(embedding=priced(provider, max_cost=130.0))
    run_id = start_runs(capped, "vector").run_ids[0]
    capped.redis.flushdb()
    bell.work(capped)
    assert run_of(capped, run_id).status == "failed"

    richer = open_context(embedding=priced(provider, max_cost=1000.0))
    resume(richer, run_id)
    bell.work(richer)

    run = run_of(richer, run_id)
    assert (run.status, run.metrics) == ("completed", expected.metrics)
    assert spent_by(richer, run_id) <= 1000


def test_resuming_a_run_never_lowers_the_cap_that_others_of_its_batch_were_started_with(
    open_context: Opener, provider: OpenAIServer, bell: Bell
) -> None:
    thrifty = open_context(embedding=priced(provider, max_cost=1.0))
    started = start(thrifty, Request(strategies=["vector", "hybrid"], max_cost=AT_MOST))
    cancel(thrifty, started.run_ids[:1])

    resume(thrifty, started.run_ids[0])
    bell.work(thrifty)

    assert [run_of(thrifty, run_id).status for run_id in started.run_ids] == ["completed"] * 2


def test_resuming_without_a_cap_in_the_settings_keeps_the_batch_s_own(
    paid: Context, bell: Bell
) -> None:
    run_id = start(paid, Request(strategies=["vector"], max_cost=AT_MOST)).run_ids[0]
    with paid.database.begin() as session:
        runs.get(session, run_id).batch.max_cost = 0.0
    bell.work(paid)

    resume(paid, run_id)
    bell.work(paid)

    assert run_of(paid, run_id).status == "failed"
    assert spent_by(paid, run_id) == 0
