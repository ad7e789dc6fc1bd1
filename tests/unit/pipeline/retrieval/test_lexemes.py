"""Which lexemes a question keeps, and the query that is made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.lexemes import KEPT_AT_LEAST, tsquery, without_frequent

LEXEMES = st.lists(st.sampled_from("abcdefghij"), min_size=1, unique=True)
COUNTS = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(1, 100))


@given(lexemes=LEXEMES, frequent=COUNTS)
def test_frequent_lexemes_are_left_out_where_others_remain(
    lexemes: list[str], frequent: dict[str, int]
) -> None:
    kept = without_frequent(lexemes, frequent)
    rare = set(lexemes) - set(frequent)
    if rare:
        assert set(kept) == rare


@given(lexemes=LEXEMES, frequent=COUNTS)
def test_a_question_of_frequent_lexemes_alone_keeps_the_rarest(
    lexemes: list[str], frequent: dict[str, int]
) -> None:
    if set(lexemes) - set(frequent):
        return
    kept = without_frequent(lexemes, frequent)
    assert len(kept) == min(KEPT_AT_LEAST, len(lexemes))
    left_out = set(lexemes) - set(kept)
    assert all(frequent[k] <= frequent[out] for k in kept for out in left_out)


def test_equally_frequent_lexemes_are_kept_in_alphabetical_order() -> None:
    frequent = dict.fromkeys("zyxwv", 7)
    assert without_frequent(list("zyxwv"), frequent) == ["v", "w", "x"]


@pytest.mark.parametrize(
    ("lexemes", "any_of", "all_of"),
    [
        (["run"], "'run'", "'run'"),
        (["run", "fast"], "'run' | 'fast'", "'run' & 'fast'"),
        (["o'neil", "c:\\dir"], "'o''neil' | 'c:\\\\dir'", "'o''neil' & 'c:\\\\dir'"),
        (["a|b", "!c"], "'a|b' | '!c'", "'a|b' & '!c'"),
    ],
)
def test_lexemes_are_quoted_and_joined(lexemes: list[str], any_of: str, all_of: str) -> None:
    assert tsquery(lexemes, "any") == any_of
    assert tsquery(lexemes, "all") == all_of
