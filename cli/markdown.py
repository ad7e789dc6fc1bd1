"""Markdown for pull requests and job summaries: figures in tables, texts of strangers as texts."""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from cli.changes import change_rows, ranks
from cli.output import Column
from cli.report import QUESTION_WIDTH, shorten, wider_note
from db.models import Run
from pipeline.verdict.compare import Comparison

_MARKS = re.compile(r"[\\`*_{}\[\]<>#|&~$]")
# With a word joiner behind it the @ of a mention looks the same and calls nobody.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_LIST_MARK = re.compile(r"^(\d*)([-+.)])")


def plain(text: str, width: int = QUESTION_WIDTH) -> str:
    """Return a text that Markdown shows as it is, on one line of at most `width` characters."""
    escaped = _MARKS.sub(r"\\\g<0>", _MENTION.sub("@\u2060", shorten(text, width)))
    return _LIST_MARK.sub(r"\1\\\2", escaped)


def table(columns: Sequence[str | Column], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table; cells are Markdown already, None is shown as "-"."""
    made = [Column(each) if isinstance(each, str) else each for each in columns]
    marks = "|".join("---:" if column.right else "---" for column in made)
    return [_row(column.name for column in made), f"|{marks}|", *map(_row, rows)]


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join("-" if cell is None else str(cell) for cell in cells) + " |"


def changes_table(run: Run, found: Comparison) -> list[str]:
    """Return the headline metrics of a run beside those of its reference."""
    figures = (f"run {found.reference}", f"run {run.id}", "difference", "95 % interval", "p")
    columns = (Column(name, right=True) for name in figures)
    return table(["metric", *columns], change_rows(run.k, found.changes))


def question_list(name: str, rows: Sequence[Any], k: int) -> list[str]:
    """Return "lost" or "won" questions as a list, each with its rank before and after."""
    found = [ranks(name, row, k) for row in rows]
    note = wider_note(itertools.chain(*found), k)
    items = [
        f"- {plain(row.text)} ({before or '-'} -> {after or '-'})"
        for row, (before, after) in zip(rows, found, strict=True)
    ]
    return [*items, *(["", plain(note)] if note else [])]
