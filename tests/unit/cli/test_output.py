"""What commands print: JSON that loses nothing, tables that fit, no escape codes."""

import io
import json
import math
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.output import Column, clean, make_console, one_line, print_json, progress, table, to_json
from pipeline.types import Level, Verdict

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@dataclass
class Run:
    id: int
    level: Level
    metrics: dict[str, float]


def printed(made: Table, width: int = 80) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, markup=False).print(made)
    return file.getvalue().splitlines()


@given(JSON_VALUES)
def test_json_loses_nothing(value: object) -> None:
    assert json.loads(to_json(value)) == value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_holds_no_character_that_a_terminal_acts_on(text: str) -> None:
    line = to_json({"text": text})
    assert clean(line) == line
    assert "\n" not in line
    assert json.loads(line) == {"text": text}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Verdict.REGRESSED, "regressed"),
        ({Level.CHUNK: 1}, {"chunk": 1}),
        (np.float64(0.1), 0.1),
        (np.int64(3), 3),
        (np.bool_(True), True),  # noqa: FBT003 - numpy's own
        (np.array([[1.5, 2.0]]), [[1.5, 2.0]]),
        (math.nan, None),
        (np.array([math.inf]), [None]),
        (datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), "2026-01-02T03:04:05.000678Z"),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-02T01:04:05Z",
        ),
        (date(2026, 1, 2), "2026-01-02"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        ((1, 2), [1, 2]),
        (Run(1, Level.CHUNK, {"recall@5": 0.5}), {"id": 1, "level": "chunk",
                                                  "metrics": {"recall@5": 0.5}}),
    ],
)  # fmt: skip
def test_json_writes_the_types_of_our_records(value: object, expected: object) -> None:
    assert json.loads(to_json(value)) == expected


def test_json_keeps_full_precision_and_the_order_of_keys() -> None:
    third = 1 / 3
    assert to_json({"b": third, "a": np.float64(third)}) == f'{{"b": {third!r}, "a": {third!r}}}'


@pytest.mark.parametrize("value", [object(), datetime(2026, 1, 1)])  # noqa: DTZ001 - the point
def test_json_refuses_what_it_cannot_say(value: object) -> None:
    with pytest.raises(TypeError):
        to_json(value)


def test_print_json_prints_indented_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"texts": ["ação"]})
    assert capsys.readouterr().out == '{\n  "texts": [\n    "ação"\n  ]\n}\n'


def test_one_line_joins_lines_and_drops_controls() -> None:
    assert one_line("a\n\n b\x1b[1m\tc ") == "a b[1m c"


@pytest.mark.parametrize("wrap", [True, False])
def test_a_table_with_long_texts_fits_80_columns(wrap: bool) -> None:
    columns = [Column("id"), Column("question", wrap=wrap), Column("rank", right=True)]
    rows = [("doc:1", "long words of a question " * 20, 3), ("https://x/" + "y" * 200, "short", 4)]
    assert max(map(len, printed(table("failures", columns, rows)))) <= 80


def test_a_wrapping_column_gives_way_and_numbers_stay_whole() -> None:
    columns: list[str | Column] = [Column("question", wrap=True), Column("recall", right=True)]
    lines = printed(table(None, columns, [("word " * 60, "0.123456789")]))
    assert any("0.123456789" in line for line in lines)
    assert " ".join(lines).count("word") == 60


def test_a_column_is_cut_at_its_maximum_with_an_ellipsis() -> None:
    lines = printed(table(None, [Column("question", max_width=10)], [("abcdefghijklmnop",)]))
    assert any(line.strip() == "abcdefghi…" for line in lines)


def test_a_table_shows_data_as_it_is() -> None:
    made = table("t", ["text"], [("[red]x[/red] :smile:",), (None,), ("a\x1b[31m\nb",)])
    lines = [line.strip() for line in printed(made)]
    assert lines[-3:] == ["[red]x[/red] :smile:", "-", "a[31m b"]


def test_a_cell_of_styled_text_keeps_its_style() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", no_color=False)
    console.print(table(None, ["verdict"], [(Text("regressed", style="red"),)]))
    assert "\x1b[31mregressed" in file.getvalue()


def test_off_a_terminal_a_console_has_80_columns_and_no_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    console = make_console()
    console.print("[b]plain[/b]", style="red")
    assert console.width == 80
    assert capsys.readouterr().out == "[b]plain[/b]\n"


def test_no_color_is_honoured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's way to believe in a terminal
    console = make_console()
    assert console.is_terminal
    assert console.no_color


def test_progress_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("evaluating", 10) as bar:
        bar.advance()
        bar.move_to(10, total=12)
    captured: Any = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_progress_is_silent_in_a_log_that_shows_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("evaluating", 10) as bar:
        bar.move_to(10)
    assert make_console(stderr=True).is_terminal
    assert capsys.readouterr().err == ""


def test_progress_shows_on_standard_error_of_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("[questions]\x1b[2J", 10) as bar:
        bar.advance(3)
        bar.move_to(7)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[questions][2J" in captured.err
    assert "7/10" in captured.err


def test_a_console_prints_no_control_character_of_a_plain_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_console().print("a\x1b[2Jb\x07\u202e", Text("c"), soft_wrap=True)
    assert capsys.readouterr().out == "a[2Jb c\n"
