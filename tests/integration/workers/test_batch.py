"""A batch from its start to its verdicts, whatever becomes of the messages."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import SecretStr

from db.models import Run
from db.session import Database
from pipeline.types import Question
from tests.integration.db.building import execute, expire, fetch, import_set
from tests.integration.workers.conftest import Opener
from tests.integration.workers.working import (
    NOWHERE,
    TASKS,
    Bell,
    finish_by_sweeping,
    finish_runs,
    rows_of,
    run_of,
    start_runs,
)
from workers.context import Context
from workers.doorbell import EMBED_SHARD, EVALUATE_SHARD, REDUCE_RUN

STRATEGIES = ("vector", "fulltext", "hybrid")


SAID = ("status", "n_scored", "n_failed", "n_ineligible", "metrics", "by_category", "by_tenant",
        "facts")  # fmt: skip


def rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Round every mean: the last bit of a sum hangs on the order in which shards were stored."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return round(value, 12) if isinstance(value, float) else value


def record(run: Run) -> dict[str, Any]:
    """Return what a run says of retrieval."""
    return {name: rounded(getattr(run, name)) for name in SAID}


@pytest.fixture
def expected(ctx: Context, bell: Bell) -> list[tuple[dict[str, Any], Sequence[Any]]]:
    """Evaluate undisturbed; give each run's record and results."""
    found = finish_runs(ctx, bell, *STRATEGIES)
    return [(record(run), rows_of(ctx, run.id)) for run in found]


def measured(ctx: Context, run_ids: Sequence[int]) -> list[tuple[dict[str, Any], Sequence[Any]]]:
    return [(record(run_of(ctx, run_id)), rows_of(ctx, run_id)) for run_id in run_ids]


def test_a_first_batch_is_the_baseline_of_each_strategy(ctx: Context, bell: Bell) -> None:
    found = finish_runs(ctx, bell, *STRATEGIES)

    assert [run.strategy for run in found] == list(STRATEGIES)
    for run in found:
        assert (run.status, run.verdict) == ("completed", "baseline")
        assert (run.n_scored, run.n_failed, run.n_ineligible) == (6, 0, 2)
        assert run.started_at is not None
        assert run.finished_at is not None
        assert run.facts is not None
        assert run.facts["missing_keys"] == 3
        assert run.facts["partly_live"] == 1
        assert run.by_tenant is not None
        assert run.by_tenant.keys() == {"acme"}


def test_what_a_question_asks_for_is_found(ctx: Context, bell: Bell) -> None:
    vector, fulltext, hybrid = finish_runs(ctx, bell, *STRATEGIES)

    for run in (vector, fulltext, hybrid):
        assert run.metrics is not None
        assert run.metrics["hit@3"] >= 5 / 6, run.strategy


def test_a_second_batch_over_the_same_corpus_measures_the_same(
    ctx: Context, bell: Bell, expected: list[tuple[dict[str, Any], Sequence[Any]]]
) -> None:
    again = finish_runs(ctx, bell, *STRATEGIES)

    assert [run.verdict for run in again] == ["ok"] * 3
    assert measured(ctx, [run.id for run in again]) == expected
    assert [run.compared_to for run in again] == [1, 2, 3]


def test_what_is_rung_first_is_what_needs_no_vector_and_each_shard_once(
    ctx: Context, bell: Bell
) -> None:
    started = start_runs(ctx, *STRATEGIES)

    fulltext = started.run_ids[1]
    assert sorted(bell.take()) == sorted(
        [(EMBED_SHARD, (started.batch_id, number)) for number in range(3)]
        + [(EVALUATE_SHARD, (fulltext, number)) for number in range(3)]
    )


def test_a_batch_whose_messages_were_all_lost_ends_the_same_by_sweeping(
    ctx: Context, bell: Bell, expected: list[tuple[dict[str, Any], Sequence[Any]]]
) -> None:
    started = start_runs(ctx, *STRATEGIES)
    bell.take()

    finish_by_sweeping(ctx, bell)

    assert measured(ctx, started.run_ids) == expected


@pytest.mark.parametrize("seed", range(6))
def test_messages_in_any_order_doubled_and_lost_lead_to_the_same_record(
    ctx: Context, bell: Bell, expected: list[tuple[dict[str, Any], Sequence[Any]]], seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - to shuffle
    started = start_runs(ctx, *STRATEGIES)

    while bell.messages:
        waiting = bell.take()
        chance.shuffle(waiting)
        for task, arguments in waiting:
            for _ in range(chance.choice([0, 1, 1, 2])):
                TASKS[task](ctx, *arguments)
    finish_by_sweeping(ctx, bell)

    assert measured(ctx, started.run_ids) == expected
    verdicts = [run_of(ctx, run_id).verdict for run_id in started.run_ids]
    assert verdicts == ["ok"] * 3


def test_workers_that_died_with_their_shards_change_nothing(
    ctx: Context,
    bell: Bell,
    expected: list[tuple[dict[str, Any], Sequence[Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        """As SIGKILL, nothing handles it."""

    def die(*_: object) -> None:
        raise Killed

    started = start_runs(ctx, *STRATEGIES)
    with monkeypatch.context() as dying:
        dying.setattr("workers.evaluation.measure", die)
        for run_id in started.run_ids:
            with pytest.raises(Killed):
                TASKS[EVALUATE_SHARD](ctx, run_id, 1)
    bell.take()
    for run_id in started.run_ids:
        expire(ctx.database, run_id, 1)

    finish_by_sweeping(ctx, bell)

    assert measured(ctx, started.run_ids) == expected


def test_a_cache_that_is_down_changes_no_number(
    open_context: Opener, bell: Bell, expected: list[tuple[dict[str, Any], Sequence[Any]]]
) -> None:
    without = open_context(redis_url=SecretStr(NOWHERE))

    again = finish_runs(without, bell, *STRATEGIES)

    assert measured(without, [run.id for run in again]) == expected
    assert again[0].cost is not None
    assert again[0].cost["cached_texts"] == 0


def test_a_strategy_that_lost_its_vectors_is_seen_to_regress_and_full_text_is_not(
    ctx: Context, bell: Bell, db: Database
) -> None:
    finish_runs(ctx, bell, *STRATEGIES)
    execute(
        db,
        "UPDATE recallwatch_corpus.chunks SET embedding ="
        " (SELECT embedding FROM recallwatch_corpus.chunks LIMIT 1)",
    )

    vector, fulltext, _ = finish_runs(ctx, bell, *STRATEGIES)

    assert (vector.verdict, fulltext.verdict) == ("regressed", "ok")
    assert vector.comparison is not None
    assert vector.comparison["lost"] > 0
    assert vector.comparison["corpus"] == ["chunk texts unchanged", "vectors changed"]


def test_a_question_that_leaves_the_set_is_no_regression(
    ctx: Context, bell: Bell, db: Database
) -> None:
    finish_runs(ctx, bell, "fulltext")
    import_set(db, [Question("What is not to be found?", {"weight:0": 1})])

    [again] = finish_runs(ctx, bell, "fulltext")

    assert again.verdict == "ok"
    assert again.comparison is not None
    assert again.comparison["pairing"]["shared"] == 6
    assert again.comparison["pairing"]["new"] == 1


def test_documents_are_scored_at_document_level(open_context: Opener, bell: Bell) -> None:
    settings = open_context().settings
    ctx = open_context(eval=settings.eval.model_copy(update={"level": "document"}))

    [run] = finish_runs(ctx, bell, "fulltext")

    assert run.level == "document"
    assert run.n_ineligible == 2
    for _, _, retrieved, *_ in rows_of(ctx, run.id):
        assert len(set(retrieved)) == len(retrieved)
        assert set(retrieved) <= {"reset", "battery", "return", "weight", "warranty"}


def test_a_reducer_is_rung_once_by_the_last_shard(ctx: Context, bell: Bell, db: Database) -> None:
    started = start_runs(ctx, "fulltext")
    for task, arguments in bell.take():
        TASKS[task](ctx, *arguments)

    assert bell.messages == [(REDUCE_RUN, (started.run_ids[0],))]
    assert fetch(db, "SELECT count(*) FROM recallwatch.result") == [8]
