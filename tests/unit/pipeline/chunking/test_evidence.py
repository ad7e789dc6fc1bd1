import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunking.evidence import (
    Letters,
    Piece,
    Place,
    first_match,
    rank_held,
    share_held,
    within_budget,
)

PASSAGES = st.tuples(st.integers(0, 30), st.integers(1, 15)).map(lambda p: (p[0], p[0] + p[1]))
PIECES = st.lists(st.builds(lambda d, p: Piece(d, *p), st.integers(0, 1), PASSAGES), max_size=6)


def held_by_sets(places: list[Place], pieces: list[Piece]) -> float:
    """Say the definition another way: letter by letter."""
    have = {(each.document, n) for each in pieces for n in range(each.first, each.last)}
    shares = []
    for place in places:
        letters = {(place.document, n) for a, b in place.passages for n in range(a, b)}
        shares.append(len(letters & have) / len(letters))
    return max(shares, default=0.0)


def test_letters_are_counted_without_white_space() -> None:
    letters = Letters(" ab  cd\nef")

    assert letters.squashed == "abcdef"
    assert [letters.at(n) for n in range(11)] == [0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6]


@given(st.text(alphabet="aß Ⅷﬁ\n\u200b", max_size=30))
def test_the_letters_before_an_offset_never_grow_fewer(text: str) -> None:
    letters = Letters(text)
    counts = [letters.at(n) for n in range(len(text) + 1)]

    assert counts == sorted(counts)
    assert counts[-1] == len(letters.squashed)


def test_a_text_is_found_whatever_became_of_its_white_space() -> None:
    letters = Letters("Before it.  Blue\nwhales   sing songs. After it.")

    assert letters.passages_of("Blue whales sing songs.") == [(9, 29)]
    assert letters.passages_of("0123456789") == []
    assert letters.passages_of(" ") == []


def test_of_a_text_that_was_edited_what_is_left_of_it_is_found() -> None:
    letters = Letters("Blue whales sing long songs in winter.")

    assert letters.passages_of("Blue whales sing short songs in winter.") == [(0, 14), (18, 32)]


@given(
    st.lists(st.builds(lambda d, p: Place(d, [p]), st.integers(0, 1), PASSAGES), max_size=3),
    PIECES,
)
def test_the_share_held_is_that_of_the_letters(places: list[Place], pieces: list[Piece]) -> None:
    assert share_held(places, pieces) == pytest.approx(held_by_sets(places, pieces))


def test_overlapping_chunks_hold_no_letter_twice() -> None:
    place = Place(0, [(0, 10)])

    assert share_held([place], [Piece(0, 0, 5), Piece(0, 2, 6)]) == 0.6


def test_of_several_places_the_one_that_is_held_most_counts() -> None:
    places = [Place(0, [(0, 10)]), Place(1, [(0, 10)])]

    assert share_held(places, [Piece(0, 0, 2), Piece(1, 0, 7)]) == 0.7


def test_a_prompt_holds_so_many_letters_and_the_last_chunk_is_cut() -> None:
    ranking = [Piece(0, 0, 40), Piece(1, 10, 50), Piece(2, 0, 5)]

    assert within_budget(ranking, 60) == [Piece(0, 0, 40), Piece(1, 10, 30)]
    assert within_budget(ranking, 500) == ranking


@given(PIECES, st.integers(1, 60))
def test_a_prompt_is_never_longer_than_its_budget(pieces: list[Piece], budget: int) -> None:
    prompt = within_budget(pieces, budget)

    assert sum(each.length for each in prompt) == min(budget, sum(p.length for p in pieces))


def test_the_rank_is_that_of_the_chunk_with_which_enough_is_held() -> None:
    place = Place(0, [(0, 10)])
    ranking = [Piece(1, 0, 10), Piece(0, 0, 5), Piece(0, 5, 8), Piece(0, 8, 10)]

    assert rank_held([place], ranking, 0.5) == 2
    assert rank_held([place], ranking, 0.8) == 3
    assert rank_held([place], ranking, 1.0) == 4
    assert rank_held([place], ranking[:2], 0.8) is None
    assert rank_held([], ranking, 0.8) is None


def test_a_chunk_matches_that_holds_a_judged_text_or_is_a_part_of_it() -> None:
    judged = [[Place(0, [(10, 20)])], [Place(1, [(0, 100)])]]
    elsewhere, part, around = Piece(0, 30, 60), Piece(1, 40, 50), Piece(0, 0, 50)

    assert first_match(judged, [elsewhere, part], 0.8) == 2
    assert first_match(judged, [elsewhere, elsewhere, around], 0.8) == 3
    assert first_match(judged, [Piece(0, 13, 43)], 0.8) is None, "seven letters of ten"
    assert first_match(judged, [Piece(0, 12, 43)], 0.8) == 1
    assert first_match(judged, [Piece(1, 50, 50)], 0.8) is None, "no letter"
    assert first_match([], [part], 0.8) is None
