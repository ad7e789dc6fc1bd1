"""Which earlier run a run is compared with."""

from typing import Any

import pytest

from db import run_states, runs
from db.session import Database
from pipeline.errors import UsageError
from pipeline.types import Verdict
from tests.integration.db.building import end_run, execute, import_set, questions, start_run


def finished(
    db: Database, changes: dict[str, Any] | None = None, *, set_name: str = "default"
) -> int:
    return end_run(db, start_run(db, changes, set_name=set_name))


def reference(db: Database, run_id: int) -> int | None:
    with db.begin() as session:
        found = runs.find_reference(session, runs.get(session, run_id))
        return None if found is None else found.id


@pytest.fixture(autouse=True)
def sets(db: Database) -> None:
    import_set(db, questions(2))
    import_set(db, questions(2), "other")


def test_the_reference_is_the_last_measured_run_before(db: Database) -> None:
    first = finished(db)
    second = finished(db)
    run_id = start_run(db)
    finished(db)

    assert reference(db, run_id) == second
    assert reference(db, second) == first
    assert reference(db, first) is None


@pytest.mark.parametrize(
    "other",
    [
        {"k": 10, "measures": ["hit@10"]},
        {"level": "document"},
        {"strategy": "fulltext"},
        {"convention": "rw-2"},
        {"relevance_threshold": 2},
    ],
)
def test_a_run_that_measured_something_else_is_no_reference(
    db: Database, other: dict[str, Any]
) -> None:
    like = finished(db)
    finished(db, other)

    assert reference(db, start_run(db)) == like
    assert reference(db, start_run(db, other)) == like + 1


def test_a_run_of_another_set_is_no_reference(db: Database) -> None:
    finished(db, set_name="other")

    assert reference(db, start_run(db)) is None


@pytest.mark.parametrize(
    ("status", "verdict"), [("failed", Verdict.UNMEASURED), ("completed", Verdict.UNMEASURED)]
)
def test_an_unmeasured_run_is_no_reference(db: Database, status: str, verdict: str) -> None:
    like = finished(db)
    end_run(db, start_run(db), verdict, status)
    start_run(db)

    assert reference(db, start_run(db)) == like


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.UNMEASURED])
def test_every_measured_run_is_a_reference(db: Database, verdict: str) -> None:
    run_id = end_run(db, start_run(db), verdict)

    assert reference(db, start_run(db)) == run_id


def test_the_reference_may_have_measured_another_version_with_other_settings(
    db: Database,
) -> None:
    before = finished(db, {"embedding_model": "older"})
    import_set(db, questions(3))

    assert reference(db, start_run(db)) == before


def test_recent_runs_are_listed_newest_first_by_set_and_strategy(db: Database) -> None:
    vector, other = start_run(db), start_run(db, set_name="other")
    fulltext = start_run(db, {"strategy": "fulltext"})

    with db.begin() as session:
        every = runs.recent(session)
        newest = runs.recent(session, limit=1)
        of_set = runs.recent(session, set_name="default")
        of_both = runs.recent(session, set_name="default", strategy="vector")

    found = [[context.run.id for context in some] for some in (every, newest, of_set, of_both)]
    assert found == [[fulltext, other, vector], [fulltext], [fulltext, vector], [vector]]


def test_an_unknown_run_is_a_usage_error(db: Database) -> None:
    with db.begin() as session, pytest.raises(UsageError, match="no run 99"):
        runs.get(session, 99)


def test_overdue_runs_are_those_past_their_deadline(db: Database) -> None:
    run_id, late = start_run(db), start_run(db)
    execute(db, "UPDATE recallwatch.run SET deadline_at = now() WHERE id = :run", {"run": late})

    with db.begin() as session:
        assert run_states.overdue(session) == [late]
    end_run(db, late)
    with db.begin() as session:
        assert run_states.overdue(session) == []
        assert [run.id for run in runs.of_batch(session, runs.get(session, run_id).batch.id)] == [
            run_id
        ]
