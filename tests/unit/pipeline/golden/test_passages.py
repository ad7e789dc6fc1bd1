"""Texts compared by their windows, against difflib and plain string search."""

from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.passages import WINDOW, aligned, squash, window_hashes, window_of

LETTERS = st.text(alphabet="abç語\U0001f40b", max_size=60)


def covered(text: str, other: str, window: int = 4) -> list[str]:
    return [text[first : first + n] for first, _, n in aligned(text, other, window).tolist()]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A  page\n\nof text", "A page of text"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ufeffzero\u200bwidth", "zerowidth"),
        ("ﬁne", "FINE"),
    ],
)
def test_texts_that_look_the_same_are_squashed_to_the_same(one: str, other: str) -> None:
    assert squash(one) == squash(other)


@given(text=LETTERS, window=st.integers(1, 8))
def test_windows_have_equal_hashes_where_they_are_equal(text: str, window: int) -> None:
    windows = [text[i : i + window] for i in range(len(text) - window + 1)]

    hashes = window_hashes(text, window).tolist()

    assert len(hashes) == len(windows)
    assert len(set(hashes)) == len(set(windows))


@given(text=LETTERS, other=LETTERS)
def test_passages_are_in_both_texts_in_order_and_do_not_overlap(text: str, other: str) -> None:
    found = aligned(text, other, 3).tolist()

    ends = (0, 0)
    for first, there, length in found:
        assert text[first : first + length] == other[there : there + length]
        assert first >= ends[0]
        assert there >= ends[1]
        ends = (first + length, there + length)


@given(text=st.text(alphabet="abcdefgh", min_size=4, max_size=60), other=LETTERS)
def test_the_longest_passage_is_the_one_that_difflib_finds(text: str, other: str) -> None:
    window = 4
    mixed = other + text[len(text) // 3 :] + other
    longest = SequenceMatcher(None, text, mixed, autojunk=False).find_longest_match()

    found = [length for _, _, length in aligned(text, mixed, window).tolist()]

    assert max(found, default=0) == (longest.size if longest.size >= window else 0)


@given(text=LETTERS, before=LETTERS, after=LETTERS)
def test_a_text_that_is_there_whole_is_covered_whole(text: str, before: str, after: str) -> None:
    assert covered(text, before + text + after) == [text]


def test_a_typo_leaves_the_rest_covered() -> None:
    text = "the warranty covers three years of use".replace(" ", "")

    assert covered(text, text.replace("three", "thrxe")) == [
        "thewarrantycoversthr", "eyearsofuse",
    ]  # fmt: skip


def test_a_text_that_repeats_itself_is_covered_once_by_one_copy() -> None:
    text = "alphabeta" * 20

    assert sum(map(len, covered(text, "alphabeta" * 5, 8))) == 45


def test_windows_are_short_for_short_texts_alone() -> None:
    assert [window_of(n) for n in (0, 40, 10_000)] == [3, 5, WINDOW]
    assert window_hashes("", 3).dtype == np.uint64
