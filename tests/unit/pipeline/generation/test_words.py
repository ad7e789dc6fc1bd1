from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.words import (
    content_terms,
    holds_run,
    length,
    longest_shared_run,
    tokens,
)

WORDS = st.lists(st.sampled_from(["a", "b", "c", "reset", "路"]), max_size=12)


def brute_force_run(first: Sequence[str], second: Sequence[str]) -> float:
    """Return the length of the longest run that both hold, by trying every one."""
    runs = [first[i:j] for i in range(len(first)) for j in range(i + 1, len(first) + 1)]
    inside = [
        run
        for run in runs
        if any(second[at : at + len(run)] == run for at in range(len(second)))
    ]  # fmt: skip
    return max(map(length, inside), default=0.0)


def test_words_have_no_case_and_no_punctuation() -> None:
    assert tokens("Don't reset — the ROUTER (model X-1)!") == [
        "don't".replace("'", ""), "reset", "the", "router", "model", "x", "1",
    ]  # fmt: skip


def test_both_ways_to_write_an_accent_and_zero_width_characters_make_the_same_words() -> None:
    assert tokens("informac\u0327a\u0303o\u200b") == tokens("informação")


def test_full_width_letters_are_the_same_as_narrow_ones() -> None:
    assert tokens("\uff21\uff22\uff23") == tokens("abc")


def test_vowel_signs_of_hindi_stay_in_their_word() -> None:
    assert tokens("हिन्दी में") == ["हिन्दी", "में"]


def test_characters_are_the_tokens_where_blanks_bound_no_words() -> None:
    assert tokens("重置路由器 now") == ["重", "置", "路", "由", "器", "now"]


def test_a_chinese_question_is_as_long_as_its_words_not_its_characters() -> None:
    assert length(tokens("如何重置我的路由器")) == 4.5


def test_a_thai_question_counts_fewer_words_than_characters() -> None:
    assert length(tokens("รีเซ็ตเราเตอร์อย่างไร")) < 6


def test_a_url_counts_as_several_words() -> None:
    assert length(tokens("x" * 95)) == 4


@given(WORDS, WORDS)
def test_the_longest_shared_run_is_what_trying_every_run_finds(
    first: list[str], second: list[str]
) -> None:
    run = longest_shared_run(first, second)

    assert length(run) == brute_force_run(first, second)
    assert not run or (holds_run(first, run) and holds_run(second, run))


def test_nothing_holds_an_empty_run() -> None:
    assert not holds_run(["a"], [])


def test_a_run_must_stand_together() -> None:
    assert holds_run(["reset", "the", "router"], ["the", "router"])
    assert not holds_run(["reset", "the", "router"], ["reset", "router"])


def test_a_clause_without_blanks_becomes_pairs_of_characters() -> None:
    assert content_terms(["重置路由器", "wifi"]) == {"重置", "置路", "路由", "由器", "wifi"}


def test_japanese_endings_are_no_content() -> None:
    assert content_terms(["設定について"]) == {"設定", "定に"}


def test_korean_words_are_compared_without_their_particles() -> None:
    assert content_terms(["라우터를"]) & content_terms(["라우터가"]) == {"라우", "우터"}


def test_a_word_of_one_chinese_character_is_content() -> None:
    assert content_terms(["糖", "の"]) == {"糖"}
