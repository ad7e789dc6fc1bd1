from typing import Any

import psycopg

from pipeline.corpus.terms import lexemes


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
