"""Requests to a model: the cap is never passed, and what was paid for is never sent again."""

from datetime import timedelta
from typing import Any

import pytest

from db import (
    forgotten_requests,
    generation_requests,
    generation_resuming,
    generations,
    message_batches,
)
from db.generation_requests import Claim, Leave
from db.session import Database
from pipeline.errors import InputError
from pipeline.generation.base import Ask
from tests.integration.db.building import execute, fetch, together
from tests.integration.db.generating import (
    ATTEMPTS,
    LEASE,
    answer,
    answered,
    asked,
    asks,
    chunk,
    claim,
    claimed,
    create,
    expire,
    field,
    leave,
    plan,
    spent,
    states,
    status,
    store,
    unanswerable,
)


def look_after(db: Database, generation_id: int) -> str | None:
    with db.begin() as session:
        return forgotten_requests.look_after(session, generation_id)


def resume(
    db: Database, generation_id: int, *, ask_again: bool = False, max_cost: float | None = None
) -> str:
    with db.begin() as session:
        return generation_resuming.resume(
            session, generation_id, ask_again=ask_again, max_cost=max_cost,
            deadline=timedelta(hours=1),
        ).status  # fmt: skip


def put_back(db: Database, hold: Claim, *, wait: float = 0, counted: bool = True) -> bool:
    with db.begin() as session:
        return generation_requests.put_back(session, hold, error="429", wait=wait, counted=counted)


def stop(db: Database, generation_id: int, reason: str = "no key") -> str | None:
    with db.begin() as session:
        return generation_requests.stop(session, generation_id, reason)


def due(db: Database) -> list[int]:
    with db.begin() as session:
        return [each.number for each in forgotten_requests.due(session, quiet=0, limit=100)]


def test_a_claimed_request_is_nobody_elses(db: Database) -> None:
    generation_id = create(db, asks(2))

    assert claimed(db, generation_id).ask == asks(2)[0]
    assert claim(db, generation_id) is None
    assert claim(db, generation_id, 2) is not None


def test_several_are_claimed_at_once_in_order(db: Database) -> None:
    generation_id = create(db, asks(4))
    with db.begin() as session:
        claims = generation_requests.claim(session, generation_id, limit=3, lease=LEASE)

    assert [each.number for each in claims] == [1, 2, 3]


def test_a_request_that_was_never_sent_is_claimed_again_when_its_worker_died(db: Database) -> None:
    generation_id = create(db, asks(1))
    first = claimed(db, generation_id)
    expire(db)

    second = claimed(db, generation_id)

    assert (second.token, second.attempt) == (first.token + 1, 2)
    assert leave(db, first) is Leave.LOST, "the first worker may not send it any more"
    assert spent(db, generation_id) == 0


def test_a_request_that_was_sent_is_never_claimed_again(db: Database) -> None:
    generation_id = create(db, asks(1))
    asked(db, generation_id)
    expire(db)

    assert claim(db, generation_id) is None
    assert due(db) == []


def test_one_whose_worker_died_after_it_was_sent_is_unknown_and_stays_spent(db: Database) -> None:
    generation_id = create(db, asks(1))
    asked(db, generation_id, cost=0.25)
    assert look_after(db, generation_id) is None, "its answer may still come"
    expire(db)

    assert look_after(db, generation_id) == "failed"

    assert states(db, generation_id) == ["unknown"]
    assert spent(db, generation_id) == 0.25
    assert "may have been paid for" in field(db, generation_id, "error")


def test_an_answer_puts_right_what_was_reserved(db: Database) -> None:
    generation_id = create(db, asks(2), max_cost=0.30)
    hold = asked(db, generation_id, cost=0.25)
    assert leave(db, claimed(db, generation_id, 2), 0.25) is Leave.NO_ROOM

    store(db, hold, answer("q?"), cost=0.04)

    assert spent(db, generation_id) == pytest.approx(0.04)
    expire(db)
    assert leave(db, claimed(db, generation_id, 2), 0.25) is Leave.GRANTED


def test_a_cap_without_room_and_nothing_under_way_is_used_up(db: Database) -> None:
    generation_id = create(db, asks(1), max_cost=0.1)

    assert leave(db, claimed(db, generation_id), 0.2) is Leave.USED_UP
    assert spent(db, generation_id) == 0


def test_of_requests_at_once_as_many_are_let_through_as_the_cap_holds(db: Database) -> None:
    generation_id = create(db, asks(8), max_cost=0.5)
    holds = [claimed(db, generation_id, number) for number in range(1, 9)]

    leaves = together(*[lambda hold=hold: leave(db, hold, 0.1) for hold in holds])

    assert leaves.count(Leave.GRANTED) == 5
    assert spent(db, generation_id) == pytest.approx(0.5)


def test_storing_an_answer_twice_changes_nothing(db: Database) -> None:
    generation_id = create(db, asks(2))
    hold = asked(db, generation_id)
    store(db, hold, answer("q?"))
    before = (spent(db, generation_id), fetch(db, "SELECT * FROM recallwatch.candidate"))

    assert store(db, hold, answer("another?")) is None

    assert (spent(db, generation_id), fetch(db, "SELECT * FROM recallwatch.candidate")) == before


def test_an_answer_that_comes_after_it_was_given_up_is_stored(db: Database) -> None:
    generation_id = create(db, asks(1))
    hold = asked(db, generation_id, cost=0.25)
    expire(db)
    look_after(db, generation_id)
    assert status(db, generation_id) == "failed"

    assert store(db, hold, answer("late?"), cost=0.04) == "screening"

    assert states(db, generation_id) == ["answered"]
    assert spent(db, generation_id) == pytest.approx(0.04)


def test_what_was_not_billed_is_pending_again_and_its_money_free(db: Database) -> None:
    generation_id = create(db, asks(1))
    hold = asked(db, generation_id, cost=0.25)

    assert put_back(db, hold, wait=30)

    assert (spent(db, generation_id), states(db, generation_id)) == (0, ["pending"])
    assert claim(db, generation_id) is None, "it waits"
    expire(db)
    assert claimed(db, generation_id).attempt == 2


def test_patience_that_a_server_asked_for_uses_up_no_attempt(db: Database) -> None:
    generation_id = create(db, asks(1))
    for _ in range(ATTEMPTS + 2):
        assert put_back(db, asked(db, generation_id), counted=False)

    assert claimed(db, generation_id).attempt == 1


def test_a_request_out_of_attempts_fails_and_says_why(db: Database) -> None:
    generation_id = create(db, asks(1))
    for _ in range(ATTEMPTS):
        put_back(db, asked(db, generation_id))
    assert claim(db, generation_id) is None

    assert look_after(db, generation_id) == "failed"

    assert field(db, generation_id, "error") == "3 attempts failed: 429"


def test_when_the_last_request_is_over_the_candidates_are_to_be_filtered(db: Database) -> None:
    generation_id = create(db, asks(2))

    assert answered(db, generation_id, 1) is None
    assert answered(db, generation_id, 2) == "screening"


def test_a_generation_whose_answers_hold_no_question_is_completed(db: Database) -> None:
    generation_id = create(db, asks(1))

    hold = asked(db, generation_id)
    assert store(db, hold, answer(refusal="the model would not")) == "completed"

    assert states(db, generation_id) == ["refused"]
    assert spent(db, generation_id) == pytest.approx(0.04), "it was paid for"


def test_a_stopped_generation_sends_no_more_and_keeps_what_it_has(db: Database) -> None:
    generation_id = create(db, asks(4))
    answered(db, generation_id, 1)
    under_way, held = asked(db, generation_id, 2), claimed(db, generation_id, 3)

    assert stop(db, generation_id) is None

    assert states(db, generation_id) == ["answered", "asked", "failed", "failed"]
    assert leave(db, held) is Leave.LOST
    assert store(db, under_way, answer("second?")) == "screening"
    assert field(db, generation_id, "error") == "no key"


def test_past_its_deadline_nothing_more_is_sent(db: Database) -> None:
    generation_id = create(db, asks(2), deadline=timedelta(seconds=-1))

    assert look_after(db, generation_id) == "failed"

    assert "deadline" in field(db, generation_id, "error")


def test_drafts_become_candidates_that_expect_the_chunks_they_need(db: Database) -> None:
    both = Ask([chunk("a:1", tenant="acme", language="de"), chunk("b:7", tenant="acme")], ["x"])
    generation_id = create(db, [both, unanswerable("c:1")])
    answered(db, generation_id, 1, "one?")
    answered(db, generation_id, 2, "none?")

    rows = fetch(db, "SELECT text, expected, kind, category, tenant, language"
                     " FROM recallwatch.candidate ORDER BY number")  # fmt: skip

    assert rows == [
        ("one?", {"a:1": 1}, "answerable", "factual", "acme", "de"),
        ("none?", {}, "unanswerable", "factual", None, None),
    ]


def test_cancelled_nothing_is_claimed_and_a_late_answer_is_kept_for_a_resume(db: Database) -> None:
    generation_id = create(db, asks(2))
    hold = asked(db, generation_id)
    with db.begin() as session:
        assert generations.cancel(session, generation_id) == []

    assert claim(db, generation_id, 2) is None
    assert store(db, hold, answer("q?")) is None
    assert status(db, generation_id) == "cancelled"

    assert resume(db, generation_id) == "running"
    assert states(db, generation_id) == ["answered", "pending"]


def test_what_is_over_cannot_be_cancelled(db: Database) -> None:
    generation_id = create(db, asks(1))
    stop(db, generation_id)

    with db.begin() as session, pytest.raises(InputError, match="failed already"):
        generations.cancel(session, generation_id)


def test_resuming_sends_what_failed_and_never_what_may_have_been_paid_for(db: Database) -> None:
    generation_id = create(db, asks(3), max_cost=1)
    asked(db, generation_id, 1, cost=0.3)
    expire(db)
    look_after(db, generation_id)
    stop(db, generation_id)

    assert resume(db, generation_id, max_cost=2) == "running"

    assert states(db, generation_id) == ["unknown", "pending", "pending"]
    assert (spent(db, generation_id), field(db, generation_id, "max_cost")) == (0.3, 2)


def test_asked_again_what_it_may_have_cost_before_stays_spent(db: Database) -> None:
    generation_id = create(db, asks(1))
    first = asked(db, generation_id, cost=0.3)
    expire(db)
    look_after(db, generation_id)
    with pytest.raises(InputError, match="--ask-again"):
        resume(db, generation_id)

    resume(db, generation_id, ask_again=True)
    assert store(db, first, answer("late?")) is None, "another worker may ask it by now"
    answered(db, generation_id)

    assert spent(db, generation_id) == pytest.approx(0.34)
    assert fetch(db, "SELECT cost FROM recallwatch.generation_request") == [pytest.approx(0.34)]


def test_due_are_requests_whose_message_was_lost_once_in_a_while(db: Database) -> None:
    generation_id = create(db, asks(3))
    asked(db, generation_id, 1)

    assert due(db) == [2, 3]
    with db.begin() as session:
        assert forgotten_requests.due(session, quiet=60, limit=9) == []


def test_chunks_that_were_asked_for_are_remembered_and_those_never_sent_are_not(
    db: Database,
) -> None:
    generation_id = create(db, asks(3))
    answered(db, generation_id, 1)
    stop(db, generation_id)
    create(db, [Ask([chunk("new:1")], ["x"])])
    create(db, [Ask([chunk("other:1")], ["x"])], set_name="other")

    with db.begin() as session:
        found = generation_requests.asked_chunks(session, "default")
    assert {each.key for each in found} == {"d:1", "new:1"}
    assert chunk("d:1") in found


def test_a_generation_without_a_cap_or_with_settings_of_its_own_counts_its_attempts(
    db: Database,
) -> None:
    settings = plan()
    settings["generation"]["attempts"] = 1
    generation_id = create(db, asks(1), settings=settings)
    put_back(db, asked(db, generation_id, cost=1000))

    assert claim(db, generation_id) is None


def test_the_database_refuses_a_sent_request_that_nobody_looks_after(db: Database) -> None:
    create(db, asks(1))

    with pytest.raises(Exception, match="asked_is_looked_after"):
        execute(db, "UPDATE recallwatch.generation_request SET state = 'asked'")


def again(**changes: object) -> dict[str, Any]:
    return plan(again=True, **changes)


@pytest.mark.parametrize("over", ["cancelled", "stopped"])
def test_what_another_generation_asked_for_since_is_left_out_by_a_resume(
    db: Database, over: str
) -> None:
    first = create(db, asks(2))
    if over == "stopped":
        stop(db, first)
    else:
        with db.begin() as session:
            generations.cancel(session, first)
    second = create(db, asks(1))
    answered(db, second)

    with db.begin() as session:
        resumed = generation_resuming.resume(
            session, first, ask_again=False, max_cost=None, deadline=timedelta(hours=1)
        )

    assert resumed.left_out == 1
    assert states(db, first) == ["failed", "pending"]
    answered(db, first, 2)
    with pytest.raises(InputError, match=r"1 request: another generation .* asked for its chunks"):
        resume(db, create_stopped_beside(db))


def create_stopped_beside(db: Database) -> int:
    """Return a generation of one request, which failed, and whose chunk another one has since."""
    generation_id = create(db, [Ask([chunk("shared:1")], ["x"])])
    stop(db, generation_id)
    answered(db, create(db, [Ask([chunk("shared:1")], ["x"])]))
    return generation_id


def test_a_generation_that_was_to_ask_for_the_same_chunks_again_does(db: Database) -> None:
    generation_id = create(db, asks(1), settings=again())
    stop(db, generation_id)
    answered(db, create(db, asks(1)))

    assert resume(db, generation_id) == "running"


def test_asked_again_a_message_batch_is_looked_at_before_anything_is_sent(db: Database) -> None:
    generation_id = create(db, asks(3), message_batches=True)
    holds = [asked(db, generation_id, number) for number in (1, 2, 3)]
    with db.begin() as session:
        message_batches.note(session, holds[:1], "batch_1")
        message_batches.note(session, holds[1:2], "batch_2")
        generation_requests.give_up(session, holds[0], "late")
        generation_requests.give_up(session, holds[1], "it is gone", batch_gone=True)
        generation_requests.give_up(session, holds[2], "no id came")

    resume(db, generation_id, ask_again=True)

    assert states(db, generation_id) == ["asked", "pending", "pending"]


def test_not_asked_again_every_message_batch_is_looked_at(db: Database) -> None:
    generation_id = create(db, asks(1), message_batches=True)
    hold = asked(db, generation_id)
    with db.begin() as session:
        message_batches.note(session, [hold], "batch_1")
        generation_requests.give_up(session, hold, "with another key", batch_gone=True)

    resume(db, generation_id)

    assert states(db, generation_id) == ["asked"], "the key may have been put right"
