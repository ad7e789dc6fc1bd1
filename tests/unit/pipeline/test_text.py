import re

import pytest
from hypothesis import given

from pipeline.text import holds_invisible, is_blank, is_composed, normalised
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


@patiently
@given(text=TEXT)
def test_a_text_that_normalising_only_trims_holds_nothing_odd(text: str) -> None:
    odd = holds_invisible(text) or not is_composed(text)
    assert odd == (normalised(text) != " ".join(text.split()))


@pytest.mark.parametrize("text", ["a\u200bb", "\ufeff", "\u200d", "\u2060"], ids=ascii)
def test_what_nobody_sees_is_found(text: str) -> None:
    assert holds_invisible(text)
    assert not holds_invisible("a b\u00a0c")


def test_a_letter_beside_its_accent_is_not_composed() -> None:
    assert (is_composed("e\u0301"), is_composed("\u00e9")) == (False, True)
