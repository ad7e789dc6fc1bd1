"""docs/security.md promises nothing without a test."""

import ast
import re
from pathlib import Path

import pytest

from pipeline.alerts.http import LARGEST_ANSWER
from pipeline.corpus.managed import MAX_INDEXED_DIMENSIONS
from pipeline.corpus.reading import MAX_CONTENT_BYTES, MAX_DIMENSIONS
from pipeline.golden.duplicates import MAX_QUESTIONS
from pipeline.golden.judgments import MAX_KEYS
from pipeline.lines import MAX_LINE_BYTES
from pipeline.secret_files import MAX_BYTES
from pipeline.settings import EvalSettings
from pipeline.settings_sources import MAX_FILE_BYTES
from pipeline.settings_types import MAX_K
from pipeline.text import MAX_NAME_BYTES, MAX_QUESTION_CHARACTERS
from tests.conftest import REPOSITORY
from tests.unit.deployment.files import read

PAGE = read("docs/security.md")
NAMED = re.findall(r"`((?:unit|integration|acceptance)/[\w/]+\.py)::(\w+)`", PAGE)


def functions_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists() -> None:
    assert len(NAMED) > 40
    assert PAGE.count("::") == len(NAMED)
    missing = [
        f"{file}::{name}"
        for file, name in NAMED
        if name not in functions_in(REPOSITORY / "tests" / file)
    ]
    assert missing == []


def test_every_promise_in_a_list_names_a_test() -> None:
    items = re.findall(r"^- (.*?)(?=^- |^$)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(items) > 15
    assert [item for item in items if "::" not in item] == []


@pytest.mark.parametrize(
    "line",
    [
        f"| a line of a file | {MAX_LINE_BYTES // 2**20} MiB |",
        f"| recallwatch.toml | {MAX_FILE_BYTES // 2**20} MiB |",
        f"| a file that holds a secret | {MAX_BYTES // 2**10} KiB |",
        f"| a question | {MAX_QUESTION_CHARACTERS:,} characters |",
        f"| a key, a label | {MAX_NAME_BYTES:,} bytes |",
        f"| keys that a question expects | {MAX_KEYS:,} |",
        f"| questions in a set, and so in a run | {MAX_QUESTIONS:,} |",
        f"| a chunk's text | {MAX_CONTENT_BYTES // 2**20} MiB |",
        f"| a vector | {MAX_DIMENSIONS:,} dimensions; {MAX_INDEXED_DIMENSIONS:,} with an index |",
        f"| k | {MAX_K:,} |",
        f"| a hook's refusal, as far as it is read | {LARGEST_ANSWER // 2**10} KiB |",
    ],
)
def test_the_page_says_how_large_things_may_be(line: str) -> None:
    assert line in PAGE


def test_the_page_says_how_large_a_shard_may_be() -> None:
    EvalSettings(shard_size=10_000)
    with pytest.raises(ValueError, match="shard_size"):
        EvalSettings(shard_size=10_001)
    assert "| questions in a shard | 10,000 |" in PAGE
