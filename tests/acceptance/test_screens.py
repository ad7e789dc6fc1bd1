"""Help texts, and what commands print for people: complete, with examples, 80 columns wide."""

from collections.abc import Iterator, Sequence

import click
import pytest
from rich.cells import cell_len

from cli.lazy import LazyCommand
from cli.main import main, root
from tests.acceptance import guides
from tests.acceptance.command import Project

WIDTH = 80


def command_lines(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    for name, command in group.commands.items():
        loaded = command.load() if isinstance(command, LazyCommand) else command
        if isinstance(loaded, click.Group):
            yield from command_lines(loaded, (*names, name))
        else:
            yield (*names, name)


def test_the_help_of_every_command_has_examples_and_fits(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process: fifty processes would show the same.
    monkeypatch.chdir(fresh.folder)
    for names in command_lines(root):
        assert main([*names, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Examples:" in shown, names
        assert f"Usage: {' '.join(['recallwatch', *names])} " in shown
        assert_fits(shown)
    assert not fresh.state.exists()


@pytest.fixture(scope="module")
def crowded(project: Project) -> Project:
    """Give a project full of what is hard to print: long ids and questions, wide characters."""
    chunks = [chunk | {"document_id": _long(chunk["document_id"])} for chunk in guides.chunks()]
    questions = [
        {
            "question": f"{question['question']} {question['question'] * 3} 日本語の質問",
            "expected": {_long(key): grade for key, grade in question["expected"].items()},
            "category": "a category with quite a long name of its own",
        }
        for question in guides.questions()
    ]
    project.run("corpus", "load", project.write("chunks.jsonl", chunks))
    never_found = {"question": "何もない", "expected": {_long("kettle:0"): 1}}
    project.run("golden", "import", project.write("golden.jsonl", [*questions, never_found]))
    project.run("eval", "--strategy", "vector")
    return project


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "--strategy", "vector", "--misses", "20"],
        ["runs", "list"],
        ["runs", "show", "1", "--failures", "--lost", "--cutoffs", "--by", "category"],
        ["corpus", "show"],
        ["golden", "list"],
        ["golden", "list", "--sets"],
        ["golden", "show", "1"],
        ["status"],
        ["doctor"],
        ["config", "show"],
    ],
    ids=" ".join,
)
def test_what_a_command_prints_off_a_terminal_fits(crowded: Project, words: Sequence[str]) -> None:
    shown = crowded.run(*words)
    assert shown.out
    assert_fits(shown.out)
    assert shown.err == ""


def _long(name: str) -> str:
    return f"https://docs.example.org/guides/of/many/things/第二版/{name}"


def assert_fits(text: str) -> None:
    too_wide = [line for line in text.splitlines() if cell_len(line) > WIDTH]
    assert not too_wide, too_wide
