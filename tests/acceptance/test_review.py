"""`recallwatch golden review` as a person uses it: in a terminal, and by file."""

import csv
import io
import time
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.command import Project, Record, rows
from tests.acceptance.terminal import COLUMNS, Terminal, terminal

CHUNKS = {
    "router:0": "Hold the power button for ten seconds to reset the router to its factory state.",
    "router:1": "The lamp of the router blinks green while it looks for a network to join.",
    "copy:0": "Hold the power button for ten seconds to reset the router to its factory state!",
    "parcel:0": "The parcel weighs four kilograms without its packaging, by our own scales.",
}
QUESTIONS = {
    "How do I get the factory state back?": "router:0",
    "What does a green lamp mean?": "router:1",
    "How heavy is the parcel?": "parcel:0",
}


@pytest.fixture(autouse=True)
def _proposed(project: Project) -> None:
    """Store the corpus once, and the questions anew, all proposed."""
    chunks = [
        {"document_id": key.partition(":")[0], "chunk_index": int(key[-1]), "content": content}
        for key, content in CHUNKS.items()
    ]
    url = project.environment["DATABASE_URL"]
    if not rows(url, "SELECT to_regclass('recallwatch_corpus.chunks') AS t")[0][0]:
        project.run("corpus", "load", project.write("chunks.jsonl", chunks))
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DELETE FROM recallwatch.edit")
        database.execute("DELETE FROM recallwatch.question")
    questions = [{"question": text, "expected": [key]} for text, key in QUESTIONS.items()]
    project.run("golden", "import", project.write("golden.jsonl", questions))
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("UPDATE recallwatch.question SET status = 'proposed'")


def stored(project: Project) -> list[Record]:
    """Return the questions in the order in which they were imported."""
    return project.json_rows("golden", "list", "--status", "all")


def statuses(project: Project) -> list[str]:
    return [question["status"] for question in stored(project)]


def answer(shown: Terminal, asked: str, line: str) -> None:
    """Type a line when it is asked for, in place of what stands there."""
    shown.wait_for(asked)
    shown.press(f"\x15{line}\r")


def test_a_person_reviews_with_the_keyboard_alone(project: Project) -> None:
    with terminal(project, "golden", "review") as shown:
        first = shown.wait_for("q quit")
        assert "How do I get the factory state back?" in first
        assert "Hold the power button" in first
        assert "copy:0" in first
        assert "like router:0" in first
        assert "vector 1" in first
        assert "fulltext 1" in first
        shown.press("k")
        answer(shown, "number or key of the chunk:", "copy:0")
        shown.wait_for("copy:0 (grade 1")
        shown.press("g")
        answer(shown, "chunk=grade, as 2=3:", "router:0=3")
        shown.wait_for("router:0 (grade 3")
        shown.press("c")
        answer(shown, "category:", "procedural")
        shown.wait_for("category procedural")
        shown.press("e")
        answer(shown, "question:", "How do I reset it?")
        shown.wait_for("How do I reset it?")
        shown.press("a")
        shown.wait_for("2 of 3")
        shown.press("r")
        answer(shown, "reason, or its number:", "2")
        shown.wait_for("3 of 3")
        shown.press("s")
        shown.wait_for("nothing more to review")
        shown.press("q")
        assert shown.finish() == 0
        shown.wait_for("1 accepted, 1 rejected, 1 skipped")
    accepted, rejected, skipped = stored(project)
    assert accepted["question"]["text"] == "How do I reset it?"
    assert accepted["question"]["expected"] == {"router:0": 3, "copy:0": 1}
    assert accepted["question"]["category"] == "procedural"
    assert [each["status"] for each in (accepted, rejected, skipped)] == [
        "active", "rejected", "proposed",
    ]  # fmt: skip
    who = rows(project.environment["DATABASE_URL"],
               "SELECT reviewed_by IS NOT NULL AND reviewed_at IS NOT NULL, rejection"
               " FROM recallwatch.question ORDER BY id")  # fmt: skip
    assert who == [(True, None), (True, "too vague"), (False, None)]


def test_a_review_that_was_killed_goes_on_and_is_undone(project: Project) -> None:
    with terminal(project, "golden", "review", "--no-search") as shown:
        shown.wait_for("q quit")
        shown.press("a")
        shown.wait_for("2 of 3")
        shown.kill()
    assert statuses(project) == ["active", "proposed", "proposed"]
    with terminal(project, "golden", "review", "--no-search") as shown:
        assert "What does a green lamp mean?" in shown.wait_for("1 of 2") + shown.wait_for("q quit")
        shown.press("u")
        shown.wait_for("undo accept of question")
        shown.wait_for("of an earlier review? y, or any other")
        shown.press("n")
        assert "What does a green lamp mean?" in shown.wait_for("left as it was")
        shown.press("u")
        shown.wait_for("y, or any other")
        shown.press("y")
        shown.wait_for("How do I get the factory state back?")
        shown.wait_for("undone: accept")
        shown.press("q")
        assert shown.finish() == 0
    assert statuses(project) == ["proposed"] * 3


@pytest.mark.parametrize("leave", ["q", "\x03", "\x04"])
def test_a_person_leaves_at_any_time(project: Project, leave: str) -> None:
    with terminal(project, "golden", "review", "--no-search") as shown:
        shown.wait_for("q quit")
        shown.press("c")
        shown.wait_for("category:")
        shown.press("\x04")
        shown.wait_for("left as it was")
        shown.press("z")
        shown.wait_for("press ? for what the keys do")
        shown.press("?")
        shown.wait_for("press any key")
        shown.press("x")
        shown.wait_for("q quit")
        shown.press(leave)
        assert shown.finish() == 0
        assert "Traceback" not in shown.seen
    assert statuses(project) == ["proposed"] * 3


def test_nothing_is_wider_than_the_terminal(project: Project) -> None:
    with terminal(project, "golden", "review") as shown:
        shown.wait_for("q quit")
        shown.press("?")
        shown.wait_for("press any key")
        assert max(map(len, shown.seen.splitlines())) <= COLUMNS


def test_an_editor_is_used_where_one_is_set(project: Project) -> None:
    editor = project.folder / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "Edited?\\n" > "$1"\n')
    editor.chmod(0o755)
    with terminal(project, "golden", "review", "--no-search", EDITOR=str(editor)) as shown:
        shown.wait_for("q quit")
        shown.press("e")
        shown.wait_for("Edited?")
    assert stored(project)[0]["question"]["text"] == "Edited?"


def test_an_editor_that_fails_is_told_and_the_review_goes_on(project: Project) -> None:
    with terminal(project, "golden", "review", "--no-search", EDITOR="no-such-editor") as shown:
        shown.wait_for("q quit")
        shown.press("e")
        shown.wait_for("see $VISUAL and $EDITOR")
        shown.press("a")
        shown.wait_for("2 of 3")
    assert statuses(project)[0] == "active"


@pytest.mark.parametrize("arrow", [["\x1b[A"], ["\x1b", "[A"], ["\x1bOA"]])
def test_an_arrow_key_decides_nothing(project: Project, arrow: list[str]) -> None:
    with terminal(project, "golden", "review", "--no-search") as shown:
        shown.wait_for("q quit")
        for part in arrow:
            shown.press(part)
            time.sleep(0.3)
        shown.wait_for("press ? for what the keys do")
        shown.press("q")
        assert shown.finish() == 0
    assert statuses(project) == ["proposed"] * 3


def test_without_a_terminal_the_way_by_file_is_named(project: Project) -> None:
    assert "golden review --export FILE" in project.fails("golden", "review")


def test_proposals_go_through_a_spreadsheet(project: Project) -> None:
    said = project.run("golden", "review", "--export", "proposals.csv").out
    assert said.startswith("3 questions to proposals.csv; fill the column decision")
    path = project.folder / "proposals.csv"
    fill(path, {"decision": ["accept", "reject", ""], "reason": ["", "nobody asks this", ""]})

    said = project.run("golden", "review", "--import", "proposals.csv").out

    assert "1 accepted, 1 rejected, 0 changed, 1 left open; to take it back: recallwatch" in said
    assert statuses(project) == ["active", "rejected", "proposed"]
    assert "has changed since the export" in project.fails(
        "golden", "review", "--import", "proposals.csv"
    )


def test_decisions_that_nobody_may_lose_are_not_written_over(project: Project) -> None:
    project.run("golden", "review", "--export", "kept.csv")
    assert "kept.csv exists, and may hold decisions" in project.fails(
        "golden", "review", "--export", "kept.csv"
    )


@pytest.mark.parametrize(("arguments", "said"), [
    (["--export", "a.csv", "--import", "b.csv"], "--export and --import cannot be had at once"),
    (["--import", "nowhere.csv"], "nowhere.csv: cannot be read"),
    (["--import", "b.csv", "17"], "leave ids and strategies out"),
    (["--export", "a.csv", "--strategy", "nope"], "leave --strategy out"),
    (["--json"], "--json goes with --export and --import"),
    (["--export", "a.csv", "999999999"], "has no question 999999999"),
    (["--export", "a.csv", "--category", "none"], "there is no such question to review"),
    (["--export", "nowhere/a.csv"], "nowhere/a.csv"),
    (["--status", "new"], "'new' is not one of 'proposed'"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(
    project: Project, arguments: list[str], said: str
) -> None:
    assert said in project.fails("golden", "review", *arguments)


def fill(path: Path, columns: dict[str, list[str]]) -> None:
    """Fill columns of a table, from the first row on."""
    table = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    for name, cells in columns.items():
        for row, cell in zip(table, cells, strict=True):
            row[name] = cell
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
