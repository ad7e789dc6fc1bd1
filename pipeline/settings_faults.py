"""Put what pydantic found wrong into one line a fault, for the person who has to mend it."""

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from pipeline.settings import ENVIRONMENT_ONLY
from pipeline.settings_schema import (
    Node,
    dotted_keys,
    expectation,
    is_secret,
    keys_of,
    kinds_of,
    node_at,
    written,
)

LONGEST_VALUE = 60
"""Characters of a wrong value that a message quotes."""

SourceOf = Callable[[str], str]
"""Dotted key -> the file's name or "environment DATABASE_URL"."""

Location = tuple[str | int, ...]


def explain(error: ErrorDetails, source_of: SourceOf) -> str:
    """Return "recallwatch.toml: eval.k: must be an integer from 1 to 1000, not 0"."""
    location = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return unknown_key(location, source_of)
        case "union_tag_invalid" | "union_tag_not_found":
            return _wrong_kind(error, source_of)
        case "value_error":
            return _broken_rule(error, source_of)
    if location[-1] == "[key]":
        return _wrong_name(location, source_of)
    node = node_at(location)
    must = f"must be {expectation(node)}" if node else error["msg"]
    return f"{_place(location, source_of)}: {must}{_given(error, node)}"


def _given(error: ErrorDetails, node: Node | None) -> str:
    if error["type"] == "missing":
        return ", but it is missing"
    return "" if is_secret(node) else f", not {_quoted(error['input'])}"


def unknown_key(location: Location, source_of: SourceOf) -> str:
    """Return the line for a key that there is not: what may stand there, and what was meant."""
    *table, key = location
    node = node_at(table)
    allowed = [k for k in keys_of(node or {}) if k not in ENVIRONMENT_ONLY]
    near = get_close_matches(str(key), allowed, n=1) or _elsewhere(str(key))
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{_place(location, source_of)}: unknown key{hint} (allowed: {', '.join(allowed)})"


def _elsewhere(key: str) -> list[str]:
    """Return the full names of keys so called in other tables: `k` is `eval.k`."""
    return [name for name in dotted_keys() if name.rpartition(".")[2] == key]


def _wrong_kind(error: ErrorDetails, source_of: SourceOf) -> str:
    kinds = kinds_of(node_at(error["loc"]) or {})
    missing = error["type"] == "union_tag_not_found"
    given = "but it is missing" if missing else f"not {_quoted(error['ctx']['tag'])}"
    place = _place((*error["loc"], "kind"), source_of)
    return f"{place}: must be one of {', '.join(kinds)}, {given}"


def _broken_rule(error: ErrorDetails, source_of: SourceOf) -> str:
    """Quote a validator of ours; one that looks at several tables names the key itself."""
    reason = str(error["ctx"]["error"])
    if error["loc"]:
        return f"{_place(error['loc'], source_of)}: {reason}"
    key, _, reason = reason.partition(": ")
    return f"{source_of(key.partition('[')[0])}: {key}: {reason}"


def _wrong_name(location: Location, source_of: SourceOf) -> str:
    *table, name, _ = location
    names = (node_at(table) or {}).get("propertyNames", {}).get("enum")
    if names:
        return f"{_place((*table, name), source_of)}: must be one of {', '.join(names)}"
    return (
        f"{_place((*table, name), source_of)}: a name must be letters, digits, - and _, "
        "100 at most, the first a letter or digit"
    )


def _place(location: Sequence[str | int], source_of: SourceOf) -> str:
    key = _dotted(location)
    return f"{source_of(key.partition('[')[0])}: {key}"


def _dotted(location: Sequence[str | int]) -> str:
    """Write a location as its key in the file."""
    section, *rest = written(location)
    steps = (f"[{s}]" if isinstance(s, int) else f".{_toml_key(s)}" for s in rest)
    return _toml_key(str(section)) + "".join(steps)


def _toml_key(key: str) -> str:
    """Quote a key as TOML would have it quoted."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _quoted(value: Any) -> str:  # noqa: ANN401 - whatever the user wrote
    """Write a value much as TOML does, on one line, not too long."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except TypeError:
        text = str(value)
    except (ValueError, RecursionError):
        return "one beyond measure"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."
