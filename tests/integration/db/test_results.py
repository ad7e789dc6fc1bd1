from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from sqlalchemy import Row
from sqlalchemy.exc import IntegrityError

from db import results, runs
from db.results import ResultRow
from db.session import Database, driver_connection
from pipeline.errors import TransientError
from pipeline.types import Kind, Question
from tests.integration.db.building import (
    claimed,
    execute,
    failed,
    fetch,
    import_set,
    ineligible,
    items_of,
    questions,
    run_of,
    scored,
    shard_of,
    snapshot,
    start_run,
    store,
    store_all,
)


@pytest.fixture
def run(db: Database) -> int:
    """Start a run of five questions in shards of three and two."""
    import_set(db, questions(5))
    return start_run(db, shard_size=3)


def stored(db: Database) -> list[tuple[Any, ...]]:
    return fetch(
        db,
        "SELECT position, outcome, retrieved, scores, measured, first_rank, missing, error"
        " FROM recallwatch.result ORDER BY position",
    )


def test_a_shard_is_stored_with_its_close(db: Database, run: int) -> None:
    rows = [scored(0, 1.0, 0.5, 0.1, missing=["x:0"]), failed(1), ineligible(2, ["d2:0"])]

    assert store(db, claimed(db, run), rows) is False

    assert stored(db) == [
        (0, "scored", ["d:0", "e:1"], [0.75, 0.5], [1.0, 0.5, 0.1], 1, ["x:0"], None),
        (1, "failed", [], [], None, None, [], "the retriever raised"),
        (2, "ineligible", ["d:0"], [0.25], None, None, ["d2:0"], None),
    ]
    shard = shard_of(db, run)
    assert (shard.state, shard.lease_until, shard.error) == ("done", None, None)
    assert shard.stats == {"questions": 3}


def test_values_are_stored_at_full_precision(db: Database, run: int) -> None:
    third = 1 / 3
    row = replace(scored(0), scores=[third, 5e-324], measured=[third, 0.1 + 0.2, 1 - 2**-53])

    store(db, claimed(db, run, 1), [row, scored(1)])

    assert stored(db)[0][3:5] == ([third, 5e-324], [third, 0.1 + 0.2, 1 - 2**-53])


def test_the_last_shard_says_so_whichever_it_is(db: Database, run: int) -> None:
    assert store(db, claimed(db, run, 1), [scored(3), scored(4)]) is False

    assert store(db, claimed(db, run, 0), [scored(0), scored(1), scored(2)]) is True


@pytest.mark.parametrize("rows", [[], [scored(0), scored(1)], [scored(p) for p in range(4)]])
def test_a_wrong_number_of_results_is_refused(
    db: Database, run: int, rows: list[ResultRow]
) -> None:
    with pytest.raises(ValueError, match=f"shard of 3 questions got {len(rows)} results"):
        store(db, claimed(db, run), rows)

    assert stored(db) == []
    assert shard_of(db, run).state == "leased"


def test_a_result_that_the_tables_refuse_leaves_the_shard_open(db: Database, run: int) -> None:
    bad = replace(scored(2), error="scored and failed")

    with pytest.raises(psycopg.errors.CheckViolation):
        store(db, claimed(db, run), [scored(0), scored(1), bad])

    assert stored(db) == []
    assert shard_of(db, run).state == "leased"


def test_a_crash_between_copy_and_commit_leaves_nothing(db: Database, run: int) -> None:
    hold = claimed(db, run)

    def store_and_crash() -> None:
        with db.begin() as session:
            rows = [scored(0), scored(1), scored(2)]
            assert results.store(session, hold, rows, stats={}) is False
            driver_connection(session).pgconn.finish()

    with pytest.raises(TransientError):
        store_and_crash()

    assert stored(db) == []
    assert shard_of(db, run).state == "leased"
    assert store(db, hold, [scored(0), scored(1), scored(2)]) is False


def aggregate(db: Database, run_id: int) -> results.Aggregate:
    with db.begin() as session:
        return results.aggregate(session, runs.get(session, run_id).run)


def test_means_are_over_scored_questions_and_every_outcome_is_counted(
    db: Database, run: int
) -> None:
    rows = [scored(0, 1, 0.5, 0.25), failed(1), ineligible(2), scored(3, 0, 0, 0), failed(4)]
    store_all(db, run, rows)

    found = aggregate(db, run)

    assert found.counts == results.Counts(scored=2, failed=2, ineligible=1)
    assert found.counts.total == 5
    assert found.means == {"hit@5": 0.5, "recall@5": 0.25, "ndcg@5": 0.125}


def test_without_a_scored_question_there_are_no_means(db: Database, run: int) -> None:
    store_all(db, run, [failed(p) for p in range(5)])

    assert aggregate(db, run).means == {}


def test_groups_are_aggregated_each_for_itself(db: Database) -> None:
    labelled = [
        replace(question, category=category, tenant=tenant)
        for question, category, tenant in zip(
            questions(4), ["how", "how", "why", None], ["acme", None, "acme", None], strict=True
        )
    ]
    import_set(db, labelled)
    run_id = start_run(db)
    version = snapshot(db)
    store_all(db, run_id, [scored(0, 1, 1, 1), scored(1, 0, 0, 0), failed(2), scored(3)])

    with db.begin() as session:
        run = runs.get(session, run_id).run
        by_category = results.aggregate_by(session, run, "category", version.id)
        by_tenant = results.aggregate_by(session, run, "tenant", version.id)
        with pytest.raises(ValueError, match="cannot group by 'text'"):
            results.aggregate_by(session, run, "text", version.id)

    assert {name: group.counts for name, group in by_category.items()} == {
        "how": results.Counts(scored=2, failed=0, ineligible=0),
        "why": results.Counts(scored=0, failed=1, ineligible=0),
    }
    assert by_category["how"].means["recall@5"] == 0.5
    assert by_category["why"].means == {}
    assert by_tenant.keys() == {"acme"}


def test_facts_count_what_the_means_do_not_show(db: Database) -> None:
    none = Question(text="Who?", expected={}, kind=Kind.UNANSWERABLE)
    import_set(db, [*questions(4), none])
    run_id = start_run(db)
    unanswerable = ineligible(4)
    empty = replace(scored(1, 0, 0, 0), retrieved=[], scores=[])
    rows = [scored(0, missing=["x:0"]), empty, failed(2, "b"), ineligible(3, ["y:0", "z:0"])]
    store_all(db, run_id, [*rows, unanswerable])

    with db.begin() as session:
        facts = results.facts(session, run_id)

    assert facts == {
        "missing_keys": 3,
        "partly_live": 1,
        "empty": 1,
        "more_expected_than_k": 0,
        "unanswerable": 1,
        "dead": 1,
        "unanswerable_best_score": 0.25,
        "scored_best_score": 0.75,
        "example_error": "b",
    }


def test_the_stats_of_shards_add_up(db: Database, run: int) -> None:
    for number, rows in enumerate([[scored(0), scored(1), scored(2)], [scored(3), scored(4)]]):
        with db.begin() as session:
            stats = {"questions": len(rows), "embed_seconds": 0.25}
            results.store(session, claimed(db, run, number), rows, stats=stats)

    with db.begin() as session:
        assert results.shard_stats(session, run) == {"questions": 5, "embed_seconds": 0.5}


def positions(rows: Sequence[Row[Any]]) -> list[int]:
    return [row.position for row in rows]


def test_every_result_is_read_with_its_question_in_order(db: Database, run: int) -> None:
    store(db, claimed(db, run, 1), [scored(3), failed(4)])
    store(db, claimed(db, run, 0), [scored(0), scored(1), scored(2)])
    items = items_of(db, snapshot(db))

    with db.begin() as session:
        details = list(results.details(session, run))

    assert positions(details) == [0, 1, 2, 3, 4]
    assert [row.text for row in details] == [item.text for item in items]
    assert [row.expected for row in details] == [item.expected for item in items]


def test_misses_are_failed_then_found_nowhere_then_the_deepest_found(
    db: Database, run: int
) -> None:
    deep, deeper = (replace(scored(p, 0, 0, 0), first_rank=rank) for p, rank in ((0, 7), (1, 30)))
    store_all(db, run, [deep, deeper, scored(2), scored(3, 0, 0, 0), failed(4)])

    with db.begin() as session:
        missed = results.misses(session, runs.get(session, run).run, limit=10)
        worst = results.misses(session, runs.get(session, run).run, limit=2)

    assert positions(missed) == [4, 3, 1, 0]
    assert positions(worst) == [4, 3]


def test_progress_counts_the_questions_of_finished_shards(db: Database, run: int) -> None:
    def progress() -> runs.Progress:
        with db.begin() as session:
            [found] = runs.progress(session, [run])
        return found

    assert (progress().done, progress().size, progress().claimed) == (0, 5, False)

    hold = claimed(db, run, 0)
    assert (progress().done, progress().claimed) == (0, True)

    store(db, hold, [scored(0), scored(1), scored(2)])
    assert progress().done == 3


COUNTED = "n_scored = 5, n_failed = 0, n_ineligible = 0"
SHORT = "n_scored = 4, n_failed = 0, n_ineligible = 0"
OK = "status = 'completed', verdict = 'ok', finished_at = now()"
REFUSED = [
    ("run_every_question_counted", f"run SET {OK}, {SHORT}"),
    ("run_every_question_counted", f"run SET {OK}"),
    ("run_verdict_when_finished", f"run SET status = 'completed', finished_at = now(), {COUNTED}"),
    ("run_verdict_when_finished", f"run SET status = 'completed', verdict = 'ok', {COUNTED}"),
    ("run_verdict_when_finished", "run SET verdict = 'ok'"),
    ("run_verdict_when_finished", "run SET finished_at = now()"),
    ("run_failed_is_unmeasured", "run SET status = 'failed', verdict = 'ok', finished_at = now()"),
    ("run_status_known", "run SET status = 'paused'"),
    ("run_k_in_range", "run SET k = 0"),
    ("shard_lease_when_leased", "shard SET state = 'leased'"),
    ("shard_lease_when_leased", "shard SET lease_until = now()"),
    ("shard_failed_says_why", "shard SET state = 'failed'"),
    ("shard_slice_not_empty", "shard SET last_position = first_position - 1"),
    ("result_measured_when_scored", "result SET measured = NULL"),
    ("result_error_when_failed", "result SET error = 'why'"),
    ("result_outcome_known", "result SET outcome = 'skipped', measured = NULL"),
]


@pytest.mark.parametrize(("check", "change"), REFUSED)
def test_the_tables_refuse_a_state_that_is_not_drawn(
    db: Database, run: int, check: str, change: str
) -> None:
    store(db, claimed(db, run), [scored(0), scored(1), scored(2)])
    where = " WHERE state = 'pending'" if change.startswith("shard") else ""

    with pytest.raises(IntegrityError, match=f'violates check constraint "{check}"'):
        execute(db, f"UPDATE recallwatch.{change}{where}")

    assert run_of(db, run).status == "queued"


def test_must_pass_questions_are_scored_missed_or_not_to_be_scored(db: Database) -> None:
    import_set(db, [replace(question, must_pass=n < 4) for n, question in enumerate(questions(5))])
    run_id = start_run(db)
    store_all(db, run_id, [scored(0), scored(1, 0, 0, 0), failed(2), ineligible(3), failed(4)])

    with db.begin() as session:
        found = runs.get(session, run_id)
        must_pass = results.must_pass(session, found.run, found.version.id)

    assert must_pass == results.MustPass(scored=2, missed=["question 1"], not_scored=2)


@pytest.mark.parametrize(("level", "more"), [("chunk", 1), ("document", 0)])
def test_more_than_k_are_expected_when_so_many_live_ones_are(
    db: Database, level: str, more: int
) -> None:
    import_set(db, [Question("?", {f"d:{n}": 1 for n in range(7)})])
    run_id = start_run(db, {"level": level})
    store_all(db, run_id, [scored(0, missing=["d:0"] if level == "chunk" else [])])

    with db.begin() as session:
        assert results.facts(session, run_id)["more_expected_than_k"] == more

    dead = start_run(db)
    store_all(db, dead, [scored(0, missing=["d:0", "d:1"])])
    with db.begin() as session:
        assert results.facts(session, dead)["more_expected_than_k"] == 0
