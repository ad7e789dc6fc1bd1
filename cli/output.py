"""How commands print: JSON, tables and progress.

Standard output carries the result; progress and errors go to standard error.
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Protocol
from uuid import UUID

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from pipeline.safe_text import CONTROLS, clean

__all__ = [
    "Column",
    "Progress",
    "clean",
    "make_console",
    "one_line",
    "print_json",
    "progress",
    "table",
    "to_json",
]

WIDTH = 80
"""Columns where the output is not a terminal."""

_ESCAPED_IN_JSON = re.compile(f"[{CONTROLS}]")


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - rich's signature
        """Print as rich does; a plain string loses its control characters first."""
        super().print(*(clean(o) if isinstance(o, str) else o for o in objects), **options)

    def on_broken_pipe(self) -> None:
        # rich would exit with 1, which is our "regressed"; cli.main knows the right way out.
        raise BrokenPipeError


def make_console(*, stderr: bool = False) -> Console:
    """Return a console: 80 columns and no colour off a terminal; NO_COLOR is honoured.

    Markup is off: "[red]" in a chunk's text is text.
    """
    console = _Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def one_line(text: str) -> str:
    """Return the text without control characters, each run of white space as one space."""
    return " ".join(clean(text).split())


def to_json(value: object, *, indent: int | None = None) -> str:
    """Return JSON that is safe to print; floats at full precision, keys in the order given.

    Datetimes become ISO 8601 in UTC, enums their value, numpy arrays lists. A float that is not
    finite becomes null: JSON has no word for it. Raises TypeError for what has no JSON form.
    """
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return _ESCAPED_IN_JSON.sub(_escape, text)


def print_json(value: object) -> None:
    """Print the value to standard output as indented JSON; see `to_json`."""
    click.echo(to_json(value, indent=2))


def _escape(match: re.Match[str]) -> str:
    # json.dumps breaks lines itself and escapes those of the data, so a raw one is never data.
    return f"\\u{ord(match.group()):04x}"


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever json.dumps takes
    """Turn a value into what the json module knows."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return _plain_container(value) if _is_container(value) else _plain_leaf(value)


def _is_container(value: object) -> bool:
    record = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return record or isinstance(value, Mapping | Sequence | set | frozenset)


def _plain_container(value: Any) -> dict[str, Any] | list[Any]:  # noqa: ANN401 - see _is_container
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]


def _plain_leaf(value: object) -> Any:  # noqa: ANN401 - whatever json.dumps takes
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID | PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # numpy's arrays and scalars, without importing numpy
        return _plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _utc(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise TypeError("a datetime without a time zone has no UTC form")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclasses.dataclass(frozen=True)
class Column:
    """A table's column; one that may `wrap` gives way so that the others keep their width."""

    name: str
    right: bool = False
    wrap: bool = False
    max_width: int | None = None


def table(
    title: str | None, columns: Sequence[str | Column], rows: Iterable[Sequence[object]]
) -> Table:
    """Return a table that fits the console it is printed on.

    Columns with `wrap` go over several lines; the others are cut with an ellipsis, at `max_width`
    or where nothing else helps. None is shown as "-". Cells that are rich's Text keep their style.
    """
    made = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for column in (Column(c) if isinstance(c, str) else c for c in columns):
        made.add_column(
            Text(column.name),
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.wrap else "ellipsis",
            max_width=column.max_width,
        )
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


def _cell(value: object) -> Text:
    if isinstance(value, Text):
        return value
    return Text("-" if value is None else one_line(str(value)))


class Progress(Protocol):
    """What `progress` hands out."""

    def advance(self, steps: int = 1) -> None:
        """Move on by this many steps."""

    def move_to(self, completed: int, total: int | None = None) -> None:
        """Set how many steps are done, and how many there are where that has changed."""


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Progress]:
    """Show a progress bar on standard error while the body runs; only on a terminal."""
    console = make_console(stderr=True)
    # Asked of the stream: FORCE_COLOR lets rich call a CI job's log a terminal.
    if not console.file.isatty():
        yield _Silent()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=console, transient=True) as bars:
        yield _Bar(bars, bars.add_task(one_line(description), total=total))


class _Silent:
    def advance(self, steps: int = 1) -> None:
        pass

    def move_to(self, completed: int, total: int | None = None) -> None:
        pass


class _Bar:
    def __init__(self, bars: RichProgress, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, steps: int = 1) -> None:
        self._bars.advance(self._task, steps)

    def move_to(self, completed: int, total: int | None = None) -> None:
        self._bars.update(self._task, completed=completed, total=total)
