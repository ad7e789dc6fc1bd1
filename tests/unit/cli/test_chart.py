"""Bar charts of shares: what is drawn is in proportion, and fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from cli.chart import ASCII, BLOCKS, LABEL_WIDTH, LEAST_SPAN, ROWS, Bar, Glyphs, chart, room, span

SHARES = st.floats(0, 1)
SETS = (BLOCKS, ASCII)


def bars(*values: float | None) -> list[Bar]:
    return [Bar(value, ".") for value in values]


def drawn(lines: list[Text]) -> list[str]:
    """Return the plot without its axis, and without the row of symbols."""
    return [line.plain[LABEL_WIDTH:] for line in lines[:-1]]


def heights(lines: list[Text], n: int, step: int) -> list[int]:
    """Return each bar's height in eighths of a row, as the characters show it."""
    plot = [row.ljust(n * step) for row in drawn(lines)]
    return [
        sum(max(BLOCKS.fillings.find(row[column]), 0) for row in plot)
        for column in range(0, n * step, step)
    ]


@given(st.lists(SHARES, min_size=1, max_size=30))
def test_bars_are_as_high_as_their_values_are_along_the_axis(values: list[float]) -> None:
    found = heights(chart(bars(*values), None, width=80, glyphs=BLOCKS), len(values), 2)

    low, high = span(values)
    for value, height in zip(values, found, strict=True):
        assert 1 <= height <= 8 * ROWS
        assert (height - 1) / (8 * ROWS - 1) == pytest.approx(
            (value - low) / (high - low), abs=0.011
        )


@given(st.lists(SHARES, min_size=1))
def test_the_axis_holds_every_value_and_is_never_so_short_that_noise_looks_like_a_cliff(
    values: list[float],
) -> None:
    low, high = span(values)

    assert 0 <= low <= min(values)
    assert max(values) <= high + 1e-12
    assert high <= 1 + 1e-12
    assert high - low >= LEAST_SPAN - 1e-12


@pytest.mark.parametrize("glyphs", SETS)
@pytest.mark.parametrize("n", [1, 2, 35, 36, 71])
def test_a_chart_fits_its_width(n: int, glyphs: Glyphs) -> None:
    lines = chart(bars(*[0.5, 0.9] * n)[:n], 0.7, width=80, glyphs=glyphs)

    assert n <= room(80)
    assert len(lines) == ROWS + 1
    assert max(line.cell_len for line in lines) <= 80


@pytest.mark.parametrize("glyphs", SETS)
def test_a_gap_stays_empty_and_its_symbol_stands_under_it(glyphs: Glyphs) -> None:
    marked = [Bar(0.9, "."), Bar(None, "x", "red"), Bar(0.1, "R", "bold")]

    lines = chart(marked, None, width=80, glyphs=glyphs)

    assert {row.ljust(5)[2] for row in drawn(lines)} == {" "}
    assert lines[-1].plain == " " * LABEL_WIDTH + ". x R"
    assert [str(part.style) for part in lines[-1].spans] == ["red", "bold"]


@pytest.mark.parametrize("glyphs", SETS)
def test_the_ends_of_the_axis_are_said(glyphs: Glyphs) -> None:
    lines = chart(bars(0.25, 0.75), None, width=80, glyphs=glyphs)

    assert [line.plain[:LABEL_WIDTH] for line in (lines[0], lines[ROWS - 1])] == [
        f"0.7500 {glyphs.tick}", f"0.2500 {glyphs.tick}",
    ]  # fmt: skip
    assert {line.plain[:LABEL_WIDTH] for line in lines[1 : ROWS - 1]} == {f"       {glyphs.axis}"}


@pytest.mark.parametrize(("mark", "row"), [(1.0, 0), (0.0, ROWS - 1), (0.5, ROWS // 2 - 1)])
def test_the_mark_is_a_line_at_its_height_behind_the_bars(mark: float, row: int) -> None:
    plot = drawn(chart(bars(1.0, None, 0.0), mark, width=80, glyphs=BLOCKS))

    assert [number for number, line in enumerate(plot) if "─" in line] == [row]
    assert plot[row][0] == "█"
    assert plot[row][1:4] == "───"


def test_a_mark_outside_the_values_stretches_the_axis() -> None:
    lines = chart(bars(0.5), 0.9, width=80, glyphs=ASCII)

    assert lines[0].plain.startswith("0.9000 +-")


@pytest.mark.parametrize(
    ("encoding", "fits"),
    [("utf-8", True), ("ascii", False), ("latin-1", False), ("cp437", False), ("unknown-1", False)],
)
def test_blocks_are_for_terminals_that_can_show_them(encoding: str, fits: bool) -> None:
    assert BLOCKS.fit(encoding) is fits


def test_ascii_is_ascii() -> None:
    assert ASCII.fit("ascii")
    assert all(line.plain.isascii() for line in chart(bars(0.1, 0.9), 0.5, width=80, glyphs=ASCII))
