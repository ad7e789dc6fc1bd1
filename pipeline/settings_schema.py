"""What the settings allow, read off the models' JSON schema and put into words.

The models say each rule once; the messages for wrong values are made from them here.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pipeline.settings import Settings

Node = Mapping[str, Any]
"""A JSON schema."""


@cache
def _schema() -> Node:
    return Settings.model_json_schema()


def node_at(location: Sequence[str | int]) -> Node | None:
    """Return the schema of what stands at a location as pydantic gives it, or None.

    Such a location holds the kind of a strategy or channel after its name:
    `("strategies", "mine", "vector", "ef_search")`.
    """
    node: Node | None = _resolve(_schema())
    for step in location:
        node = _step(node, step) if node is not None else None
    return node


def written(location: Sequence[str | int]) -> list[str | int]:
    """Return a location as the file has it: without the kinds that pydantic puts in."""
    kept: list[str | int] = []
    node: Node | None = _resolve(_schema())
    for step in location:
        if node is None or step not in kinds_of(node):
            kept.append(step)
        node = _step(node, step) if node is not None else None
    return kept


def kinds_of(node: Node) -> list[str]:
    """Return the kinds of a table that may be of several; none of any other."""
    return [_resolve(kind)["properties"]["kind"]["const"] for kind in node.get("oneOf", ())]


def keys_of(node: Node) -> list[str]:
    """Return the keys that a table may hold; none where the user makes up the names."""
    return list(node.get("properties", ()))


def is_secret(node: Node | None) -> bool:
    """Tell whether the value must not be shown."""
    return node is not None and node.get("format") == "password"


def dotted_keys() -> list[str]:
    """Return every key with a name of its own, as `eval.k`; named strategies are left out."""
    return [
        ".".join((top, *below))
        for top in keys_of(_schema())
        for below in [(), *((key,) for key in keys_of(_resolve(_schema()["properties"][top])))]
    ]


def expectation(node: Node) -> str:
    """Say what a value must be, as "an integer from 1 to 1000"."""
    if "enum" in node or "const" in node:
        return f"one of {', '.join(node.get('enum') or [node['const']])}"
    if node.get("type") == "array":
        least = " of at least one item" if node.get("minItems") else ""
        return f"a list{least}, each {expectation(_resolve(node['items']))}"
    words = {
        "integer": f"an integer{_bounds(node)}",
        "number": f"a number{_bounds(node)}",
        "boolean": "true or false",
        "string": f"a string{_lengths(node)}",
    }
    table = "a table of at least one key" if node.get("minProperties") else "a table"
    return words.get(str(node.get("type")), table)


def _resolve(node: Node) -> Node:
    """Follow references, and look through "or null"."""
    if "$ref" in node:
        return _resolve(_schema()["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return _resolve(next(n for n in node["anyOf"] if n.get("type") != "null"))
    return node


def _step(node: Node, step: str | int) -> Node | None:
    if isinstance(step, int):
        below = node.get("items")
    elif "oneOf" in node:
        kind = node["discriminator"]["mapping"].get(step)
        below = {"$ref": kind} if kind else None
    else:
        below = node.get("properties", {}).get(step) or node.get("additionalProperties")
        if not below and "patternProperties" in node:
            (below,) = node["patternProperties"].values()
    return _resolve(below) if below else None


def _bounds(node: Node) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    above = node.get("exclusiveMinimum")
    if above is not None:
        return f" above {above}" + (f", at most {high}" if high is not None else "")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else ""


def _lengths(node: Node) -> str:
    low, high = node.get("minLength"), node.get("maxLength")
    return f" of {low} to {high} characters" if low is not None and high is not None else ""
