import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chunking.atoms import Border, atoms_of


def borders(text: str) -> list[tuple[str, Border]]:
    return [(text[each.start : each.end], each.border) for each in atoms_of(text)]


def test_words_sentences_lines_and_paragraphs_end_in_better_and_better_places() -> None:
    text = "One two. Three\nfour\n \nfive"

    assert borders(text) == [
        ("One", Border.WORD),
        ("two.", Border.SENTENCE),
        ("Three", Border.SENTENCE),
        ("four", Border.PARAGRAPH),
        ("five", Border.LETTER),
    ]


@pytest.mark.parametrize("end", ["?", "!", "…", '."', ".)", "।", "؟", ".»", ".”"])
def test_a_sentence_may_end_in_many_ways(end: str) -> None:
    assert borders(f"word{end} next")[0] == (f"word{end}", Border.SENTENCE)


def test_a_full_stop_within_a_number_or_a_name_ends_nothing() -> None:
    (number, border), *_ = borders("3.14 is pi")

    assert (number, border) == ("3.14", Border.WORD)


def test_without_blanks_a_sentence_ends_at_its_full_stop() -> None:
    assert borders("鲸鱼唱歌。海豚跳跃。") == [
        ("鲸鱼唱歌。", Border.SENTENCE),
        ("海豚跳跃。", Border.SENTENCE),
    ]


def test_a_word_longer_than_any_is_cut_into_letters() -> None:
    assert [(len(piece), border) for piece, border in borders("x" * 70 + " y")] == [
        (32, Border.LETTER), (32, Border.LETTER), (6, Border.WORD), (1, Border.LETTER),
    ]  # fmt: skip


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_pieces_are_all_of_a_text_but_its_blanks(text: str) -> None:
    pieces = "".join(text[each.start : each.end] for each in atoms_of(text))

    assert pieces == "".join(text.split())
