"""The outbox: who may post an alert, once, and what becomes of those that nobody closed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from db import alerts, runs
from db.alerts import Claimed
from db.models import Alert
from db.session import Database
from pipeline.errors import UsageError
from pipeline.types import AlertState
from tests.integration.db.building import (
    execute,
    fetch,
    import_set,
    questions,
    start_run,
    together,
)

PAYLOAD = {"kind": "regressed", "reasons": ["it fell"]}
ENDED = [AlertState.SENT, AlertState.FAILED, AlertState.UNKNOWN]


@pytest.fixture
def run(db: Database) -> int:
    import_set(db, questions(2))
    return start_run(db)


@pytest.fixture
def alert(db: Database, run: int) -> int:
    """Give an alert that waits for a worker."""
    return add(db, run)[0]


def add(
    db: Database, run_id: int, channels: Sequence[str] = ("team",), kind: str = "regressed"
) -> list[int]:
    with db.begin() as session:
        return alerts.add(session, run_id, kind, dict.fromkeys(channels, PAYLOAD))


def claim(db: Database, alert_id: int) -> Claimed | None:
    with db.begin() as session:
        return alerts.claim(session, alert_id)


def claimed(db: Database, alert_id: int) -> Claimed:
    found = claim(db, alert_id)
    assert found is not None
    return found


def close(db: Database, hold: Claimed, state: AlertState, **more: Any) -> bool:  # noqa: ANN401 - close's options
    with db.begin() as session:
        return alerts.close(session, hold, state, **more)


def age(db: Database) -> int:
    with db.begin() as session:
        return alerts.age(session)


def resend(db: Database, alert_id: int) -> None:
    with db.begin() as session:
        alerts.resend(session, alert_id)


def stored(db: Database, alert_id: int) -> Alert:
    with db.begin() as session:
        return session.get_one(Alert, alert_id)


def later(db: Database, column: str, seconds: float) -> None:
    """Move a time of every alert into the past, as if so many seconds had gone by."""
    execute(
        db,
        f"UPDATE recallwatch.alert SET {column} = {column} - make_interval(secs => :s)",  # noqa: S608 - a column of ours
        {"s": seconds},
    )


def end(db: Database, alert_id: int, state: AlertState) -> None:
    assert close(db, claimed(db, alert_id), state, error="why")


def test_a_run_has_one_alert_a_channel_and_kind(db: Database, run: int) -> None:
    first = add(db, run, ["team", "pager"])

    assert len(first) == 2
    assert add(db, run, ["team", "pager"]) == []
    assert len(add(db, run, ["team", "mail"])) == 1
    assert len(add(db, run, ["team"], kind="recovered")) == 1
    assert stored(db, first[0]).payload == PAYLOAD
    assert [stored(db, alert_id).channel for alert_id in first] == ["team", "pager"]


def test_without_a_channel_nothing_is_written(db: Database, run: int) -> None:
    assert add(db, run, []) == []
    assert fetch(db, "SELECT count(*) FROM recallwatch.alert") == [0]


def test_a_claim_hands_over_the_payload_and_is_the_only_one(db: Database, alert: int) -> None:
    assert claim(db, alert) == Claimed(alert, "team", PAYLOAD, attempt=1)
    assert claim(db, alert) is None
    assert claim(db, alert + 1) is None
    assert stored(db, alert).state == AlertState.CLAIMED


def test_of_ten_claims_at_once_one_gets_the_alert(db: Database, alert: int) -> None:
    found = together(*[lambda: claim(db, alert)] * 10)

    assert [hold.attempt for hold in found if hold] == [1]


def test_an_alert_that_has_to_wait_is_not_to_be_had_before_its_time(
    db: Database, alert: int
) -> None:
    assert close(db, claimed(db, alert), AlertState.PENDING, error="429", wait=60)
    wait = stored(db, alert).next_at - datetime.now(UTC)

    assert 50 < wait.total_seconds() <= 60
    assert claim(db, alert) is None
    later(db, "next_at", 61)
    assert claimed(db, alert).attempt == 2


def test_what_became_of_an_alert_is_stored_and_final(db: Database, run: int) -> None:
    for alert, state in zip(add(db, run, ["a", "b", "c"]), ENDED, strict=True):
        end(db, alert, state)

        row = stored(db, alert)
        assert (row.state, row.error, row.attempts) == (state, "why", 1)
        assert (row.sent_at is not None) == (state is AlertState.SENT)
        assert claim(db, alert) is None
    later(db, "claimed_at", 10 * alerts.GIVE_UP_AFTER)
    later(db, "created_at", 10 * alerts.GIVE_UP_AFTER)
    assert age(db) == 0


def test_a_claim_is_closed_once(db: Database, alert: int) -> None:
    hold = claimed(db, alert)

    assert close(db, hold, AlertState.SENT)
    assert not close(db, hold, AlertState.PENDING, error="again", wait=0)
    assert stored(db, alert).state == AlertState.SENT


def test_a_claim_that_nobody_closed_is_unknown_when_its_time_is_over(
    db: Database, alert: int
) -> None:
    hold = claimed(db, alert)
    later(db, "claimed_at", alerts.CLAIM_LASTS - 60)
    assert age(db) == 0
    later(db, "claimed_at", 61)

    assert age(db) == 1

    said = stored(db, alert)
    assert said.state == AlertState.UNKNOWN
    assert "may or may not have arrived" in (said.error or "")
    # A worker that comes back now has nothing to say any more.
    assert not close(db, hold, AlertState.SENT)
    assert stored(db, alert).error == said.error
    assert claim(db, alert) is None


def test_a_worker_that_comes_back_cannot_close_the_claim_that_followed_a_resend(
    db: Database, alert: int
) -> None:
    lost = claimed(db, alert)
    later(db, "claimed_at", alerts.CLAIM_LASTS + 1)
    age(db)
    resend(db, alert)
    hold = claimed(db, alert)

    assert not close(db, lost, AlertState.PENDING, error="refused", wait=0)

    assert stored(db, alert).state == AlertState.CLAIMED
    assert close(db, hold, AlertState.SENT)


def test_an_alert_that_was_tried_in_vain_for_a_day_is_failed_with_the_last_reason(
    db: Database, alert: int
) -> None:
    close(db, claimed(db, alert), AlertState.PENDING, error="429 from the server", wait=0)
    later(db, "created_at", alerts.GIVE_UP_AFTER - 60)
    assert age(db) == 0
    later(db, "created_at", 61)

    assert age(db) == 1

    row = stored(db, alert)
    assert (row.state, row.error) == ("failed", "not delivered within a day: 429 from the server")


def test_an_alert_that_no_worker_took_within_a_day_is_failed_and_says_so(
    db: Database, alert: int
) -> None:
    later(db, "created_at", alerts.GIVE_UP_AFTER - 60)
    assert age(db) == 0
    later(db, "created_at", 61)

    assert age(db) == 1

    row = stored(db, alert)
    assert (row.state, row.error) == ("failed", "not delivered within a day: no worker took it")
    assert claim(db, alert) is None


def test_due_are_those_that_wait_for_a_worker_oldest_first(db: Database, run: int) -> None:
    waiting, working, postponed, done, last = add(db, run, ["a", "b", "c", "d", "e"])
    claimed(db, working)
    close(db, claimed(db, postponed), AlertState.PENDING, error="429", wait=60)
    end(db, done, AlertState.SENT)

    with db.begin() as session:
        assert alerts.due(session) == [waiting, last]


def test_on_their_way_are_those_that_are_posted_or_about_to_be(db: Database, run: int) -> None:
    _, working, postponed, done = add(db, run, ["a", "b", "c", "d"])
    claimed(db, working)
    close(db, claimed(db, postponed), AlertState.PENDING, error="429", wait=60)
    end(db, done, AlertState.SENT)
    add(db, start_run(db))

    with db.begin() as session:
        assert alerts.on_their_way(session, [run]) == 2
        assert alerts.on_their_way(session, []) == 0


def test_a_person_can_have_an_alert_go_out_again(db: Database, run: int) -> None:
    ended = add(db, run, ["a", "b", "c"])
    for alert, state in zip(ended, ENDED, strict=True):
        end(db, alert, state)
    for alert in ended:
        later(db, "created_at", 10 * alerts.GIVE_UP_AFTER)

        resend(db, alert)

        row = stored(db, alert)
        assert (row.state, row.error, row.sent_at) == ("pending", None, None)
        assert age(db) == 0
        assert claim(db, alert) is not None


def test_what_is_on_its_way_or_not_there_cannot_be_sent_again(db: Database, alert: int) -> None:
    def refused(alert_id: int) -> None:
        with pytest.raises(UsageError, match=f"alert {alert_id} is not there or still on its way"):
            resend(db, alert_id)

    refused(alert + 1)
    refused(alert)
    claimed(db, alert)
    refused(alert)


def test_of_two_people_who_resend_at_once_one_does(db: Database, alert: int) -> None:
    end(db, alert, AlertState.UNKNOWN)

    def try_it() -> bool:
        try:
            resend(db, alert)
        except UsageError:
            return False
        return True

    assert sorted(together(try_it, try_it)) == [False, True]


def test_the_newest_are_listed_first_and_counted_by_state(db: Database, run: int) -> None:
    ids = add(db, run, ["a", "b", "c"])
    end(db, ids[0], AlertState.SENT)

    with db.begin() as session:
        assert [row.id for row in alerts.recent(session, limit=2)] == [ids[2], ids[1]]
        assert [row.id for row in alerts.recent(session, limit=2, state=AlertState.SENT)] == ids[:1]
        assert alerts.counts(session, days=7) == {AlertState.PENDING: 2, AlertState.SENT: 1}
    execute(
        db,
        "UPDATE recallwatch.alert SET created_at = now() - interval '8 days' WHERE id <> :id",
        {"id": ids[1]},
    )
    with db.begin() as session:
        assert alerts.counts(session, days=7) == {AlertState.PENDING: 1}


@pytest.mark.usefixtures("alert")
def test_the_table_refuses_what_must_not_be(db: Database) -> None:
    for change, constraint in (
        ("state = 'lost'", "alert_state_known"),
        ("state = 'sent'", "alert_sent_when_sent"),
        ("sent_at = now()", "alert_sent_when_sent"),
        ("state = 'claimed'", "alert_claimed_when_claimed"),
        ("state = 'failed'", "alert_failed_says_why"),
        ("state = 'unknown'", "alert_failed_says_why"),
    ):
        with pytest.raises(IntegrityError, match=constraint):
            execute(db, f"UPDATE recallwatch.alert SET {change}")  # noqa: S608 - of this test


def test_alerts_go_with_their_run(db: Database, run: int, alert: int) -> None:
    execute(db, "DELETE FROM recallwatch.run WHERE id = :run", {"run": run})

    assert claim(db, alert) is None
    with db.begin() as session, pytest.raises(UsageError):
        runs.get(session, run)
