"""Runs that a person pinned, and which run is compared with which of them."""

from typing import Any

import pytest

from db import baselines, runs
from db.session import Database
from pipeline.errors import UsageError
from pipeline.types import RunStatus, Verdict
from tests.integration.db.building import end_run, fetch, import_set, questions, start_run


@pytest.fixture(autouse=True)
def sets(db: Database) -> None:
    import_set(db, questions(2))
    import_set(db, questions(2), "other")


def pin(db: Database, run_id: int, by: str | None = "ann") -> int:
    with db.begin() as session:
        baselines.pin(session, runs.get(session, run_id), by=by)
    return run_id


def finished(
    db: Database, changes: dict[str, Any] | None = None, *, set_name: str = "default"
) -> int:
    return end_run(db, start_run(db, changes, set_name=set_name))


def baseline_of(db: Database, run_id: int) -> int | None:
    with db.begin() as session:
        found = baselines.of(session, runs.get(session, run_id))
        return None if found is None else found.id


def listed(db: Database) -> list[tuple[str, str, int, str, int, str | None]]:
    with db.begin() as session:
        return [
            (place.set_name, place.strategy, place.k, place.level, place.run_id, place.pinned_by)
            for place in (pinned.baseline for pinned in baselines.pinned(session))
        ]


def test_each_set_strategy_k_and_level_has_a_pin_of_its_own(db: Database) -> None:
    first = pin(db, finished(db))
    deep = pin(db, finished(db, {"k": 10}), by=None)
    words = pin(db, finished(db, {"strategy": "fulltext", "level": "document"}))
    other = pin(db, finished(db, set_name="other"))

    assert listed(db) == [
        ("default", "fulltext", 5, "document", words, "ann"),
        ("default", "vector", 5, "chunk", first, "ann"),
        ("default", "vector", 10, "chunk", deep, None),
        ("other", "vector", 5, "chunk", other, "ann"),
    ]


def test_a_new_pin_takes_the_place_of_the_one_before(db: Database) -> None:
    first, second = finished(db), finished(db)
    pin(db, first, by="ann")
    before = fetch(db, "SELECT pinned_at FROM recallwatch.baseline")
    pin(db, second, by="bob")

    assert listed(db) == [("default", "vector", 5, "chunk", second, "bob")]
    assert fetch(db, "SELECT pinned_at FROM recallwatch.baseline") > before
    pin(db, second, by="bob")
    assert len(listed(db)) == 1


def test_a_run_that_measured_nothing_cannot_be_pinned(db: Database) -> None:
    for status in (RunStatus.COMPLETED, RunStatus.FAILED):
        run_id = end_run(db, start_run(db), Verdict.UNMEASURED, status)
        with pytest.raises(UsageError, match=f"run {run_id} is unmeasured: it measured nothing"):
            pin(db, run_id)
    with pytest.raises(UsageError, match="is queued"):
        pin(db, start_run(db))
    assert listed(db) == []


def test_every_measured_run_can_be_pinned(db: Database) -> None:
    for verdict in set(Verdict) - {Verdict.UNMEASURED}:
        run_id = pin(db, end_run(db, start_run(db), verdict))

        assert baseline_of(db, start_run(db)) == run_id, verdict


def test_a_pin_can_be_taken_away_once(db: Database) -> None:
    run_id = pin(db, finished(db))

    with db.begin() as session:
        baselines.unpin(session, run_id)

    assert baseline_of(db, start_run(db)) is None
    with db.begin() as session, pytest.raises(UsageError, match=f"run {run_id} is not pinned"):
        baselines.unpin(session, run_id)


def test_a_run_is_never_its_own_baseline(db: Database) -> None:
    assert baseline_of(db, pin(db, finished(db))) is None


def test_a_run_that_measured_something_else_is_no_baseline(db: Database) -> None:
    for other in (
        {"k": 10},
        {"level": "document"},
        {"strategy": "fulltext"},
        {"convention": "rw-2"},
        {"relevance_threshold": 2},
    ):
        pin(db, finished(db, other))

        assert baseline_of(db, start_run(db)) is None, other


def test_the_baseline_does_not_move_with_the_runs_or_the_version(db: Database) -> None:
    pinned = pin(db, finished(db))
    finished(db)
    import_set(db, questions(3))
    finished(db)

    assert baseline_of(db, start_run(db)) == pinned
    assert baseline_of(db, start_run(db, set_name="other")) is None
