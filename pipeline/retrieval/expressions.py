"""JMESPath expressions of the settings: checked once, then applied to JSON."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.parser import ParsedResult
from pydantic import AfterValidator

_RAISED = (JMESPathError, ArithmeticError, TypeError, ValueError)
"""By the library: it compares a text with a number, say, as Python does."""


class ExpressionError(ValueError):
    """An expression cannot be applied to what there is."""


def _check(text: str) -> str:
    if not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise ValueError("holds a character that cannot be seen: take it out")
    compiled(text)
    return text


Expression = Annotated[str, AfterValidator(_check)]
"""A JMESPath expression, https://jmespath.org/specification.html, on one line or several."""


def compiled(text: str) -> Any:  # noqa: ANN401 - jmespath's own, which has no public name
    """Return an expression, ready to be applied; raises ValueError, in a line, where it is none."""
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        # The library draws the place below: the first lines say what is wrong.
        reason = " ".join(str(error).splitlines()[0].split())
        reason = reason.removesuffix(":").removesuffix(", for expression")
        raise ValueError(f"is no JMESPath expression: {reason}") from None


def apply(text: str, value: object) -> Any:  # noqa: ANN401 - any JSON
    """Apply an expression to JSON; raises ExpressionError where its functions refuse the values."""
    try:
        return compiled(text).search(value)
    except _RAISED as error:
        shown = " ".join(text.split())
        raise ExpressionError(f"{shown} cannot be applied: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Say what is wrong without the value: it may be as long as a reply, and hold anything."""
    if isinstance(error, JMESPathTypeError):
        wanted = " or ".join(error.expected_types)
        return f"{error.function_name}() takes {wanted}, not {error.actual_type}"
    return " ".join(str(error).split())


def mentions(text: str, field: str) -> bool:
    """Return whether an expression reads a field of this name, wherever that is."""
    return any(_is_field(node, field) for node in _nodes(compiled(text).parsed))


def drops(text: str, field: str, element: object) -> bool:
    """Return whether an expression leaves such an element of a list out, where it goes through it.

    `list[*].x` holds nothing for an element whose x is null: what follows moves up.
    """
    return any(
        node["type"] == "projection"
        and _is_list(node["children"][0], field)
        and _is_null(ParsedResult(text, node["children"][1]), element)
        for node in _nodes(compiled(text).parsed)
    )


def picks(text: str, field: str) -> bool:
    """Return whether an expression reads one element of a list, as `list[0]` does."""
    return any(
        node["type"] == "index_expression"
        and _is_field(node["children"][0], field)
        and node["children"][1]["type"] == "index"
        for node in _nodes(compiled(text).parsed)
    )


def _is_field(node: Mapping[str, Any], name: str) -> bool:
    return node["type"] == "field" and bool(node["value"] == name)


def _is_list(node: Mapping[str, Any], name: str) -> bool:
    """Return whether a node is `name[*]` without the brackets, or `name[]`."""
    return _is_field(node["children"][0] if node["type"] == "flatten" else node, name)


def _is_null(expression: ParsedResult, value: object) -> bool:
    try:
        return expression.search(value) is None
    except _RAISED:  # told when it is applied
        return False


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        if isinstance(child, dict):  # those of a slice are numbers
            yield from _nodes(child)
