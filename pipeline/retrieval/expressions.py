"""JMESPath expressions of the settings: checked once, then applied to JSON."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator

from pipeline.settings_types import Visible


class ExpressionError(ValueError):
    """An expression cannot be applied to what there is."""


def _check(text: str) -> str:
    compiled(text)
    return text


Expression = Annotated[Visible, AfterValidator(_check)]
"""A JMESPath expression, https://jmespath.org/specification.html."""


def compiled(text: str) -> Any:  # noqa: ANN401 - jmespath's own, which has no public name
    """Return an expression, ready to be applied; raises ValueError, in a line, where it is none."""
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        # The library draws the place below: the first lines say what is wrong.
        reason = " ".join(str(error).splitlines()[0].split()).rstrip(":")
        raise ValueError(f"is no JMESPath expression: {reason}") from None


def apply(text: str, value: object) -> Any:  # noqa: ANN401 - any JSON
    """Apply an expression to JSON; raises ExpressionError where its functions refuse the values."""
    try:
        return compiled(text).search(value)
    except JMESPathError as error:
        reason = " ".join(str(error).split())
        raise ExpressionError(f"{text} cannot be applied: {reason}") from None


def mentions(text: str, field: str) -> bool:
    """Return whether an expression reads a field of this name, wherever that is."""
    return field in _fields(compiled(text).parsed)


def _fields(node: Mapping[str, Any]) -> Iterator[str]:
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _fields(child)
