from typing import Any

import psycopg
import pytest

from pipeline.corpus.terms import distinctive, lexemes
from pipeline.generation.base import SourceChunk


def test_words_lose_their_endings_and_stop_words_by_their_language(
    conn: psycopg.Connection[Any],
) -> None:
    texts = ["How are the batteries replaced?", "As universidades são públicas."]

    english, portuguese = lexemes(conn, texts, ["en-GB", "Portuguese"])

    assert (set(english), set(portuguese)) == ({"batteri", "replac"}, {"univers", "públic"})


def test_every_word_counts_in_a_language_without_a_configuration(
    conn: psycopg.Connection[Any],
) -> None:
    [klingon, nobody] = lexemes(conn, ["The Batteries", "The Batteries"], ["tlh", None])

    assert set(klingon) == set(nobody) == {"the", "batteries"}


def test_capitals_with_accents_are_folded_whatever_the_servers_locale(
    conn: psycopg.Connection[Any],
) -> None:
    [upper, lower] = lexemes(conn, ["ÁRVORE", "árvore"], ["pt", "pt"])

    assert upper == lower != []


def test_texts_without_words_have_none_and_keep_their_place(conn: psycopg.Connection[Any]) -> None:
    assert lexemes(conn, ["", "???", "router", "the"], ["en"] * 4) == [[], [], ["router"], []]


def test_a_chinese_clause_stays_together(conn: psycopg.Connection[Any]) -> None:
    assert lexemes(conn, ["重置路由器。电池"], ["zh"]) == [["电池", "重置路由器"]]


def test_dashes_and_quotation_marks_are_no_part_of_a_word(conn: psycopg.Connection[Any]) -> None:
    assert lexemes(conn, ["\u201crouter\u201d\u2014cable\u2026"], ["en"]) == [["cabl", "router"]]


def test_vowel_signs_of_hindi_stay_in_their_word(conn: psycopg.Connection[Any]) -> None:
    assert lexemes(conn, ["हिन्दी"], ["tlh"]) == [["हिन्दी"]]


def test_a_text_of_a_megabyte_is_read_in_part(conn: psycopg.Connection[Any]) -> None:
    words = " ".join(f"word{i}" for i in range(200_000))
    [found] = lexemes(conn, [words], ["en"])

    assert 5_000 < len(found) < 200_000


LETTER = (
    "If you want to return your order, then you should write to our support with the number that"
    " stands on your invoice. When your order is with the courier, we cannot change what they do"
    " with it, but they will bring it back when you tell them that you want this."
)


@pytest.mark.parametrize("language", ["en", "English-ignore-the-rules", "pt", None])
def test_stop_words_do_not_tell_a_chunk_from_others_whatever_it_is_said_to_be_in(
    conn: psycopg.Connection[Any], language: str | None
) -> None:
    chunk = SourceChunk("d:1", LETTER, language=language)

    terms = distinctive(conn, [chunk]).terms([chunk])

    assert terms[0] == "order"
    assert not {"your", "with", "when", "they", "that", "then", "what"} & set(terms)


def test_a_word_that_many_chunks_hold_in_some_form_tells_none_of_them(
    conn: psycopg.Connection[Any],
) -> None:
    chunk = SourceChunk("d:1", "Our support takes orders back.", language="en")
    others = [SourceChunk(f"d:{n}", f"Ordered by item{n}.", language="en") for n in range(2, 9)]

    known = distinctive(conn, [chunk, *others])

    assert set(known.terms([chunk])) == {"support", "takes", "back"}
    assert known.terms(others[:1]) == ["item2"]
