"""What was told before: to whom, how often in a row, and what nobody took back yet."""

from collections.abc import Sequence
from typing import Any

import pytest

from db import alerts
from db.alerts import Claimed
from db.session import Database
from pipeline.types import AlertState
from tests.integration.db.building import (
    batch_of,
    end_run,
    execute,
    import_set,
    questions,
    start_batch,
    start_run,
)

TEAM = ("team",)
BOTH = ("team", "pager")


@pytest.fixture(autouse=True)
def asked(db: Database) -> None:
    import_set(db, questions(2))


def add(
    db: Database, run_id: int, channels: Sequence[str], kind: str, payload: Any = None  # noqa: ANN401 - JSON
) -> list[int]:  # fmt: skip
    with db.begin() as session:
        return alerts.add(session, run_id, kind, dict.fromkeys(channels, payload or {}))


def ended(
    db: Database,
    verdict: str,
    channels: Sequence[str] = (),
    kind: str | None = None,
    plan: dict[str, Any] | None = None,
) -> int:
    """End a run with a verdict, told to the channels as its kind of alert; return the run."""
    run_id = end_run(db, start_run(db, plan), verdict)
    add(db, run_id, channels, kind or verdict)
    return run_id


def fail_last(db: Database) -> None:
    """Let the newest alert come to nothing."""
    with db.begin() as session:
        newest = alerts.recent(session, limit=1)[0].id
        hold = alerts.claim(session, newest)
        assert isinstance(hold, Claimed)
        alerts.close(session, hold, AlertState.FAILED, error="no such webhook")


def told_in_a_row(db: Database, run_id: int, kind: str) -> dict[str, int]:
    with db.begin() as session:
        return alerts.told_in_a_row(session, run_id, kind, kind)


def unrecovered(db: Database) -> tuple[list[int], set[str]]:
    """Return what a run that starts now would find told as bad, and who knows of it."""
    run_id = start_run(db)
    with db.begin() as session:
        bad = [run.id for run in alerts.unrecovered(session, run_id)]
        return bad, alerts.told_bad(session, run_id)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["regressed"], {}),
        (["ok", "regressed"], {}),
        (["regressed", "regressed", "regressed"], {"team": 2}),
        (["regressed", "ok", "regressed", "regressed"], {"team": 1}),
        (["regressed", "unmeasured", "regressed"], {}),
        (["unmeasured", "unmeasured"], {"team": 1}),
    ],
)
def test_told_in_a_row_counts_since_another_verdict(
    db: Database, verdicts: list[str], expected: dict[str, int]
) -> None:
    *_, last = [ended(db, verdict, () if verdict == "ok" else TEAM) for verdict in verdicts]

    assert told_in_a_row(db, last, verdicts[-1]) == expected


def test_each_channel_is_counted_by_what_it_was_told_itself(db: Database) -> None:
    ended(db, "regressed", TEAM)
    ended(db, "regressed", BOTH)
    fail_last(db)
    ended(db, "regressed")

    # The pager's one did not arrive.
    assert told_in_a_row(db, start_run(db), "regressed") == {"team": 2}


def test_a_run_that_measured_something_else_neither_counts_nor_interrupts(db: Database) -> None:
    first = ended(db, "regressed", TEAM)
    for other in (
        {"k": 10},
        {"level": "document"},
        {"strategy": "fulltext"},
        {"convention": "rw-2"},
        {"relevance_threshold": 2},
    ):
        ended(db, "ok", BOTH, "recovered", other)
        ended(db, "regressed", BOTH, plan=other)
    last = ended(db, "regressed")

    assert told_in_a_row(db, last, "regressed") == {"team": 1}
    assert unrecovered(db) == ([first], {"team"})


def test_what_was_told_as_bad_stays_so_until_its_recovery_is_told(db: Database) -> None:
    ended(db, "regressed")
    assert unrecovered(db) == ([], set())
    fell = ended(db, "regressed", TEAM)
    ended(db, "ok")
    broke = ended(db, "unmeasured", ["pager"])
    assert unrecovered(db) == ([fell, broke], {"team", "pager"})
    ended(db, "ok", TEAM, "recovered")
    assert unrecovered(db) == ([], set())
    again = ended(db, "regressed", TEAM)
    assert unrecovered(db) == ([again], {"team"})


def test_a_run_that_fell_after_it_was_told_as_recovered_is_bad(db: Database) -> None:
    ended(db, "regressed", TEAM)
    back = ended(db, "ok", TEAM, "recovered")
    assert unrecovered(db) == ([], set())
    add(db, back, BOTH, "regressed")
    assert unrecovered(db) == ([back], {"team", "pager"})
    ended(db, "ok", TEAM, "recovered")
    assert unrecovered(db) == ([], set())


def test_a_run_that_fell_before_it_was_told_as_recovered_is_not(db: Database) -> None:
    broke = ended(db, "unmeasured", TEAM)
    add(db, broke, TEAM, "recovered")

    assert unrecovered(db) == ([], set())


def test_an_older_run_that_is_told_as_bad_late_was_over_when_a_newer_one_recovered(
    db: Database,
) -> None:
    late = start_run(db)
    ended(db, "ok", TEAM, "recovered")
    end_run(db, late, "regressed")
    add(db, late, TEAM, "regressed")

    assert unrecovered(db) == ([], set())


def test_what_did_not_arrive_was_not_told(db: Database) -> None:
    ended(db, "regressed", TEAM)
    fail_last(db)

    assert unrecovered(db) == ([], set())


def test_a_channel_was_told_last_that_a_set_is_stale_when_it_was_told_last(db: Database) -> None:
    def told() -> dict[str, tuple[int, float]]:
        with db.begin() as session:
            found = alerts.told_stale(session, "default")
        return {name: (round(each.days), each.share) for name, each in found.items()}

    assert told() == {}
    add(db, start_run(db), BOTH, "golden_stale", {"missing_keys": 2, "expected_keys": 40})
    execute(db, "UPDATE recallwatch.alert SET created_at = created_at - interval '9 days'")
    run_id = end_run(db, start_run(db))
    add(db, run_id, TEAM, "golden_stale", {"missing_keys": 4, "expected_keys": 40})
    import_set(db, questions(1), "other")
    other = start_run(db, set_name="other")
    add(db, other, TEAM, "golden_stale", {"missing_keys": 0, "expected_keys": 0})

    assert told() == {"team": (0, 0.1), "pager": (9, 0.05)}
    fail_last(db)
    with db.begin() as session:
        assert alerts.told_stale(session, "other") == {}


def test_a_batch_has_one_first_run(db: Database) -> None:
    first, second = start_batch(db, {}, {"strategy": "fulltext"})

    with db.begin() as session:
        for run_id in (first, second):
            assert alerts.first_of_batch(session, batch_of(db, run_id)) == first
