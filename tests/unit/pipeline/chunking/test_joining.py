from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunking.joining import SHORTEST_OVERLAP, join
from pipeline.chunking.splitting import Chunking, split

# Words that differ, so that no overlap is there by chance.
DISTINCT = st.integers(20, 120).map(lambda n: " ".join(f"word{i:04}" for i in range(n)))


def test_what_two_chunks_share_stands_once() -> None:
    joined = join(["Whales sing. Dolphins jump high.", "Dolphins jump high. Seals sleep."])

    assert joined.text == "Whales sing. Dolphins jump high. Seals sleep."


def test_a_few_letters_in_common_may_be_chance() -> None:
    assert join(["to be or not", "not to be"]).text == "to be or not not to be"


def test_between_sentences_an_empty_line_is_put_and_within_one_a_blank() -> None:
    assert join(["Whales sing.", "Seals sleep."]).text == "Whales sing.\n\nSeals sleep."
    assert join(["Whales sing and", "seals sleep."]).text == "Whales sing and seals sleep."
    assert join(["A heading", "Whales sing."]).text == "A heading\n\nWhales sing."


def test_of_repeated_text_the_longest_overlap_is_taken() -> None:
    line = "the same line again "
    joined = join([f"start {line}{line}", f"{line}{line}end"])

    assert joined.text == f"start {line}{line}end"


def test_empty_chunks_leave_no_trace() -> None:
    joined = join(["", "Whales sing.", "", "Seals sleep."])

    assert joined.text == "Whales sing.\n\nSeals sleep."
    assert [joined.text[each.start : each.end] for each in joined.spans] == [
        "", "Whales sing.", "", "Seals sleep.",
    ]  # fmt: skip


def test_no_chunks_are_an_empty_document() -> None:
    assert join([]).text == ""


@given(st.lists(st.text(alphabet="ab .\n", max_size=60), max_size=8))
def test_each_chunk_stands_at_its_place(chunks: list[str]) -> None:
    joined = join(chunks)

    assert [joined.text[each.start : each.end] for each in joined.spans] == chunks


@given(DISTINCT, st.integers(100, 300), st.integers(2 * SHORTEST_OVERLAP, 50))
def test_a_document_cut_with_overlaps_comes_back_as_it_was(
    text: str, size: int, overlap: int
) -> None:
    spans = split(text, Chunking(size, overlap))
    joined = join([text[each.start : each.end] for each in spans])

    assert all(following.start < one.end for one, following in pairwise(spans))
    assert joined.text == text
    assert list(joined.spans) == spans
