"""What bench.verdicts writes: its figures in short, and where the promise is missed."""

import pytest

from bench.page import with_section
from bench.verdict_page import DROPS, Line, Table, percent, promise, summary
from bench.verdict_rebuilds import windows
from bench.verdict_rules import Rule


def line(rule: Rule, alarm: float, n: int = 200) -> Line:
    return Line(n, rule, alarm, [0.1] * len(DROPS))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0"), (1e-9, "<0.01"), (0.0013, "0.13"), (0.049, "4.9"), (0.0998, "10"), (0.4925, "49"),
        (0.999, ">99"), (1, "100"),
    ],
)  # fmt: skip
def test_shares_are_short_and_never_rounded_to_never_or_always(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_missed_promise_is_named_with_its_figures() -> None:
    assert promise([line(Rule.MANY, 0.001), line(Rule.PLAIN, 0.5)]).endswith("Kept.\n")
    missed = promise([line(Rule.MANY, 0.0005), line(Rule.MANY, 0.02, n=500)])
    assert missed.endswith("Missed: 65 % at n = 500.\n")


def test_a_table_fits_eighty_columns() -> None:
    table = Table("1 %", [line(rule, 0.999, n=1000) for rule in Rule])
    rows = table.text().splitlines()
    assert len([row for row in rows if row.startswith("|")]) == len(Rule) + 2
    assert max(map(len, rows)) <= 80


def test_the_summary_has_a_row_a_table() -> None:
    tables = [Table(title, [line(rule, 0.01) for rule in Rule]) for title in ("0 %", "1 %")]
    assert "1 %                          | 41 / 10 / 10    |" in summary(tables)


def test_a_section_is_added_once_and_then_replaced_in_its_place() -> None:
    page = with_section("# Page\n", "one", "first")
    page = with_section(page, "two", "second\\1")
    again = with_section(page, "one", "new")
    assert page.startswith("# Page\n\n<!-- one: begin -->\nfirst\n<!-- one: end -->\n")
    assert "second\\1" in again
    assert "first" not in again
    assert again.index("new") < again.index("second")
    assert with_section(again, "one", "new") == again


def test_windows_overlap_by_half_and_leave_no_word_out() -> None:
    words = [str(number) for number in range(11)]
    cut = windows(" ".join(words), 4)
    assert cut[:2] == ["0 1 2 3", "2 3 4 5"]
    assert {word for part in cut for word in part.split()} == set(words)
    assert windows("one two", 4) == ["one two"]
