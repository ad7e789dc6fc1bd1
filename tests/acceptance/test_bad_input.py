"""What a wrong file, option or setting gets: one line that names it, and exit code 2."""

from collections.abc import Sequence

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project
from tests.acceptance.conftest import standing_project

GOOD_QUESTION = '{"question": "Is it?", "expected": {"kettle:0": 1}}'
GOOD_CHUNK = '{"document_id": "kettle", "chunk_index": 0, "content": "Another text."}'


@pytest.fixture(scope="module")
def loaded(project: Project) -> Project:
    """Give the project with corpus and golden set; no test may change either."""
    guides.load(project)
    return project


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", 0], ["k ", "from 1 to 1000", "0"]),
        (["--k", 10_000], ["k ", "from 1 to 1000", "10000"]),
        (["--k", "abc"], ["'--k'", "'abc'", "integer", "recallwatch eval --help"]),
        (["--strategy", "vectr"], ["'vectr'", "vector, fulltext, hybrid"]),
        (["--max-drop", 2], ["max_drop", "from 0 to 1", "2"]),
    ],
)
def test_a_wrong_option_of_eval_is_told_before_anything_starts(
    fresh: Project, options: Sequence[object], words: Sequence[str]
) -> None:
    assert_holds(fresh.fails("eval", *options), words)
    assert not fresh.state.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[eval]\nstrategy = 3\n", ["recallwatch.toml", "eval.strategy", "strategies"]),
        ('[eval]\nk = "five"\n', ["recallwatch.toml", "eval.k", "from 1 to 1000", "five"]),
    ],
)
def test_a_wrong_setting_is_told_with_file_and_key(
    fresh: Project, text: str, words: Sequence[str]
) -> None:
    fresh.write_settings(text)
    assert_holds(fresh.fails("eval"), words)
    assert not fresh.state.exists()


def test_a_wrong_variable_is_told_by_its_name(fresh: Project) -> None:
    complaint = fresh.fails("eval", RECALLWATCH_EVAL__KK="5")
    assert_holds(complaint, ["RECALLWATCH_EVAL__KK", "did you mean k?"])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ["faulty.jsonl", "no question"]),
        ([GOOD_QUESTION, '{"question": "Is'], ["faulty.jsonl:2", "JSON"]),
        (
            ['{"question": "Is it?", "expected": {"kettle": 1}}'],
            ["faulty.jsonl:1", "'kettle'", "no colon", "document_id:chunk_index"],
        ),
    ],
)
def test_a_faulty_golden_set_is_told_with_its_line(
    loaded: Project, lines: Sequence[str], words: Sequence[str]
) -> None:
    complaint = loaded.fails("golden", "import", write_lines(loaded, lines), "--set", "faulty")
    assert_holds(complaint, words)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([GOOD_CHUNK, '{"document_id": "ke'], ["faulty.jsonl:2", "JSON"]),
        (['{"document_id": "kettle", "chunk_index": 7}'], ["faulty.jsonl:1", "content"]),
    ],
)
def test_a_faulty_file_of_chunks_is_told_with_its_line(
    loaded: Project, lines: Sequence[str], words: Sequence[str]
) -> None:
    assert_holds(loaded.fails("corpus", "load", write_lines(loaded, lines)), words)


@pytest.mark.parametrize("command", [("golden", "import"), ("corpus", "load")])
def test_a_file_that_is_not_there_is_told_by_its_name(
    loaded: Project, command: Sequence[str]
) -> None:
    assert_holds(loaded.fails(*command, "absent.jsonl"), ["absent.jsonl", "No such file"])


def test_a_fault_in_the_last_of_many_lines_leaves_nothing_behind(loaded: Project) -> None:
    sets = loaded.json_rows("golden", "list", "--sets")
    corpus = loaded.json("corpus", "show")
    questions = [GOOD_QUESTION.replace("Is", f"Is {n}") for n in range(1500)]
    loaded.fails("golden", "import", write_lines(loaded, [*questions, "{"]))
    chunks = [GOOD_CHUNK.replace("kettle", f"kettle {n}") for n in range(1500)]
    complaint = loaded.fails("corpus", "load", write_lines(loaded, [*chunks, "{"]))
    assert "faulty.jsonl:1501" in complaint
    assert loaded.json_rows("golden", "list", "--sets") == sets
    assert loaded.json("corpus", "show") == corpus


def test_vectors_of_another_length_are_not_loaded_over_those_there(loaded: Project) -> None:
    chunk = {"document_id": "kettle", "chunk_index": 0, "content": "x", "embedding": [1, 2, 3]}
    complaint = loaded.fails("corpus", "load", loaded.write("short.jsonl", [chunk]))
    assert_holds(complaint, ["256", "3", "--replace"])


def test_a_set_that_does_not_exist_cannot_be_evaluated_nor_exported(loaded: Project) -> None:
    complaint = loaded.fails("eval", "--set", "absent")
    assert_holds(complaint, ["'absent'", "recallwatch golden import FILE --set absent"])
    kept = loaded.folder / "kept.jsonl"
    kept.write_text(GOOD_QUESTION)
    complaint = loaded.fails("golden", "export", "--set", "absent", "--output", kept)
    assert_holds(complaint, ["'absent'", "recallwatch golden list --sets"])
    assert kept.read_text() == GOOD_QUESTION
    assert "golden set absent" in loaded.run("golden", "list", "--set", "absent").out


def test_a_set_of_another_corpus_is_refused_with_an_example(loaded: Project) -> None:
    question = {"question": "Is it?", "expected": {"another:0": 1}}
    loaded.run("golden", "import", loaded.write("other.jsonl", [question]), "--set", "other")
    complaint = loaded.fails("eval", "--set", "other")
    assert_holds(complaint, ["'other'", "'another:0'", "right corpus"])
    assert loaded.json_rows("runs", "list", "--set", "other") == []


@pytest.mark.parametrize("command", [("runs", "show"), ("runs", "export"), ("golden", "show")])
def test_a_number_that_nothing_has_is_told_with_where_to_look(
    loaded: Project, command: Sequence[str]
) -> None:
    assert_holds(loaded.fails(*command, 987), ["987", f"recallwatch {command[0]} list"])


def test_without_a_corpus_or_with_vectors_of_another_model_nothing_is_queued(
    servers: Servers,
) -> None:
    with standing_project(servers) as project:
        project.run("golden", "import", project.write("golden.jsonl", guides.questions()))
        assert_holds(
            project.fails("eval"), ["recallwatch_corpus.chunks", "recallwatch corpus load"]
        )
        short = [chunk | {"embedding": [1.0, 2.0, 3.0]} for chunk in guides.chunks()]
        project.run("corpus", "load", project.write("chunks.jsonl", short))
        assert_holds(project.fails("eval"), ["3 dimensions", "wordllama", "256", "[embedding]"])
        assert project.json_rows("runs", "list") == []
        assert project.run("eval", "--strategy", "fulltext").code == 0


def write_lines(project: Project, lines: Sequence[str]) -> str:
    (project.folder / "faulty.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return "faulty.jsonl"


def assert_holds(complaint: str, words: Sequence[str]) -> None:
    missing = [word for word in words if word not in complaint]
    assert not missing, complaint
