from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunking.splitting import Chunking, Unit, split
from pipeline.errors import UsageError

TEXT = (
    "The first sentence is here. The second one follows it now. A third is a bit longer than these"
    " two. And the fourth ends the paragraph.\n\nA new paragraph begins. It has two sentences."
)

WORDS = st.text(alphabet="abc.!。中", min_size=1, max_size=50)
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([" ", "\n", "\n\n", "  "])), max_size=60).map(
    lambda parts: "".join(word + blank for word, blank in parts)
)
CHUNKINGS = st.builds(
    lambda size, share, unit: Chunking(size, int(share * size), unit),
    st.integers(50, 200),
    st.floats(0, 0.5),
    st.sampled_from(list(Unit)),
)


def chunks(text: str, size: int, overlap: int = 0, unit: Unit = Unit.CHARACTERS) -> list[str]:
    return [text[each.start : each.end] for each in split(text, Chunking(size, overlap, unit))]


def test_chunks_end_with_sentences_and_at_a_paragraph_s_end() -> None:
    assert chunks(TEXT, 80) == [
        "The first sentence is here. The second one follows it now.",
        "A third is a bit longer than these two. And the fourth ends the paragraph.",
        "A new paragraph begins. It has two sentences.",
    ]


def test_an_overlap_begins_at_a_sentence_where_one_leaves_half_of_it_else_at_a_word() -> None:
    assert chunks(TEXT, 80, 30)[:3] == [
        "The first sentence is here. The second one follows it now.",
        "The second one follows it now. A third is a bit longer than these two.",
        "a bit longer than these two. And the fourth ends the paragraph.",
    ]


def test_sizes_may_count_words() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"

    assert chunks(text, 10, 2, Unit.WORDS) == [
        "one two three four five six seven eight nine ten",
        "nine ten eleven twelve",
    ]


def test_a_text_without_blanks_is_cut_all_the_same() -> None:
    assert [len(each) for each in chunks("x" * 130, 50)] == [32, 32, 32, 34 - 0]


@pytest.mark.parametrize("text", ["", " \n\n "])
def test_nothing_gives_no_chunk(text: str) -> None:
    assert chunks(text, 100) == []


def test_a_short_text_is_one_chunk_without_the_blanks_around_it() -> None:
    assert chunks("  Blue whales sing.\n", 100) == ["Blue whales sing."]


@given(TEXTS, CHUNKINGS)
def test_no_visible_character_is_lost_and_no_chunk_begins_or_ends_with_a_blank(
    text: str, chunking: Chunking
) -> None:
    spans = split(text, chunking)
    covered = {place for each in spans for place in range(each.start, each.end)}

    assert all(text[place].isspace() for place in set(range(len(text))) - covered)
    pieces = [text[each.start : each.end] for each in spans]
    assert all(piece and piece == piece.strip() for piece in pieces)


@given(TEXTS, CHUNKINGS)
def test_each_chunk_goes_beyond_the_one_before_and_repeats_no_more_than_the_overlap(
    text: str, chunking: Chunking
) -> None:
    for one, following in pairwise(split(text, chunking)):
        assert one.start < following.start
        assert one.end < following.end
        if chunking.unit is Unit.CHARACTERS:
            assert one.end - following.start <= chunking.overlap


@given(TEXTS, CHUNKINGS)
def test_no_chunk_is_larger_than_its_size(text: str, chunking: Chunking) -> None:
    for each in split(text, chunking):
        piece = text[each.start : each.end]
        size = len(piece) if chunking.unit is Unit.CHARACTERS else len(piece.split())
        assert size <= chunking.size


@pytest.mark.parametrize(
    ("size", "overlap", "unit", "message"),
    [
        (49, 0, Unit.CHARACTERS, "size 49: at least 50 characters"),
        (9, 0, Unit.WORDS, "size 9: at least 10 words"),
        (100, 51, Unit.CHARACTERS, "overlap 51 with size 100: at most half of the size"),
        (100, -1, Unit.CHARACTERS, "overlap -1 with size 100: at most half of the size"),
    ],
)
def test_what_cannot_be_cut_is_refused(size: int, overlap: int, unit: Unit, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        Chunking(size, overlap, unit)


@pytest.mark.parametrize(
    ("chunking", "name"),
    [
        (Chunking(200), "200"),
        (Chunking(200, 50), "200+50"),
        (Chunking(100, 20, Unit.WORDS), "100+20 words"),
    ],
)
def test_a_chunking_is_named_by_its_size_and_overlap(chunking: Chunking, name: str) -> None:
    assert str(chunking) == name
