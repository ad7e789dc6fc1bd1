import re

import pytest
from hypothesis import given

from pipeline.text import is_blank, normalised
from tests.unit.pipeline.golden.strategies import TEXT, VISIBLE_TEXT, patiently


@patiently
@given(text=TEXT)
def test_a_text_is_blank_when_nothing_of_it_is_left_by_normalising(text: str) -> None:
    assert is_blank(text) == (not normalised(text))


@patiently
@given(text=VISIBLE_TEXT)
def test_normalising_is_idempotent_and_leaves_single_spaces_between_words(text: str) -> None:
    once = normalised(text)
    assert normalised(once) == once
    assert not re.search(r"\s\s|^\s|\s$|[^\S ]", once)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" a \t\r\n b ", "a b"),
        ("\ufeffa\u200bb\u2060", "ab"),
        ("e\u0301", "\u00e9"),
        ("e\u200d\u0301", "\u00e9"),
        ("US", "US"),
    ],
)
def test_normalised_texts(text: str, expected: str) -> None:
    assert normalised(text) == expected
