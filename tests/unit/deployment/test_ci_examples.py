"""The CI jobs that the README shows: commands that are ours, verdicts that count, reports kept."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.unit.deployment.commands import is_recallwatch
from tests.unit.deployment.files import read

Tree = Any


def blocks() -> list[dict[str, Tree]]:
    """Return the README's YAML blocks."""
    found = re.findall(r"```yaml\n(.*?)```", read("README.md"), re.DOTALL)
    return [yaml.safe_load(text) for text in found]


GITHUB, GITLAB = blocks()
STEPS = GITHUB["jobs"]["recallwatch"]["steps"]
SCRIPTS = [*(step["run"] for step in STEPS if "run" in step), *GITLAB["recallwatch"]["script"]]


def ours() -> Iterator[list[str]]:
    for script in SCRIPTS:
        for line in script.splitlines():
            if line.startswith("recallwatch "):
                yield shlex.split(line)


def keys(tree: Tree) -> set[object]:
    """Return all keys of a YAML tree."""
    if isinstance(tree, list):
        return set().union(*map(keys, tree))
    return set(tree).union(*map(keys, tree.values())) if isinstance(tree, dict) else set()


def test_each_job_evaluates_with_options_that_there_are() -> None:
    commands = list(ours())
    assert [words[:2] for words in commands] == [["recallwatch", "eval"]] * 2
    for words in commands:
        assert is_recallwatch(words)
        assert "--ci" in words


def test_each_job_keeps_the_report_whatever_the_verdict() -> None:
    written = {words[words.index("--junit") + 1] for words in ours()}
    (kept,) = [
        step for step in STEPS if step.get("uses", "").startswith("actions/upload-artifact@")
    ]
    assert kept["if"] == "always()"
    assert {kept["with"]["path"]} == written
    artifacts = GITLAB["recallwatch"]["artifacts"]
    assert artifacts["when"] == "always"
    assert {artifacts["reports"]["junit"]} == written


@pytest.mark.parametrize("file", [GITHUB, GITLAB])
def test_a_regression_is_not_let_through(file: dict[str, Tree]) -> None:
    assert not {"continue-on-error", "allow_failure"} & keys(file)
    assert not [script for script in SCRIPTS if "||" in script]


def test_no_address_or_password_stands_in_a_job() -> None:
    environment = GITHUB["jobs"]["recallwatch"]["env"]
    assert set(environment) == {"DATABASE_URL", "CORPUS_URL"}
    for value in environment.values():
        assert re.fullmatch(r"\$\{\{ secrets\.\w+ \}\}", value)
    assert "variables" not in GITLAB["recallwatch"]


def test_actions_are_taken_at_a_version_and_with_the_least_rights() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in used)
    assert GITHUB["permissions"] == {"contents": "read"}


def test_what_is_installed_is_what_the_lock_says() -> None:
    (install,) = [script for script in SCRIPTS if "pip install" in script]
    folder = next(step["with"]["path"] for step in STEPS if "path" in step.get("with", {}))
    first, second = map(shlex.split, install.splitlines())
    assert "--require-hashes" in first
    assert first[-1] == f"{folder}/requirements.lock"
    assert second[-1] == f"./{folder}"
    assert "--no-deps" in second
