"""A message to Slack as a terminal can show it: the very blocks that would be posted, in order."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_BULLET = "• "
_CODE = re.compile(r"\*(?P<title>[^\n]*)\*\n```(?P<code>.*)```", re.DOTALL)
_LINK = re.compile(r"<(?P<url>[^|>]*)\|(?P<label>[^>]*)>")
_WORD_JOINER = "\u2060"


def preview(message: Mapping[str, Any], title: str) -> Panel:
    """Return the body of a POST, as `pipeline.alerts.slack_message` makes it, in a frame."""
    parts = [part for block in message["blocks"] for part in _block(block)]
    return Panel(Group(*parts), title=title, title_align="left", padding=(0, 1))


def _block(block: Mapping[str, Any]) -> Iterator[RenderableType]:
    if block["type"] == "header":
        yield Text(_shown(block["text"]), style="bold")
    elif block["type"] == "context":
        yield from (Text(_shown(element), style="dim") for element in block["elements"])
    elif "fields" in block:
        yield _fields(block["fields"])
    else:
        yield from _section(_shown(block["text"]))


def _shown(text: Mapping[str, Any]) -> str:
    """Return what Slack shows for a text object: it decodes three entities."""
    return html.unescape(text["text"]).replace(_WORD_JOINER, "")


def _fields(fields: Sequence[Mapping[str, Any]]) -> Table:
    """Lay the fields out side by side, two a row, as Slack does."""
    grid = Table.grid(padding=(0, 2))
    cells = [_field(*_shown(field).split("\n")) for field in fields]
    for first in range(0, len(cells), 2):
        grid.add_row(*cells[first : first + 2])
    return grid


def _field(name: str, figures: str) -> Text:
    return Text.assemble((name.strip("*"), "bold"), " ", figures)


def _section(text: str) -> Iterator[RenderableType]:
    if found := _CODE.fullmatch(text):
        yield Text(f"{found['title']}:", style="bold")
        yield Padding(Text(found["code"]), (0, 0, 0, 2), expand=False)
    elif found := _LINK.fullmatch(text):
        yield Text(f"{found['label']}: {found['url']}")
    else:
        title, *lines = text.split("\n")
        yield Text(title, style="bold" if lines else "")
        yield from map(_item, lines)


def _item(line: str) -> Table:
    """Return a line of a list, which goes on under its own beginning."""
    grid = Table.grid()
    grid.add_row(Text(_BULLET), Text(line.removeprefix(_BULLET)))
    return grid
