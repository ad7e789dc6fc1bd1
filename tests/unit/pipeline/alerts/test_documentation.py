"""docs/alerts.md against the code: a receiver is written by what it says."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from pipeline.alerts.message import Alert, LostQuestion, Severity, WiderSearch
from pipeline.alerts.settings import AlertSettings
from pipeline.alerts.webhook import SCHEMA, SIGNATURE, body
from pipeline.types import AlertKind
from pipeline.verdict.compare import CategoryChange, Change, ExactComparison
from pipeline.verdict.gate import Finding
from tests.conftest import REPOSITORY
from tests.unit.pipeline.alerts.examples import regressed

PAGE = (REPOSITORY / "docs/alerts.md").read_text()

NAMES: Mapping[type, tuple[str, str]] = {
    Finding: ("finding", "findings"),
    Change: ("change", "changes"),
    ExactComparison: ("exact search", ""),
    WiderSearch: ("wider search", ""),
    CategoryChange: ("category", "categories"),
    LostQuestion: ("lost question", "lost questions"),
    str: ("string", "strings"),
    int: ("integer", "integers"),
    float: ("number", "numbers"),
    bool: ("boolean", "booleans"),
}
"""How the page names a type, one and many."""

COMPUTED: Mapping[type, dict[str, Any]] = {Change: {"difference": float}, Alert: {"schema": str}}
"""What the JSON holds beside the class's own fields."""


def named(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """Return how the page says what an annotation says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        (other,) = [each for each in arguments if each is not NoneType]
        return f"{named(other)} or null"
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"list of {len(arguments)} {NAMES[arguments[0]][1]}"
    if origin in {tuple, Sequence}:
        return f"list of {NAMES[arguments[0]][1]}"
    if origin is Mapping:
        return "object"
    return "string" if issubclass(hint, StrEnum) else NAMES[hint][0]


def enum_of(hint: Any) -> type[StrEnum] | None:  # noqa: ANN401 - an annotation
    for each in (hint, *get_args(hint)):
        if isinstance(each, type) and issubclass(each, StrEnum):
            return each
    return None


def table_after(line: str) -> dict[str, tuple[str, str]]:
    """Return field -> type and meaning, of the first table after a line that starts so."""
    lines = PAGE[PAGE.index(f"\n{line}") :].splitlines()
    start = lines.index("| field | type | meaning |") + 2
    rows = {}
    for row in lines[start:]:
        if not row.startswith("|"):
            break
        _, name, kind, meaning, _ = (cell.strip() for cell in row.split("|"))
        rows[name.strip("`")] = (kind, meaning)
    return rows


@pytest.mark.parametrize(
    ("of", "heading", "example"),
    [
        (Alert, "### Body", json.loads(body(regressed()))),
        *(
            (of, f"{article}{NAMES[of][0]}:".capitalize(), example)
            for of, article, example in (
                (Finding, "a ", regressed().to_json()["findings"][0]),
                (Change, "a ", regressed().to_json()["changes"][0]),
                (ExactComparison, "", regressed().to_json()["exact"]),
                (WiderSearch, "a ", regressed().to_json()["ef_search"]),
                (CategoryChange, "a ", regressed().to_json()["categories"][0]),
                (LostQuestion, "a ", regressed().to_json()["lost_questions"][0]),
            )
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_page_lists_the_fields_types_and_values_that_are_sent(
    of: type, heading: str, example: Mapping[str, Any]
) -> None:
    documented = table_after(heading)
    hints = get_type_hints(of) | COMPUTED.get(of, {})

    assert documented.keys() == example.keys() == hints.keys()
    for name, (kind, meaning) in documented.items():
        assert kind == named(hints[name]), name
        values = enum_of(hints[name])
        if values:
            quoted = set(re.findall("`([^`]+)`", meaning))
            assert quoted == {member.value for member in values}, name


def test_the_settings_on_the_page_load() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

    settings = AlertSettings.model_validate(tomllib.loads(block)["alerts"])

    assert [channel.kind for channel in settings.channels.values()] == ["slack", "email", "webhook"]


def test_the_page_names_the_schema_the_headers_and_every_kind_and_severity() -> None:
    assert table_after("### Body")["schema"][1] == f"`{SCHEMA}`"
    assert f"| `{SIGNATURE}` |" in PAGE
    for kind in AlertKind:
        assert f"\n| `{kind}` |" in PAGE
    assert all(severity in PAGE for severity in Severity)
