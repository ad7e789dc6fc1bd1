from pipeline.generation.base import SourceChunk
from pipeline.generation.distinctive import DISTINCTIVE, Distinctive, Word, words_of

CHUNKS = [
    SourceChunk("a", "The zephyrlink pump needs zephyrlink seals before pumps run.", language="en"),
    SourceChunk("b", "The pump runs before the valve, and the valve needs oil.", language="en"),
    SourceChunk("c", "Before the winter the house needs a new roof.", language="en"),
]


def distinctive(*chunks: SourceChunk) -> Distinctive:
    """Stem by leaving out an s; what a stop word is says no dictionary but this line."""
    words = {chunk: words_of(chunk) for chunk in chunks}
    stems: dict[Word, str] = {
        word: word[0].rstrip("s") for each in words.values() for word in each if word[0] != "before"
    }
    return Distinctive(words, stems)


def test_terms_are_the_words_that_other_chunks_lack_the_most_telling_first() -> None:
    terms = distinctive(*CHUNKS).terms(CHUNKS[:1])

    assert terms[0] == "zephyrlink"
    assert "seals" in terms
    assert not {"before", "needs", "runs", "the"} & set(terms)


def test_a_word_in_several_forms_counts_as_one_and_is_given_as_it_first_stands() -> None:
    assert "pump" in distinctive(*CHUNKS).terms(CHUNKS[:1])
    assert "pumps" not in distinctive(*CHUNKS).terms(CHUNKS[:1])


def test_stop_words_are_no_terms_even_of_the_only_chunk() -> None:
    assert "before" not in distinctive(CHUNKS[0]).terms(CHUNKS[:1])


def test_each_of_several_chunks_has_terms_of_its_own_and_none_twice() -> None:
    known = distinctive(*CHUNKS)
    terms = known.terms(CHUNKS[1:])

    assert set(terms) == {*known.terms(CHUNKS[1:2]), *known.terms(CHUNKS[2:])}
    assert len(terms) == len(set(terms)) <= 2 * DISTINCTIVE


def test_scripts_without_blanks_have_none() -> None:
    assert words_of(SourceChunk("a", "重置路由器需要按住电源按钮十秒钟")) == []
