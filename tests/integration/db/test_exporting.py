"""What an export asks of a whole golden set: names that are taken, and texts that are shared."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from db import exporting, golden
from db.session import Database
from pipeline.golden.duplicates import Conflicts
from pipeline.golden.formats import ReadOptions, reader
from pipeline.golden.jsonl import write_questions
from pipeline.golden.staging import staged
from pipeline.golden.writers.naming import name_of
from pipeline.types import Question
from tests.integration.db.building import fetch, import_set, on_a_database, snapshot

UNNAMED = [Question(f"Who is {n}?", {"a:0": 1}) for n in range(3)]


def numbers(db: Database) -> list[int]:
    return fetch(db, "SELECT id FROM recallwatch.question WHERE external_id IS NULL ORDER BY id")


def with_taken_numbers(db: Database) -> set[str]:
    """Import questions without ids, and some whose ids are the numbers of those; return the ids."""
    import_set(db, UNNAMED)
    first, second, third = numbers(db)
    ids = {f"{first}", f"{first}_", f"{second}__"}
    others = {f"0{third}", f"{third}a", "_", f"{third + 1000}"}
    named = [Question(f"Why {each}?", {"a:0": 1}, external_id=each) for each in ids | others]
    import_set(db, named)
    return ids


def test_ids_that_are_numbers_of_others_are_taken(db: Database) -> None:
    taken = with_taken_numbers(db)
    with db.begin() as session:
        assert exporting.taken_names(session, "default") == taken


def test_a_version_of_the_same_questions_gives_them_the_same_names(db: Database) -> None:
    taken = with_taken_numbers(db)
    version = snapshot(db)
    with db.begin() as session:
        of_version = exporting.taken_names_of_version(session, version.id)
        names = {
            each.id: name_of(each.id, each.question.external_id, taken)
            for each in golden.questions(session, "default")
        }
        items = golden.items(session, version.id, 0, version.size - 1)
        of_run = {i.question_id: name_of(i.question_id, i.external_id, of_version) for i in items}
    assert of_run == names
    assert len(set(names.values())) == len(names)


def test_other_sets_and_retired_questions_take_no_name(db: Database) -> None:
    import_set(db, UNNAMED[:1])
    [number] = numbers(db)
    import_set(db, [Question("Why?", {"a:0": 1}, external_id=str(number))], "other")
    import_set(db, [Question("Why?", {"a:0": 1}, external_id=str(number))])
    with db.begin() as session:
        assert exporting.taken_names(session, "default") == {str(number)}
    import_set(db, UNNAMED[:1], replace=True)
    with db.begin() as session:
        assert exporting.taken_names(session, "default") == set()


def shared(db: Database, name: str) -> int:
    with db.begin() as session:
        return exporting.count_shared_texts(session, name)


def test_questions_of_one_text_are_counted_as_import_compares_them(db: Database) -> None:
    who = Question("Who?", {"a:0": 1})
    import_set(db, [who, replace(who, text="Who\u200b?  ", expected={"b:0": 1}),
                    replace(who, tenant="acme"), Question("Why?", {"a:0": 1})])  # fmt: skip
    assert shared(db, "default") == 2


def test_ids_make_questions_of_one_text_two_to_any_import(db: Database) -> None:
    named = [Question("Who?", {f"{n}:0": 1}, external_id=f"q{n}") for n in range(2)]
    import_set(db, named)
    assert shared(db, "default") == 0
    import_set(db, [*named, Question("Who?", {"c:0": 1})])
    assert shared(db, "default") == 3


ALIKE = st.lists(
    st.builds(
        Question,
        text=st.sampled_from(["Who?", "Who\u200b?", "Why?", "Whe\u0301n?", "Wh\u00e9n?"]),
        expected=st.sampled_from([{"a:0": 1}, {"b:0": 1}, {"a:0": 1, "b:0": 2}]),
        tenant=st.sampled_from([None, "acme"]),
        external_id=st.none() | st.sampled_from(["1", "2", "3", "4"]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda q: q.external_id or (q.text, q.tenant, tuple(q.expected)),
)


@on_a_database
@given(golden_set=ALIKE)
def test_an_import_refuses_or_joins_none_where_no_text_is_shared(
    db: Database, tmp_path: Path, golden_set: list[Question]
) -> None:
    name = uuid4().hex
    import_set(db, golden_set, name)
    file = tmp_path / "golden.jsonl"
    with file.open("wb") as stream:
        write_questions(golden_set, stream)
    records = reader("jsonl")(str(file), options=ReadOptions())
    with staged(str(file), records, conflicts=Conflicts.REFUSE, skip_bad=True) as plan:
        assert (plan.kept < len(golden_set)) == (shared(db, name) > 0)
