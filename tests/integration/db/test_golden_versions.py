from dataclasses import replace

import pytest
from sqlalchemy.exc import DBAPIError

from db import golden
from db.models import GoldenVersion
from db.session import Database
from pipeline.errors import InputError
from pipeline.golden.fingerprint import content_hash, item_hash, version_fingerprint
from pipeline.types import Kind, Question, Source
from tests.integration.db.building import (
    SET,
    execute,
    fetch,
    import_set,
    items_of,
    questions,
    snapshot,
    together,
)

FULL = Question(
    text="Full?",
    expected={"d:0": 3, "d:1": 0},
    category="factual",
    tenant="acme",
    language="pt",
    source=Source.LOG,
    must_pass=True,
    external_id="17",
    notes="not copied",
)


def keys(db: Database, version: GoldenVersion) -> list[str]:
    with db.begin() as session:
        return sorted(golden.expected_keys(session, version.id))


def test_a_version_copies_all_but_the_notes_of_the_active_questions(db: Database) -> None:
    none = Question(text="Who?", expected={}, kind=Kind.UNANSWERABLE)
    import_set(db, [FULL, none, *questions(1)])
    execute(db, "UPDATE recallwatch.question SET status = 'rejected' WHERE text = 'question 0'")

    version = snapshot(db)
    copies = [
        Question(
            text=item.text,
            expected=item.expected,
            kind=Kind(item.kind),
            category=item.category,
            tenant=item.tenant,
            language=item.language,
            source=Source(item.source),
            must_pass=item.must_pass,
            external_id=item.external_id,
        )
        for item in items_of(db, version)
    ]

    assert copies == [replace(FULL, notes=None), none]
    assert [item.content_hash for item in items_of(db, version)] == list(map(content_hash, copies))
    assert [item.position for item in items_of(db, version)] == [0, 1]
    assert version.size == 2
    assert version.fingerprint == version_fingerprint(map(item_hash, copies))


def test_the_same_content_is_the_same_version(db: Database) -> None:
    import_set(db, questions(3))
    first = snapshot(db)

    import_set(db, reversed(questions(3)))

    assert snapshot(db).id == first.id
    assert fetch(db, "SELECT count(*) FROM recallwatch.golden_item") == [3]


def test_the_order_in_which_questions_came_does_not_matter(db: Database) -> None:
    import_set(db, questions(3), "one")
    import_set(db, reversed(questions(3)), "two")

    one, two = snapshot(db, "one"), snapshot(db, "two")

    assert one.fingerprint == two.fingerprint
    assert one.id != two.id


def test_a_set_that_returns_to_what_it_was_returns_to_its_version(db: Database) -> None:
    import_set(db, questions(3))
    first = snapshot(db)
    import_set(db, questions(2), replace=True)
    second = snapshot(db)
    import_set(db, questions(3))

    assert snapshot(db).id == first.id != second.id


def test_a_changed_label_is_a_new_version_of_the_same_contents(db: Database) -> None:
    import_set(db, questions(2))
    first = snapshot(db)

    import_set(db, [replace(q, category="other") for q in questions(2)])
    second = snapshot(db)

    assert second.id != first.id
    assert [item.content_hash for item in items_of(db, second)] == [
        item.content_hash for item in items_of(db, first)
    ]


def test_changed_notes_are_no_new_version(db: Database) -> None:
    import_set(db, questions(2))
    first = snapshot(db)

    import_set(db, [replace(q, notes="checked") for q in questions(2)])

    assert snapshot(db).id == first.id


def test_an_old_version_stays_as_it_was(db: Database) -> None:
    import_set(db, [FULL])
    version = snapshot(db)

    import_set(db, [replace(FULL, text="Changed?", expected={"e:0": 1})])
    snapshot(db)

    [item] = items_of(db, version)
    assert (item.text, item.expected) == (FULL.text, FULL.expected)


def test_a_set_without_an_active_question_is_an_input_error(db: Database) -> None:
    import_set(db, questions(1))
    execute(db, "UPDATE recallwatch.question SET status = 'retired'")

    for name in (SET, "never heard of"):
        with pytest.raises(InputError, match=f"{name}.* has no active question"):
            snapshot(db, name)
    assert fetch(db, "SELECT count(*) FROM recallwatch.golden_version") == [0]


def test_snapshots_taken_at_once_are_one_version(db: Database) -> None:
    import_set(db, questions(50))

    versions = together(*[lambda: snapshot(db)] * 4)

    assert len({version.id for version in versions}) == 1
    assert fetch(db, "SELECT count(*) FROM recallwatch.golden_item") == [50]


@pytest.mark.parametrize("statement", [
    "UPDATE recallwatch.golden_item SET text = 'other'",
    "UPDATE recallwatch.golden_item SET category = NULL",
    "UPDATE recallwatch.golden_version SET size = 2",
])  # fmt: skip
def test_a_version_refuses_every_update(db: Database, statement: str) -> None:
    import_set(db, [FULL])
    snapshot(db)

    with pytest.raises(DBAPIError, match="a golden version never changes"):
        execute(db, statement)


def test_items_are_read_by_position_both_ends_included(db: Database) -> None:
    import_set(db, questions(5))
    version = snapshot(db)

    with db.begin() as session:
        read = golden.items(session, version.id, 1, 3)

    assert [item.position for item in read] == [1, 2, 3]


def test_an_expected_key_is_one_that_some_question_expects(db: Database) -> None:
    import_set(
        db,
        [
            Question(text="a", expected={"d:0": 1, "shared:0": 1, "wrong:0": 0}),
            Question(text="b", expected={"shared:0": 2, "worse:0": -1}),
            Question(text="c", expected={"never:0": 0}, kind=Kind.UNANSWERABLE),
        ],
    )

    assert keys(db, snapshot(db)) == ["d:0", "shared:0"]
