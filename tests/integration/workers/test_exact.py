"""Exact search beside an index: what it says, when it is asked, and that nothing of it harms a run.

The oracle is a strategy whose own searches are exact, by the server: what the one would have served
is what the other serves.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from celery.exceptions import SoftTimeLimitExceeded

from cli.embedded.stack import Servers
from db.models import Run
from db.session import Database
from pipeline.corpus.reading import Chunk
from pipeline.embedding.local import LocalEmbedder
from pipeline.errors import PermanentError, TransientError
from pipeline.retrieval.exact_cost import Sample
from pipeline.retrieval.strategies import HybridStrategy, Strategy, VectorStrategy
from pipeline.types import Question
from tests.conftest import at_database
from tests.integration.conftest import copy_of
from tests.integration.db.building import claim, execute, expire, fetch, shard_of
from tests.integration.workers.conftest import Opener
from tests.integration.workers.templates import filled
from tests.integration.workers.working import (
    DIMENSIONS,
    TASKS,
    Bell,
    finish_by_sweeping,
    finish_runs,
    run_of,
    start_runs,
)
from workers import evaluation
from workers.context import Context
from workers.doorbell import EMBED_SHARD, EVALUATE_SHARD, REDUCE_RUN
from workers.evaluation import evaluate
from workers.exact import measure_exact

CHUNKS = 3000
QUESTIONS = 120
WORDS = (
    "router", "battery", "parcel", "warranty", "refund", "invoice", "password", "cable", "antenna",
    "screen", "manual", "charger", "return", "store", "delivery", "repair", "setting", "update",
    "signal", "light", "button", "cover", "sensor", "filter", "engine", "printer", "paper",
    "colour", "speaker", "volume", "camera", "memory",
)  # fmt: skip

STRATEGIES: dict[str, Strategy] = {
    "narrow": VectorStrategy(ef_search=1),
    "wide": VectorStrategy(ef_search=1000),
    "by-server": VectorStrategy(exact=True),
    "mixed": HybridStrategy(arms={"narrow": 1.0, "fulltext": 1.0}, depth=10),
    "mixed-by-server": HybridStrategy(arms={"by-server": 1.0, "fulltext": 1.0}, depth=10),
}


def sentence(seed: str) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=7))  # noqa: S311 - made-up texts


def tenant_of(number: int) -> str | None:
    return "acme" if number % 10 == 0 else None


def chunks() -> Iterator[Chunk]:
    texts = [sentence(f"chunk {n}") for n in range(CHUNKS)]
    vectors = LocalEmbedder(DIMENSIONS).embed(texts)
    for n, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        yield Chunk(f"doc-{n // 3}", n % 3, text, tenant_of(n), "en", vector)


def golden() -> Iterator[Question]:
    """Yield questions about one chunk each, in some of its words, some of one tenant."""
    for n in range(QUESTIONS):
        about = (17 * n) % CHUNKS
        text = " ".join(sentence(f"chunk {about}").split()[:5])
        expected = {f"doc-{about // 3}:{about % 3}": 2, f"doc-{about // 3}:{(about + 1) % 3}": 1}
        yield Question(f"{text} {n}", expected, tenant=tenant_of(about))


@pytest.fixture(scope="session")
def indexed_template(servers: Servers, migrated_template: str) -> Iterator[str]:
    """Give the name of a database with a corpus behind an HNSW index, and a golden set."""
    with filled(servers, migrated_template, chunks(), golden()) as name:
        yield name


@pytest.fixture
def url(servers: Servers, indexed_template: str) -> Iterator[str]:
    assert servers.database_url is not None
    with copy_of(servers, indexed_template) as name:
        yield at_database(servers.database_url, name)


@pytest.fixture
def opened(open_context: Opener) -> Callable[..., Context]:
    """Give what opens a context with these strategies, and other [eval] settings if asked."""

    def open_with(**changes: object) -> Context:
        told = open_context().settings.eval.model_copy(
            update={"shard_size": 50, "max_failed": 0.01} | changes
        )
        return open_context(strategies=open_context().settings.strategies | STRATEGIES, eval=told)

    return open_with


@pytest.fixture
def ctx(opened: Callable[..., Context]) -> Context:
    return opened()


def said(run: Run) -> dict[str, Any]:
    """Return what the record says of exact search."""
    assert run.exact is not None
    return run.exact


def exact_rows(db: Database, run_id: int) -> list[tuple[int, list[str], list[float]]]:
    return fetch(
        db,
        "SELECT position, retrieved, measured FROM recallwatch.exact_result WHERE run_id = :run"
        " ORDER BY position",
        {"run": run_id},
    )


def served_rows(db: Database, run_id: int) -> list[tuple[int, list[str], list[float]]]:
    return fetch(
        db,
        "SELECT position, retrieved, measured FROM recallwatch.result WHERE run_id = :run"
        " AND outcome = 'scored' ORDER BY position",
        {"run": run_id},
    )


def exact_shards(db: Database) -> list[Any]:
    return fetch(
        db,
        "SELECT run_id, number FROM recallwatch.shard WHERE kind = 'exact' ORDER BY run_id, number",
    )


@pytest.mark.parametrize("level", ["chunk", "document"])
def test_exact_search_finds_what_an_exact_strategy_serves(
    opened: Callable[..., Context], bell: Bell, db: Database, level: str
) -> None:
    narrow, by_server, mixed, mixed_by_server = finish_runs(
        opened(level=level), bell, "narrow", "by-server", "mixed", "mixed-by-server"
    )

    for run, oracle in ((narrow, by_server), (mixed, mixed_by_server)):
        assert exact_rows(db, run.id) == served_rows(db, oracle.id)
        assert said(run)["metrics"] == pytest.approx(oracle.metrics)
        assert said(run)["served"] == pytest.approx(run.metrics)
        assert (said(run)["n"], said(run)["of"], said(run)["sampled"]) == (120, 120, False)
        assert said(run)["error"] is None
        assert oracle.exact is None


def test_what_the_index_misses_is_its_loss(ctx: Context, bell: Bell) -> None:
    [run] = finish_runs(ctx, bell, "narrow")

    found = said(run)
    loss = {name: found["metrics"][name] - found["served"][name] for name in ("recall@3", "hit@3")}
    assert found["index_loss"] == pytest.approx(loss["recall@3"])
    assert (found["missed"] - found["found_more"]) / 120 == pytest.approx(loss["hit@3"])


def drop_index(db: Database) -> None:
    execute(db, "DROP INDEX recallwatch_corpus.chunks_embedding")


def test_without_an_index_to_judge_there_is_no_exact_search(
    opened: Callable[..., Context], bell: Bell, db: Database
) -> None:
    finish_runs(opened(), bell, "fulltext", "by-server", "mixed-by-server")
    finish_runs(opened(exact_budget=0), bell, "narrow", "mixed")
    drop_index(db)
    [run] = finish_runs(opened(), bell, "narrow")

    assert exact_shards(db) == []
    assert run.exact is None


def test_the_exact_shards_are_rung_when_all_that_is_served_was_measured(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.retrieval.exact_cost.MOST_IN_SHARD", 70)
    started = start_runs(ctx, "narrow")
    [run_id] = started.run_ids
    assert bell.take() == [(EMBED_SHARD, (started.batch_id, number)) for number in range(3)]

    for number in (3, 2, 0, 4):
        evaluate(ctx, run_id, number)
    assert bell.messages == []
    evaluate(ctx, run_id, 1)
    assert bell.take() == [(EVALUATE_SHARD, (run_id, 3)), (EVALUATE_SHARD, (run_id, 4))]
    evaluate(ctx, run_id, 4)
    evaluate(ctx, run_id, 4)
    assert bell.messages == []
    assert run_of(ctx, run_id).status == "running"
    evaluate(ctx, run_id, 3)
    assert bell.messages == [(REDUCE_RUN, (run_id,))]

    assert len(exact_rows(db, run_id)) == QUESTIONS


@pytest.mark.parametrize("seed", range(3))
def test_messages_in_any_order_doubled_and_lost_find_the_same(
    ctx: Context, bell: Bell, db: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.retrieval.exact_cost.MOST_IN_SHARD", 30)
    runs = finish_runs(ctx, bell, "narrow", "mixed")
    chance = random.Random(seed)  # noqa: S311 - to shuffle
    started = start_runs(ctx, "narrow", "mixed")

    while bell.messages:
        waiting = bell.take()
        chance.shuffle(waiting)
        for task, arguments in waiting:
            for _ in range(chance.choice([0, 1, 1, 2])):
                TASKS[task](ctx, *arguments)
    finish_by_sweeping(ctx, bell)

    for run, run_id in zip(runs, started.run_ids, strict=True):
        assert exact_rows(db, run_id) == exact_rows(db, run.id)
        again = said(run_of(ctx, run_id))
        for name in ("n", "of", "missed", "found_more", "error"):
            assert again[name] == said(run)[name]
        assert again["metrics"] == pytest.approx(said(run)["metrics"])


def rebuild_badly(db: Database) -> None:
    drop_index(db)
    execute(
        db,
        "CREATE INDEX chunks_embedding ON recallwatch_corpus.chunks"
        " USING hnsw (embedding vector_cosine_ops) WITH (m = 2, ef_construction = 4)",
    )


def test_an_index_that_was_rebuilt_badly_shows_as_index_loss_and_not_as_a_change_of_the_corpus(
    ctx: Context, bell: Bell, db: Database
) -> None:
    [before] = finish_runs(ctx, bell, "vector")
    rebuild_badly(db)
    [after] = finish_runs(ctx, bell, "vector")

    assert exact_rows(db, after.id) == exact_rows(db, before.id)
    assert after.metrics is not None
    assert before.metrics is not None
    assert after.metrics["recall@3"] < before.metrics["recall@3"] - 0.05
    assert said(before)["index_loss"] < 0.01
    assert said(after)["index_loss"] > 0.05
    assert after.comparison is not None
    compared = after.comparison["exact"]
    assert (compared["shared"], compared["lost"], compared["won"]) == (QUESTIONS, 0, 0)
    assert {change["difference"] for change in compared["changes"]} == {0}
    assert compared["loss_before"] == pytest.approx(said(before)["index_loss"])
    assert compared["loss_now"] == pytest.approx(said(after)["index_loss"])
    assert compared["missed_now"] == said(after)["missed"]


def test_a_reindex_of_the_same_data_changes_nothing_that_exact_search_finds(
    ctx: Context, bell: Bell, db: Database
) -> None:
    [before] = finish_runs(ctx, bell, "narrow")
    with psycopg.connect(ctx.settings.database_url.get_secret_value(), autocommit=True) as conn:  # type: ignore[union-attr]  # the fixture gives one
        conn.execute("REINDEX INDEX recallwatch_corpus.chunks_embedding")
    [after] = finish_runs(ctx, bell, "narrow")

    assert exact_rows(db, after.id) == exact_rows(db, before.id)
    assert after.comparison is not None
    assert (after.comparison["exact"]["lost"], after.comparison["exact"]["won"]) == (0, 0)


def test_vectors_that_changed_show_in_exact_search(ctx: Context, bell: Bell, db: Database) -> None:
    finish_runs(ctx, bell, "wide")
    execute(
        db,
        "UPDATE recallwatch_corpus.chunks SET embedding = (SELECT embedding FROM"
        " recallwatch_corpus.chunks ORDER BY document_id LIMIT 1) WHERE chunk_index = 0",
    )
    [after] = finish_runs(ctx, bell, "wide")

    assert after.comparison is not None
    compared = after.comparison["exact"]
    assert compared["lost"] > 10
    assert compared["changes"][0]["p"] is None or compared["changes"][0]["p"] <= 1
    assert abs(compared["loss_now"]) < 0.02


def test_which_ef_search_would_do_is_found_and_what_it_costs(ctx: Context, bell: Bell) -> None:
    narrow, wide, mixed = finish_runs(ctx, bell, "narrow", "wide", "mixed")

    tried = said(narrow)["ef_search"]
    assert tried["questions"] == QUESTIONS
    widths = [rung["ef_search"] for rung in tried["ladder"]]
    # ef_search is never below the rows that are asked for.
    assert widths == [3 * 2**n for n in range(len(widths))]
    losses = [rung["loss"] for rung in tried["ladder"]]
    assert losses[0] == pytest.approx(said(narrow)["index_loss"])
    assert losses[-1] < 0.01 <= min(losses[:-1])
    assert tried["suggested"] == widths[-1]
    assert all(0 < rung["ms"] < 100 for rung in tried["ladder"])
    assert said(wide)["ef_search"] is None
    assert said(mixed)["ef_search"] is None


def test_a_suggested_ef_search_keeps_its_promise(
    ctx: Context, open_context: Opener, bell: Bell
) -> None:
    [narrow] = finish_runs(ctx, bell, "narrow")
    told = {"told": VectorStrategy(ef_search=said(narrow)["ef_search"]["suggested"])}

    [run] = finish_runs(open_context(strategies=told, eval=ctx.settings.eval), bell, "told")

    assert said(run)["index_loss"] == pytest.approx(said(narrow)["ef_search"]["ladder"][-1]["loss"])


def test_trying_ef_search_ends_when_its_time_is_up(
    opened: Callable[..., Context], bell: Bell
) -> None:
    [run] = finish_runs(opened(exact_budget=0.001), bell, "narrow")

    assert len(said(run)["ef_search"]["ladder"]) == 1
    assert said(run)["ef_search"]["suggested"] is None


def test_an_index_that_no_ef_search_helps_gets_no_suggestion(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.ef_search.POINT", -1.0)
    [run] = finish_runs(ctx, bell, "narrow")

    assert said(run)["ef_search"]["suggested"] is None
    assert said(run)["ef_search"]["ladder"][-1]["ef_search"] == 1000


def test_the_servers_ef_search_is_as_before(ctx: Context, bell: Bell) -> None:
    finish_runs(ctx, bell, "narrow")

    assert ctx.corpus().execute("SELECT current_setting('hnsw.ef_search')").fetchone() == ("40",)


def test_a_small_budget_asks_a_sample_and_the_same_in_the_next_run(
    opened: Callable[..., Context], bell: Bell, db: Database
) -> None:
    ctx = opened(exact_budget=0.001)

    first, second = (finish_runs(ctx, bell, "narrow")[0] for _ in range(2))

    assert (said(first)["n"], said(first)["of"], said(first)["sampled"]) == (100, QUESTIONS, True)
    asked = [position for position, *_ in exact_rows(db, first.id)]
    assert asked == [position for position, *_ in exact_rows(db, second.id)]
    assert asked != list(range(100))
    assert second.comparison is not None
    assert second.comparison["exact"]["shared"] == 100


def test_a_corpus_too_large_for_any_sample_is_said_and_not_waited_for(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.exact_plan.sample", lambda *_, **__: Sample(100, 1, 61.0))

    [run] = finish_runs(ctx, bell, "narrow")

    assert said(run)["error"] == (
        "for 100 questions it would take about 61 seconds, and a task has 60 ([queue] lease)"
    )
    assert (run.status, run.verdict, said(run)["n"]) == ("completed", "baseline", 0)


def until_exact(ctx: Context, bell: Bell, strategy: str = "narrow") -> tuple[int, int]:
    """Measure what a run serves; return it and the number of its one exact shard."""
    [run_id] = start_runs(ctx, strategy).run_ids
    while bell.messages != [(EVALUATE_SHARD, (run_id, 3))]:
        task, arguments = bell.messages.pop(0)
        TASKS[task](ctx, *arguments)
    bell.take()
    return run_id, 3


def test_an_error_for_good_ends_the_exact_search_and_the_run_is_judged_without(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermanentError("the database is slow")

    run_id, number = until_exact(ctx, bell)
    monkeypatch.setattr(evaluation, "measure_exact", refuse)

    evaluate(ctx, run_id, number)
    assert bell.messages == [(REDUCE_RUN, (run_id,))]
    bell.work(ctx)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict) == ("completed", "baseline")
    assert (said(run)["error"], said(run)["n"]) == ("the database is slow", 0)
    assert shard_of(db, run_id, number).state == "done"
    assert exact_rows(db, run_id) == []


def test_a_corpus_that_goes_away_meanwhile_ends_the_exact_search_only(
    ctx: Context, bell: Bell, db: Database
) -> None:
    run_id, number = until_exact(ctx, bell)
    execute(db, "DROP TABLE recallwatch_corpus.chunks")

    evaluate(ctx, run_id, number)
    bell.work(ctx)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict, run.n_scored) == ("completed", "baseline", QUESTIONS)
    assert "recallwatch_corpus.chunks" in said(run)["error"]


def test_a_task_out_of_time_ends_the_exact_search_at_once(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_too_long(*_: object) -> None:
        raise SoftTimeLimitExceeded

    run_id, number = until_exact(ctx, bell)
    monkeypatch.setattr(evaluation, "measure_exact", take_too_long)

    evaluate(ctx, run_id, number)
    bell.work(ctx)

    assert said(run_of(ctx, run_id))["error"] == "it was not done in 60 seconds ([queue] lease)"


@pytest.mark.parametrize("error", [TransientError("the server is gone"), RuntimeError("boom")])
def test_an_exact_shard_is_tried_again_and_in_the_end_given_up(
    ctx: Context, bell: Bell, db: Database, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    run_id, number = until_exact(ctx, bell)
    monkeypatch.setattr(evaluation, "measure_exact", fail)

    for attempt in range(1, ctx.settings.queue.attempts + 1):
        evaluate(ctx, run_id, number)
        assert shard_of(db, run_id, number).attempts == attempt
        assert run_of(ctx, run_id).status == "running"
        expire(db, run_id, number)
    finish_by_sweeping(ctx, bell)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict) == ("completed", "baseline")
    text = str(error) if isinstance(error, TransientError) else repr(error)
    assert said(run)["error"] == f"tried 3 times: {text}"


def test_a_second_attempt_may_succeed(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TransientError("503")

    run_id, number = until_exact(ctx, bell)
    with monkeypatch.context() as failing:
        failing.setattr(evaluation, "measure_exact", fail)
        evaluate(ctx, run_id, number)
    expire(db, run_id, number)
    finish_by_sweeping(ctx, bell)

    assert said(run_of(ctx, run_id))["error"] is None
    assert said(run_of(ctx, run_id))["n"] == QUESTIONS


def test_a_worker_that_died_with_an_exact_shard_is_made_up_for(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As SIGKILL, nothing handles it."""

    def die(*_: object) -> None:
        raise Killed

    run_id, number = until_exact(ctx, bell)
    with monkeypatch.context() as dying:
        dying.setattr(evaluation, "measure_exact", die)
        with pytest.raises(Killed):
            evaluate(ctx, run_id, number)
    expire(db, run_id, number)
    finish_by_sweeping(ctx, bell)

    assert said(run_of(ctx, run_id))["n"] == QUESTIONS


def test_a_worker_that_lost_its_exact_shard_while_searching_stores_nothing(
    ctx: Context, bell: Bell, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, number = until_exact(ctx, bell)

    def search_too_long(*arguments: Any) -> object:  # noqa: ANN401 - measure_exact's own
        expire(db, run_id, number)
        assert claim(db, run_id, number, worker="another") is not None
        return measure_exact(*arguments)

    monkeypatch.setattr(evaluation, "measure_exact", search_too_long)
    evaluate(ctx, run_id, number)

    assert (shard_of(db, run_id, number).state, shard_of(db, run_id, number).token) == ("leased", 2)
    assert exact_rows(db, run_id) == []
    assert bell.messages == []


def test_a_deadline_that_passes_during_exact_search_costs_no_measurement(
    ctx: Context, bell: Bell, db: Database
) -> None:
    run_id, number = until_exact(ctx, bell)
    assert claim(db, run_id, number) is not None
    execute(db, "UPDATE recallwatch.run SET deadline_at = now() - interval '1 second'")

    finish_by_sweeping(ctx, bell)

    run = run_of(ctx, run_id)
    assert (run.status, run.verdict) == ("completed", "baseline")
    assert "deadline" in said(run)["error"]


def test_exact_results_are_scored_by_the_keys_that_lived_when_served(
    ctx: Context, bell: Bell, db: Database
) -> None:
    execute(db, "DELETE FROM recallwatch_corpus.chunks WHERE chunk_index = 2")
    [expected] = finish_runs(ctx, bell, "wide")
    recall = expected.measures.index("recall@3")
    before = {position: values[recall] for position, _, values in exact_rows(db, expected.id)}
    found = next(position for position, value in before.items() if value)
    run_id, number = until_exact(ctx, bell, "wide")
    execute(
        db,
        "UPDATE recallwatch_corpus.chunks SET chunk_index = chunk_index + 7"
        " WHERE document_id = :document",
        {"document": f"doc-{17 * found % CHUNKS // 3}"},
    )

    evaluate(ctx, run_id, number)
    bell.work(ctx)

    after = {position: values[recall] for position, _, values in exact_rows(db, run_id)}
    assert {position: value for position, value in before.items() if after[position] != value} == {
        found: before[found]
    }, "the one question about that document, whose chunks have other keys now"
    assert after[found] == 0


def test_a_vector_run_and_a_hybrid_one_at_work_together_end_both(ctx: Context, bell: Bell) -> None:
    runs = finish_runs(ctx, bell, "vector", "hybrid", "fulltext")

    assert [run.status for run in runs] == ["completed"] * 3
    assert [run.exact is None for run in runs] == [False, False, True]
    assert all(run.latency is not None for run in runs)
    assert runs[0].latency is not None
    assert 0 < runs[0].latency["exact_seconds"] == said(runs[0])["seconds"]


def test_exact_search_takes_its_vectors_from_the_cache(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, number = until_exact(ctx, bell)
    refuse = partial(pytest.fail, "it was embedded again")
    monkeypatch.setattr("pipeline.embedding.local.LocalEmbedder.embed", refuse)

    evaluate(ctx, run_id, number)
    bell.work(ctx)

    run = run_of(ctx, run_id)
    assert said(run)["n"] == QUESTIONS
    assert run.cost is not None
    assert run.cost["cached_texts"] == QUESTIONS


def test_vectors_that_exact_search_pays_for_again_are_in_the_costs(
    ctx: Context, bell: Bell
) -> None:
    run_id, number = until_exact(ctx, bell)
    ctx.redis.flushdb()

    evaluate(ctx, run_id, number)
    bell.work(ctx)

    run = run_of(ctx, run_id)
    assert said(run)["n"] == QUESTIONS
    assert run.cost is not None
    assert run.cost["embedded_texts"] == 2 * QUESTIONS
    assert run.cost["cached_texts"] == QUESTIONS
