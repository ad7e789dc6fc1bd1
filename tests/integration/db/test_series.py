"""Series of runs: what `recallwatch runs trend` charts."""

from typing import Any

import pytest

from db import runs
from db.session import Database
from tests.integration.db.building import end_run, import_set, questions, start_batch, start_run


def series(db: Database, **asked: Any) -> list[int]:  # noqa: ANN401 - what `runs.series` takes
    with db.begin() as session:
        return [each.run.id for each in runs.series(session, **asked)]


def ended(db: Database, n: int, **changes: object) -> list[int]:
    """Run the set n times to the end."""
    return [end_run(db, start_run(db, changes)) for _ in range(n)]


@pytest.fixture
def golden(db: Database) -> Database:
    import_set(db, questions(2))
    return db


def test_each_series_has_its_own_last_runs_oldest_first(golden: Database) -> None:
    vector = ended(golden, 4)
    hybrid = ended(golden, 2, strategy="hybrid")

    assert series(golden, last=3) == [*hybrid, *vector[1:]]
    assert series(golden, last=1, strategy="vector") == vector[3:]


def test_runs_that_may_not_be_compared_are_series_of_their_own(golden: Database) -> None:
    changed: list[dict[str, Any]] = [
        {"k": 10}, {"level": "document"}, {"relevance_threshold": 2}, {"convention": "rw-2"},
    ]  # fmt: skip
    plain = ended(golden, 2)
    others = [ended(golden, 2, **change)[-1] for change in changed]

    assert sorted(series(golden, last=1)) == [plain[-1], *others]
    assert series(golden, k=10) == [others[0] - 1, others[0]]
    assert series(golden, level="document", k=5) == [others[1] - 1, others[1]]


def test_sets_are_series_of_their_own(golden: Database) -> None:
    import_set(golden, questions(3), "faq")
    mine = ended(golden, 1)
    faq = end_run(golden, start_run(golden, set_name="faq"))

    assert series(golden) == [*mine, faq]
    assert series(golden, set_name="faq") == [faq]


def test_a_run_under_way_is_not_there_yet_and_a_failed_one_is(golden: Database) -> None:
    first, second, third = start_batch(golden, {}, {}, {})
    end_run(golden, first)
    end_run(golden, third, "unmeasured", "failed")

    assert series(golden) == [first, third]
    assert second not in series(golden)
