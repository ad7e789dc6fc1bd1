"""A batch's money: what is reserved at once never adds up to more than its cap."""

import pytest
from sqlalchemy import text

from db import spending
from db.session import Database
from tests.integration.db.building import execute, import_set, questions, start_run, together


@pytest.fixture
def batch_id(db: Database) -> int:
    import_set(db, questions(3))
    run_id = start_run(db)
    with db.begin() as session:
        query = text("SELECT batch_id FROM recallwatch.run WHERE id = :id")
        return int(session.execute(query, {"id": run_id}).scalar_one())


def cap(db: Database, batch_id: int, max_cost: float) -> None:
    execute(
        db,
        "UPDATE recallwatch.batch SET max_cost = :max_cost WHERE id = :id",
        {"id": batch_id, "max_cost": max_cost},
    )


def reserve(db: Database, batch_id: int, cost: float) -> bool:
    with db.begin() as session:
        return spending.reserve(session, batch_id, cost)


def settle(db: Database, batch_id: int, change: float) -> None:
    with db.begin() as session:
        spending.settle(session, batch_id, change)


def spent(db: Database, batch_id: int) -> float:
    with db.begin() as session:
        return spending.of_batch(session, batch_id)[0]


def test_a_batch_without_a_cap_notes_what_it_spends(db: Database, batch_id: int) -> None:
    assert reserve(db, batch_id, 5.0)
    settle(db, batch_id, -2.0)

    with db.begin() as session:
        assert spending.of_batch(session, batch_id) == (3.0, None)


def test_what_is_above_the_cap_is_refused_and_not_added(db: Database, batch_id: int) -> None:
    cap(db, batch_id, 1.0)

    assert [reserve(db, batch_id, cost) for cost in (0.6, 0.6, 0.4, 0.01)] == [
        True, False, True, False,
    ]  # fmt: skip
    assert spent(db, batch_id) == pytest.approx(1.0)


def test_a_cap_is_reached_in_full_whatever_sums_round_to(db: Database, batch_id: int) -> None:
    cap(db, batch_id, 0.3)

    assert all(reserve(db, batch_id, cost) for cost in (0.1, 0.2)), "0.1 + 0.2 > 0.3"


def test_what_is_given_back_may_be_spent_again(db: Database, batch_id: int) -> None:
    cap(db, batch_id, 1.0)
    reserve(db, batch_id, 1.0)

    settle(db, batch_id, -0.75)

    assert reserve(db, batch_id, 0.75)


def test_nothing_is_spent_below_zero(db: Database, batch_id: int) -> None:
    reserve(db, batch_id, 0.1)

    settle(db, batch_id, -0.1000001)

    assert spent(db, batch_id) == 0


def test_of_requests_at_once_as_many_are_let_through_as_the_cap_holds(
    db: Database, batch_id: int
) -> None:
    cap(db, batch_id, 0.5)

    let = together(*[lambda: reserve(db, batch_id, 0.1) for _ in range(12)])

    assert sum(let) == 5
    assert spent(db, batch_id) == pytest.approx(0.5)


def test_a_reservation_waits_for_nobody_who_writes_results(db: Database, batch_id: int) -> None:
    with db.begin() as session:
        session.execute(
            text("SELECT 1 FROM recallwatch.batch WHERE id = :id FOR KEY SHARE"), {"id": batch_id}
        )
        with db.begin() as other:
            other.execute(text("SET LOCAL lock_timeout = '2s'"))
            assert spending.reserve(other, batch_id, 1.0)


def test_another_batch_has_money_of_its_own(db: Database, batch_id: int) -> None:
    execute(db, "UPDATE recallwatch.batch SET max_cost = 0")
    other = start_run(db)
    with db.begin() as session:
        query = text("SELECT batch_id FROM recallwatch.run WHERE id = :id")
        other_batch = session.execute(query, {"id": other}).scalar_one()

    assert not reserve(db, batch_id, 0.1)
    assert reserve(db, other_batch, 0.1)


@pytest.mark.parametrize(
    ("before", "wanted", "after"), [(1.0, 2.0, 2.0), (2.0, 1.0, 2.0), (None, 1.0, None)]
)
def test_a_cap_is_raised_and_never_lowered(
    db: Database, batch_id: int, before: float | None, wanted: float, after: float | None
) -> None:
    if before is not None:
        cap(db, batch_id, before)

    with db.begin() as session:
        spending.raise_cap(session, batch_id, wanted)

    with db.begin() as session:
        assert spending.of_batch(session, batch_id) == (0.0, after)
