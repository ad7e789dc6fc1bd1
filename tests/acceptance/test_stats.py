"""`recallwatch golden stats` as a person and a script read it."""

import pytest

from tests.acceptance.command import Project, Record


@pytest.fixture(scope="module", autouse=True)
def _set(project: Project) -> None:
    texts = {"a": "The lamp of the router blinks green.", "b": "The parcel weighs four kilograms.",
             "c": "The parcel weighs four kilograms."}  # fmt: skip
    chunks = [
        {"document_id": name, "chunk_index": 0, "content": text} for name, text in texts.items()
    ]
    project.run("corpus", "load", project.write("chunks.jsonl", chunks))
    questions: list[Record] = [
        {"question": "What blinks?", "expected": {"a:0": 2}, "category": "None"},
        {"question": "How heavy is it?", "expected": ["b:0"], "source": "log"},
    ]
    project.run("golden", "import", project.write("golden.jsonl", questions))


def test_a_person_reads_what_the_set_can_show_and_what_weakens_it(project: Project) -> None:
    said = project.run("golden", "stats")
    assert said.out.startswith("golden set default: 2 active\n")
    assert "smallest drop this set can show at 95 %: " in said.out
    assert "by the gate, at alpha 0.001: " in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    warned = [line.removeprefix("warning: ") for line in said.err.splitlines()]
    assert warned[0].startswith("2 answerable questions are active: under 50")
    assert warned[1].startswith("under 5 questions in categories None (1)")
    assert "(question 2: c:0)" in warned[2]


def test_a_script_reads_the_same(project: Project) -> None:
    found = project.json("golden", "stats")
    assert found["by_status"] == {"active": 2}
    assert found["groups"]["source"] == [
        {"value": "log", "questions": 1}, {"value": "manual", "questions": 1},
    ]  # fmt: skip
    assert {"value": None, "questions": 1} in found["groups"]["category"]
    assert {"value": "None", "questions": 1} in found["groups"]["category"]
    assert [each["alpha"] for each in found["smallest_drop"]] == [0.05, 0.001]
    assert found["near_duplicates"]["examples"] == {"2": "c:0"}
    assert len(found["warnings"]) == 3


def test_the_corpus_is_left_alone_when_it_is_not_asked(project: Project) -> None:
    assert project.json("golden", "stats", "--no-corpus")["near_duplicates"] is None


def test_a_set_that_is_not_there_is_refused(project: Project) -> None:
    assert "golden set 'none' has no question" in project.fails("golden", "stats", "--set", "none")
