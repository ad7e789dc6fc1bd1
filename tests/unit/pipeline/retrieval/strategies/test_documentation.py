"""The settings that docs show are settings that there are."""

import re
import tomllib
from typing import Any

import pytest
from pydantic import TypeAdapter

from pipeline.retrieval.strategies import BUILT_IN, Strategy, check_parts
from tests.conftest import REPOSITORY

PAGES = ("strategies.md", "http_examples.md", "own_retriever.md")

_STRATEGIES: TypeAdapter[dict[str, Strategy]] = TypeAdapter(dict[str, Strategy])


def examples(page: str) -> list[dict[str, Any]]:
    """Return what each TOML example of a page says under [strategies]."""
    text = (REPOSITORY / "docs" / page).read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [found["strategies"] for found in map(tomllib.loads, blocks) if "strategies" in found]


@pytest.mark.parametrize("page", PAGES)
def test_each_example_is_valid_and_names_strategies_that_there_are(page: str) -> None:
    shown = [_STRATEGIES.validate_python(example) for example in examples(page)]
    assert shown
    together = {name: strategy for example in shown for name, strategy in example.items()}
    check_parts(BUILT_IN | together)
