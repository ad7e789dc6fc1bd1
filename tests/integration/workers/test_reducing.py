from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Row

from db import results
from db.results import ResultRow
from db.session import Database
from pipeline.types import Question
from tests.integration.db.building import (
    MEASURES,
    claimed,
    execute,
    failed,
    fetch,
    import_set,
    ineligible,
    on_a_database,
    questions,
    run_of,
    scored,
    start_run,
    store,
    store_all,
    together,
)
from tests.integration.workers.working import finished, values
from workers.context import Context
from workers.reducing import reduce

VALUES = st.floats(0, 1)
LABELS = st.sampled_from([None, "a", "b", "c"])


@pytest.fixture
def url(emptied_url: str) -> str:
    """Give the URL of a database without a corpus: nothing here looks at one."""
    return emptied_url


@pytest.fixture
def name(db: Database) -> str:
    """Give the name of a golden set of four questions."""
    import_set(db, questions(4), "four")
    return "four"


def record(db: Database, run_id: int) -> object:
    return fetch(db, "SELECT to_jsonb(r) FROM recallwatch.run r WHERE id = :run", {"run": run_id})


def test_a_run_with_a_shard_missing_is_left_alone(ctx: Context, db: Database, name: str) -> None:
    run_id = start_run(db, set_name=name, shard_size=2)
    store(db, claimed(db, run_id, 0), [scored(0), scored(1)])
    claimed(db, run_id, 1)
    before = record(db, run_id)

    assert not reduce(ctx, run_id)

    assert record(db, run_id) == before


def test_a_run_with_a_result_missing_fails_and_has_no_score(
    ctx: Context, db: Database, name: str
) -> None:
    run_id = start_run(db, set_name=name)
    store_all(db, run_id, [scored(p) for p in range(4)])
    one_of_it = "DELETE FROM recallwatch.result WHERE run_id = :run AND position = 2"
    execute(db, one_of_it, {"run": run_id})

    assert not reduce(ctx, run_id)

    run = run_of(db, run_id)
    assert (run.status, run.verdict, run.metrics) == ("failed", "unmeasured", None)
    assert run.reasons is not None
    assert run.reasons[0].startswith("1 of 4 results are missing though every shard is done")


def test_a_run_with_an_open_shard_is_left_alone_whatever_results_there_are(
    ctx: Context, db: Database, name: str
) -> None:
    run_id = start_run(db, set_name=name)
    store_all(db, run_id, [scored(p) for p in range(4)])
    execute(db, "UPDATE recallwatch.shard SET state = 'leased', lease_until = now()")

    assert not reduce(ctx, run_id)


def test_a_run_that_does_not_exist_or_failed_is_left_alone(
    ctx: Context, db: Database, name: str
) -> None:
    run_id = start_run(db, set_name=name)
    store_all(db, run_id, [scored(p) for p in range(4)])
    execute(
        db,
        "UPDATE recallwatch.run SET status = 'failed', verdict = 'unmeasured',"
        " finished_at = now(), reasons = ARRAY['overdue']",
    )

    assert not reduce(ctx, run_id)
    assert not reduce(ctx, run_id + 1)
    assert run_of(db, run_id).reasons == ["overdue"]


def test_reducing_twice_changes_nothing(ctx: Context, db: Database, name: str) -> None:
    run = finished(ctx, name, [scored(p) for p in range(4)])
    before = record(db, run.id)

    assert not reduce(ctx, run.id)

    assert record(db, run.id) == before


def test_of_reducers_at_once_one_writes(ctx: Context, db: Database, name: str) -> None:
    for _ in range(5):
        run_id = start_run(db, set_name=name)
        store_all(db, run_id, [scored(p) for p in range(4)])

        assert sorted(together(*[partial(reduce, ctx, run_id)] * 3)) == [False, False, True]


@st.composite
def labelled_results(draw: st.DrawFn) -> tuple[list[Question], list[ResultRow]]:
    """Draw questions with a category and a tenant, and a result for each."""
    asked, rows = [], []
    for position, question in enumerate(questions(draw(st.integers(1, 12)))):
        asked.append(replace(question, category=draw(LABELS), tenant=draw(LABELS)))
        values = draw(st.tuples(VALUES, VALUES, VALUES))
        rows.append(
            draw(
                st.sampled_from(
                    [scored(position, *values), scored(position, *values), failed(position),
                     ineligible(position)]
                )
            )
        )  # fmt: skip
    return asked, rows


@on_a_database
@given(drawn=labelled_results())
def test_means_are_numpys_over_the_exported_values(
    ctx: Context, db: Database, drawn: tuple[list[Question], list[ResultRow]]
) -> None:
    asked, rows = drawn
    name = uuid4().hex
    import_set(db, asked, name)
    run = finished(ctx, name, rows, max_failed=1.0)
    with db.begin() as session:
        exported = list(results.details(session, run.id))

    assert (run.n_scored, run.n_failed, run.n_ineligible) == counts(exported)
    assert run.metrics == pytest.approx(means(exported), abs=1e-12)
    for column, groups in (("category", run.by_category), ("tenant", run.by_tenant)):
        labels = {getattr(row, column) for row in exported} - {None}
        assert groups is not None
        assert groups.keys() == labels
        for label in labels:
            some = [row for row in exported if getattr(row, column) == label]
            group = groups[label]
            assert (group["scored"], group["failed"], group["ineligible"]) == counts(some)
            assert group["metrics"] == pytest.approx(means(some), abs=1e-12)


def counts(exported: Sequence[Row[tuple[object, ...]]]) -> tuple[int, int, int]:
    outcomes = [row.outcome for row in exported]
    return outcomes.count("scored"), outcomes.count("failed"), outcomes.count("ineligible")


def means(exported: Sequence[Row[tuple[object, ...]]]) -> dict[str, float]:
    values = np.array([row.measured for row in exported if row.outcome == "scored"])
    if not len(values):
        return {}
    return dict(zip(MEASURES, values.mean(axis=0).tolist(), strict=True))


def test_the_first_run_is_the_baseline(ctx: Context, name: str) -> None:
    run = finished(ctx, name, [scored(p) for p in range(4)])

    assert (run.status, run.verdict, run.compared_to) == ("completed", "baseline", None)
    assert run.comparison is None
    assert run.finished_at is not None


@pytest.mark.parametrize(
    ("before", "after", "max_drop", "verdict"),
    [
        ((1, 1, 1, 1), (1, 1, 1, 1), 0.02, "ok"),
        ((1, 1, 1, 1), (1, 1, 1, 0), 0.02, "regressed"),
        ((1, 1, 1, 1), (1, 1, 1, 0), 0.25, "ok"),
        ((1, 1, 1, 0), (1, 1, 1, 1), 0.02, "improved"),
        ((1, 1, 0, 0), (0, 0, 1, 1), 0.0, "ok"),
        ((0.91, 0.91, 0.91, 0.91), (0.89, 0.89, 0.89, 0.89), 0.02, "ok"),
    ],
)
def test_a_run_is_judged_against_the_one_before(
    ctx: Context,
    name: str,
    before: Sequence[float],
    after: Sequence[float],
    max_drop: float,
    verdict: str,
) -> None:
    reference = finished(ctx, name, list(values(*before)))

    run = finished(ctx, name, list(values(*after)), max_drop=max_drop)

    assert (run.verdict, run.compared_to) == (verdict, reference.id)
    assert run.reasons
    assert run.comparison is not None
    assert run.comparison["pairing"]["shared"] == 4


def test_a_run_that_shares_too_little_is_incomparable_and_the_next_reference(
    ctx: Context, db: Database, name: str
) -> None:
    finished(ctx, name, list(values(1, 1, 1, 1)))
    other = [Question(f"another {n}", {"d:0": 1}) for n in range(3)]
    import_set(db, [*questions(1), *other], name, replace=True)

    run = finished(ctx, name, list(values(0, 0, 0, 0)))

    assert run.verdict == "incomparable"
    assert finished(ctx, name, list(values(0, 0, 0, 0))).compared_to == run.id


def test_exactly_max_failed_of_the_questions_may_fail(ctx: Context, name: str) -> None:
    rows = [*values(1, 1, 1), failed(3)]

    assert finished(ctx, name, rows, max_failed=0.25).verdict == "baseline"
    assert finished(ctx, name, rows, max_failed=0.24).verdict == "unmeasured"


def test_an_unmeasured_run_says_why_and_is_no_reference(ctx: Context, name: str) -> None:
    first = finished(ctx, name, list(values(1, 1, 1, 1)))

    broken = finished(ctx, name, [*values(0, 0), failed(2, "the server is gone"), failed(3, "x")])
    after = finished(ctx, name, list(values(1, 1, 1, 1)))

    assert (broken.status, broken.verdict, broken.compared_to) == ("completed", "unmeasured", None)
    assert broken.reasons is not None
    assert "2 of 4 questions failed" in broken.reasons[0]
    assert broken.reasons[0].endswith("; first error: the server is gone")
    assert (after.verdict, after.compared_to) == ("ok", first.id)


def test_a_failed_question_is_left_out_and_never_a_miss(ctx: Context, name: str) -> None:
    finished(ctx, name, list(values(1, 1, 1, 1)))

    run = finished(ctx, name, [*values(1, 1, 1), failed(3)], max_failed=0.25)

    assert run.metrics == dict.fromkeys(MEASURES, 1.0)
    assert run.verdict == "ok"
    assert run.comparison is not None
    assert run.comparison["pairing"]["unscored"] == 1


def test_a_run_without_a_question_to_score_is_unmeasured(ctx: Context, name: str) -> None:
    run = finished(ctx, name, [ineligible(p) for p in range(4)])

    assert (run.verdict, run.metrics) == ("unmeasured", {})


def test_times_and_costs_are_those_of_all_shards(ctx: Context, db: Database, name: str) -> None:
    run_id = start_run(db, set_name=name, shard_size=2)
    for number in (0, 1):
        hold = claimed(db, run_id, number)
        rows = [scored(p) for p in range(hold.first, hold.last + 1)]
        stats = {"questions": 2, "retrieve_seconds": 0.5, "embedded_texts": 3,
                 "underfilled\nvector\nef_search": 1, "unknown_keys": 2}  # fmt: skip
        with db.begin() as session:
            results.store(session, hold, rows, stats=stats)
    reduce(ctx, run_id)

    run = run_of(db, run_id)
    assert run.latency == {
        "retrieve_seconds": 1.0, "retrieve_ms_per_question": 250.0, "search_ms": None,
    }  # fmt: skip
    assert run.cost == {"embedded_texts": 6}
    assert run.facts is not None
    assert run.facts["underfilled"] == [{"stage": "vector", "cause": "ef_search", "questions": 2}]
    assert (run.facts["unknown_keys"], run.facts["leaks"]) == (4, None)
