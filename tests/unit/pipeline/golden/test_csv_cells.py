"""Cells that spreadsheets do not run, and the texts that come back from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.csv_cells import guard, unguard

STARTS = st.sampled_from(["", "'", "''", "=", "+", "-", "@", "\t", "\r", "\n", " =", "'=", "' -"])
TEXTS = st.builds(lambda start, rest: start + rest, STARTS, st.text())


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert unguard(guard(text)) == text


@given(TEXTS, TEXTS)
def test_no_two_texts_share_a_cell(first: str, second: str) -> None:
    assert (guard(first) == guard(second)) == (first == second)


@given(TEXTS)
def test_no_cell_begins_with_what_starts_a_formula(text: str) -> None:
    assert not guard(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("text", [
    "=HYPERLINK(A1)", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1+1", "＝1+1",  # noqa: RUF001
])  # fmt: skip
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert guard(text) == "'" + text


@pytest.mark.parametrize("text", ["What does 1 + 1 = mean?", "'quoted' words", "a-b", "1", ""])
def test_a_text_that_is_no_formula_is_written_as_it_is(text: str) -> None:
    assert guard(text) == text


def test_a_formula_that_a_person_typed_unguarded_is_read_as_it_stands() -> None:
    assert unguard("=A1") == "=A1"
