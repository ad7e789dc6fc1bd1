"""A bar chart of a few numbers in a terminal: block characters, or ASCII where there are none."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

ROWS = 6

LEAST_SPAN = 0.02
"""The least that the axis covers, so that noise does not look like a cliff."""

LABEL_WIDTH = 8
"""Columns of the axis and its labels."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a chart: nine fillings of a cell from empty to full, line, axis, tick."""

    fillings: str
    line: str
    axis: str
    tick: str

    def fit(self, encoding: str) -> bool:
        """Say whether an encoding has all of them."""
        try:
            f"{self.fillings}{self.line}{self.axis}{self.tick}".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True


BLOCKS = Glyphs(fillings=" ▁▂▃▄▅▆▇█", line="─", axis="│", tick="┤")
ASCII = Glyphs(fillings=" ..::==##", line="-", axis="|", tick="+")


@dataclass(frozen=True, slots=True)
class Bar:
    """A number and how it is marked; `value` None is a gap."""

    value: float | None
    symbol: str
    style: str = ""


def span(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis for shares: the least and the largest, `LEAST_SPAN` apart."""
    low, high = min(values), max(values)
    if high - low >= LEAST_SPAN:
        return low, high
    start = min(max(0.0, (low + high - LEAST_SPAN) / 2), 1 - LEAST_SPAN)
    return start, start + LEAST_SPAN


def room(width: int) -> int:
    """Return how many bars a chart of that many columns can hold."""
    return width - LABEL_WIDTH - 1


def chart(
    bars: Sequence[Bar], mark: float | None, *, width: int, glyphs: Glyphs
) -> list[Text]:  # fmt: skip
    """Return the lines of a chart, its symbols last; `mark` is a line to hold the bars against.

    Raises ValueError when there is no value at all.
    """
    known = [bar.value for bar in bars if bar.value is not None]
    low, high = span(known if mark is None else [*known, mark])
    heights = [None if bar.value is None else _height(bar.value, low, high) for bar in bars]
    gap = " " if 2 * len(bars) <= room(width) else ""
    marked = None if mark is None else (_height(mark, low, high) - 1) // 8
    labels = {0: low, ROWS - 1: high}
    lines = []
    for row in reversed(range(ROWS)):
        line = Text(_label(labels.get(row), glyphs))
        blank = glyphs.line if row == marked else " "
        for bar, height in zip(bars, heights, strict=True):
            line.append(_cell(height, row, glyphs, blank), style=bar.style)
            line.append(blank if gap else "")
        line.rstrip()
        lines.append(line)
    symbols = Text(" " * LABEL_WIDTH)
    for bar in bars:
        symbols.append(bar.symbol, style=bar.style)
        symbols.append(gap)
    symbols.rstrip()
    return [*lines, symbols]


def _height(value: float, low: float, high: float) -> int:
    """Return a bar's height in eighths of a row, from 1: the least value shows too."""
    return 1 + round((value - low) / (high - low) * (8 * ROWS - 1))


def _label(value: float | None, glyphs: Glyphs) -> str:
    if value is None:
        return f"{glyphs.axis:>{LABEL_WIDTH}}"
    return f"{value:.4f} {glyphs.tick}".rjust(LABEL_WIDTH)


def _cell(height: int | None, row: int, glyphs: Glyphs, blank: str) -> str:
    filled = 0 if height is None else min(max(height - 8 * row, 0), 8)
    return glyphs.fillings[filled] if filled else blank
