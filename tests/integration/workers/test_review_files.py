"""Review by file: what a table does to the stored questions, and what it may not."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from db import edits, reviews
from db.edits import State
from db.reviews import Filter
from pipeline.errors import InputError
from tests.integration.db.building import SET, execute, fetch
from tests.integration.workers.conftest import TEXTS, Opener
from workers.context import Context
from workers.review_files import Imported, export_proposals, import_decisions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "proposals.csv"


@pytest.fixture
def ids(ctx: Context) -> list[int]:
    """Propose the whole golden set and return the questions' ids."""
    execute(ctx.database, "UPDATE recallwatch.question SET status = 'proposed'")
    with ctx.database.begin() as session:
        return reviews.waiting(session, SET, Filter())


def export(ctx: Context, ids: list[int], path: Path) -> str | None:
    with path.open("w", encoding="utf-8", newline="") as stream, ctx.database.begin() as session:
        written, missing = export_proposals(ctx, session, ids, stream)
    assert written == len(ids)
    return missing


def rows_in(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def fill(path: Path, cells: Mapping[int, Mapping[str, str]]) -> None:
    """Fill cells of the rows, by the questions' ids, as a person does in a spreadsheet."""
    rows = rows_in(path)
    for row in rows:
        row.update(cells.get(int(row["id"]), {}))
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def take_over(ctx: Context, path: Path, by: str = "ann") -> Imported:
    with ctx.database.begin() as session:
        return import_decisions(ctx, session, SET, path, by=by)


def states(ctx: Context, ids: list[int]) -> dict[int, State]:
    with ctx.database.begin() as session:
        return edits.states(session, ids)


def texts_of(ctx: Context, question_id: int) -> dict[str, str]:
    """Return key -> the text that it was judged on."""
    return dict(fetch(
        ctx.database,
        "SELECT key, e.text FROM recallwatch.judgment JOIN recallwatch.evidence e"
        " ON hash = evidence_hash WHERE question_id = :id",
        {"id": question_id},
    ))  # fmt: skip


def refusal(ctx: Context, path: Path, ids: list[int]) -> str:
    """Return why a table is refused; nothing may have changed."""
    before = states(ctx, ids)
    with pytest.raises(InputError) as raised:
        take_over(ctx, path)
    assert states(ctx, ids) == before
    assert str(raised.value).endswith("; nothing was taken over")
    return str(raised.value).removesuffix("; nothing was taken over")


def test_a_row_holds_the_question_and_its_chunks(ctx: Context, ids: list[int], path: Path) -> None:
    propose = "INSERT INTO recallwatch.proposed_key VALUES (:id, 'weight:0', 'like it')"
    execute(ctx.database, propose, {"id": ids[0]})
    assert export(ctx, ids, path) is None
    first = rows_in(path)[0]
    assert first["question"] == "How do I reset the router?"
    assert first["proposed_keys"] == "weight:0 (like it)"
    assert all(f"[{key}] {TEXTS[key]}" in first["chunks"] for key in ("reset:0", "weight:0"))


def test_a_table_is_written_without_the_corpus_and_says_so(
    open_context: Opener, ids: list[int], path: Path
) -> None:
    ctx = open_context(corpus_url=SecretStr("postgresql://nobody@127.0.0.1:1/none"))
    missing = export(ctx, ids, path)
    assert missing is not None
    assert "the corpus database does not answer" in missing
    assert [int(row["id"]) for row in rows_in(path)] == ids


def test_a_tenants_questions_show_and_take_no_chunk_of_another_tenant(
    ctx: Context, ids: list[int], path: Path
) -> None:
    execute(
        ctx.database,
        "UPDATE recallwatch_corpus.chunks SET tenant = 'other' WHERE document_id = 'weight'",
    )
    execute(ctx.database, "UPDATE recallwatch.question SET tenant = 'acme' WHERE id = :id",
            {"id": ids[3]})  # fmt: skip
    export(ctx, ids, path)
    assert all(TEXTS["weight:0"] not in cell for row in rows_in(path) for cell in row.values())

    fill(path, {ids[4]: {"decision": "accept", "expected": "return:0; weight:0"}})

    with pytest.raises(InputError, match="no chunk weight:0 is in the corpus"):
        take_over(ctx, path)


def test_all_decisions_are_taken_over_as_one_edit(ctx: Context, ids: list[int], path: Path) -> None:
    before = states(ctx, ids)
    export(ctx, ids, path)
    fill(path, {
        ids[0]: {"decision": "accept"},
        ids[1]: {"decision": "accept", "question": "Reworded?", "category": "why"},
        ids[2]: {"decision": "reject", "reason": "too vague"},
        ids[3]: {"decision": "change", "expected": "weight:0=2; reset:0", "must_pass": "TRUE"},
    })  # fmt: skip

    found = take_over(ctx, path)

    assert found.counts == {"accept": 2, "reject": 1, "change": 1, "open": len(ids) - 4}
    after = states(ctx, ids)
    said = [(after[each].status, after[each].reviewed_by, after[each].rejection) for each in ids]
    assert said[:5] == [
        ("active", "ann", None), ("active", "ann", None), ("rejected", "ann", "too vague"),
        ("proposed", None, None), ("proposed", None, None),
    ]  # fmt: skip
    assert (after[ids[1]].text, after[ids[1]].category) == ("Reworded?", "why")
    judged = after[ids[3]].judgments
    assert {key: (each.grade, each.judged_by) for key, each in judged.items()} == {
        "weight:0": (2, "ann"), "reset:0": (1, "ann"),
    }  # fmt: skip
    assert after[ids[3]].must_pass
    assert texts_of(ctx, ids[3]) == {key: TEXTS[key] for key in ("weight:0", "reset:0")}

    assert found.edit_id is not None
    with ctx.database.begin() as session:
        assert edits.undo(session, found.edit_id, by=None) == 4
    assert states(ctx, ids) == before


def test_a_table_without_decisions_changes_nothing(
    ctx: Context, ids: list[int], path: Path
) -> None:
    before = states(ctx, ids)
    export(ctx, ids, path)
    assert take_over(ctx, path) == Imported(None, {"open": len(ids)})
    assert states(ctx, ids) == before


def test_a_row_that_is_out_of_date_refuses_the_whole_table(
    ctx: Context, ids: list[int], path: Path
) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept"}, ids[1]: {"decision": "accept"}})
    execute(ctx.database, "UPDATE recallwatch.question SET category = 'x' WHERE id = :id",
            {"id": ids[1]})  # fmt: skip
    assert refusal(ctx, path, ids) == (
        f"{path}:5 (row 3): question {ids[1]} has changed since the export: export it again"
    )


def test_a_table_is_taken_over_once(ctx: Context, ids: list[int], path: Path) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept"}})
    take_over(ctx, path)
    assert "has changed since the export" in refusal(ctx, path, ids)


def test_evidence_that_was_noted_since_the_export_does_not_make_a_row_old(
    ctx: Context, ids: list[int], path: Path
) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept"}})
    execute(ctx.database, "INSERT INTO recallwatch.evidence VALUES ('h', 't')")
    execute(ctx.database, "UPDATE recallwatch.judgment SET evidence_hash = 'h'")
    take_over(ctx, path)
    hashes = {each.evidence_hash for each in states(ctx, ids)[ids[0]].judgments.values()}
    assert hashes == {"h"}


@pytest.mark.parametrize(("cells", "said"), [
    ({"decision": "reject"}, "decision is reject: say why in the column reason"),
    ({"decision": "maybe"}, "decision is 'maybe'"),
    ({"question": "Edited?"}, "were changed (text), but decision is empty"),
    ({"decision": "change"}, "decision is change, but no cell was changed"),
    ({"decision": "accept", "expected": ""}, "expected is empty: name a chunk, or write {}"),
    ({"decision": "accept", "expected": "nowhere:7"}, "no chunk nowhere:7 is in the corpus"),
    ({"id": "999999999", "decision": "accept"}, "there is no question 999999999 in golden set"),
    ({"mark": "✓0000"}, "has changed since the export"),
])  # fmt: skip
def test_one_wrong_cell_refuses_the_whole_table_with_its_line(
    ctx: Context, ids: list[int], path: Path, cells: dict[str, str], said: str
) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept"}, ids[1]: cells})
    told = refusal(ctx, path, ids)
    assert told.startswith(f"{path}:5 (row 3): ")
    assert said in told


def test_the_first_of_several_faults_is_told_and_their_number(
    ctx: Context, ids: list[int], path: Path
) -> None:
    export(ctx, ids, path)
    fill(path, {each: {"decision": "no"} for each in ids[:3]})
    assert refusal(ctx, path, ids).endswith("(2 more rows are wrong)")


def test_a_question_that_stands_twice_is_refused(ctx: Context, ids: list[int], path: Path) -> None:
    export(ctx, ids, path)
    fill(path, {ids[1]: {"id": str(ids[0])}})
    told = refusal(ctx, path, ids)
    assert told == f"{path}:5 (row 3): question {ids[0]} stands in {path}:2 already"


def test_a_question_without_an_answer_is_made_by_saying_so(
    ctx: Context, ids: list[int], path: Path
) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept", "expected": "{}"}})
    take_over(ctx, path)
    state = states(ctx, ids)[ids[0]]
    assert (state.kind, state.judgments, state.status) == ("unanswerable", {}, "active")


def test_decisions_that_make_two_questions_the_same_are_refused_whole(
    ctx: Context, ids: list[int], path: Path
) -> None:
    export(ctx, ids, path)
    cells = {"decision": "accept", "question": "The same?", "expected": "weight:0",
             "tenant": "", "category": ""}  # fmt: skip
    fill(path, {ids[0]: cells, ids[1]: cells})
    before = states(ctx, ids)
    with pytest.raises(InputError, match="would be the same"):
        take_over(ctx, path)
    assert states(ctx, ids) == before


def test_a_question_of_another_set_is_refused(ctx: Context, ids: list[int], path: Path) -> None:
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "accept"}})
    execute(ctx.database, "UPDATE recallwatch.question SET set_name = 'other' WHERE id = :id",
            {"id": ids[0]})  # fmt: skip
    assert f"there is no question {ids[0]} in golden set {SET}" in refusal(ctx, path, ids)


def test_a_grade_is_given_to_the_text_that_the_chunk_has_by_now(
    ctx: Context, ids: list[int], path: Path
) -> None:
    execute(ctx.database, "INSERT INTO recallwatch.evidence VALUES ('h', 'an older text')")
    execute(ctx.database, "UPDATE recallwatch.judgment SET evidence_hash = 'h'")
    export(ctx, ids, path)
    fill(path, {ids[0]: {"decision": "change", "expected": "reset:0=3; reset:1"}})

    take_over(ctx, path)

    assert texts_of(ctx, ids[0]) == {"reset:0": TEXTS["reset:0"], "reset:1": "an older text"}
