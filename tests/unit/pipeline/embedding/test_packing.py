from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.embedding.packing import most_tokens, pack

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=30)


def size(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


@given(TEXTS, st.integers(1, 8), st.integers(1, 40))
def test_requests_hold_all_texts_in_order_within_both_limits(
    texts: list[str], max_inputs: int, max_tokens: int
) -> None:
    requests = list(pack(texts, max_inputs, max_tokens))

    assert [text for request in requests for text in request] == texts
    assert all(1 <= len(request) <= max_inputs for request in requests)
    assert all(size(request) <= max_tokens or len(request) == 1 for request in requests)


@given(TEXTS, st.integers(1, 8), st.integers(1, 40))
def test_no_request_has_room_for_the_first_text_of_the_next(
    texts: list[str], max_inputs: int, max_tokens: int
) -> None:
    requests = list(pack(texts, max_inputs, max_tokens))

    for request, following in pairwise(requests):
        assert len(request) == max_inputs or size([*request, following[0]]) > max_tokens


def test_a_character_counts_for_as_many_tokens_as_it_has_bytes() -> None:
    assert [most_tokens(text) for text in ("", "abc", "ação", "日本", "🙂")] == [0, 3, 6, 6, 4]
