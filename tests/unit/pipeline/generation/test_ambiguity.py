from collections.abc import Mapping, Sequence

import pytest

from pipeline.generation.ambiguity import (
    PROPOSED,
    Found,
    find_answer,
    propose,
    shared_terms,
)
from pipeline.generation.filters import Rejection
from pipeline.types import Ranking

TERMS = {
    "s:0": frozenset("abcdefghij"),
    "copy:0": frozenset("abcdefghij"),
    "half:0": frozenset("abcdeXYZVW"),
    "other:0": frozenset("klmnopqrst"),
}


def found(
    rankings: Mapping[str, Sequence[str]], neighbours: Mapping[str, float] | None = None
) -> Found:
    near = neighbours or {}
    return Found(
        rankings,
        {} if neighbours is None else {"s:0": Ranking(list(near), list(near.values()))},
        TERMS,
    )


def test_a_near_duplicate_of_the_source_is_proposed_though_no_strategy_returns_it() -> None:
    [proposal] = propose(["s:0"], found({"vector": ["s:0"]}, {"other:0": 0.97}), 0.95)

    assert (proposal.key, proposal.reason, proposal.similarity) == (
        "other:0", "near-duplicate of s:0", 0.97,
    )  # fmt: skip


def test_a_chunk_of_the_same_words_is_a_near_duplicate_without_vectors() -> None:
    [proposal] = propose(["s:0"], found({"fulltext": ["copy:0", "s:0"]}), 0.95)

    assert (proposal.key, proposal.reason) == ("copy:0", "near-duplicate of s:0")


def test_a_chunk_above_the_source_that_says_much_of_it_is_proposed_with_who_ranks_it() -> None:
    rankings = {"vector": ["half:0", "s:0"], "fulltext": ["half:0"], "hybrid": ["s:0", "half:0"]}
    [proposal] = propose(["s:0"], found(rankings, {"half:0": 0.6}), 0.95)

    assert proposal.reason == "ranks above s:0 (vector, fulltext) and says much the same"
    assert proposal.similarity == 0.6


def test_a_chunk_below_the_source_is_not_proposed() -> None:
    assert propose(["s:0"], found({"vector": ["s:0", "half:0"]}, {"half:0": 0.6}), 0.95) == []


def test_a_chunk_above_the_source_about_something_else_is_not_proposed() -> None:
    rankings = {"vector": ["other:0", "s:0"]}
    assert propose(["s:0"], found(rankings, {"other:0": 0.6}), 0.95) == []
    assert propose(["s:0"], found(rankings), 0.95) == []


def test_a_chunk_above_the_source_must_be_among_its_nearest() -> None:
    nearer = {f"n:{i}": 0.9 - i / 100 for i in range(3)}
    rankings = {"vector": ["half:0", "s:0"]}
    assert propose(["s:0"], found(rankings, {**nearer, "half:0": 0.6}), 0.95) == []


def test_without_vectors_a_chunk_above_the_source_is_proposed_by_shared_words() -> None:
    [proposal] = propose(["s:0"], found({"fulltext": ["half:0", "s:0"]}), 0.95)
    assert (proposal.key, proposal.similarity) == ("half:0", 0.5)


def test_no_expected_key_is_proposed() -> None:
    rankings = {"vector": ["copy:0", "s:0"]}
    assert propose(["s:0", "copy:0"], found(rankings, {"copy:0": 1.0}), 0.95) == []


def test_a_reviewer_is_not_given_more_keys_than_can_be_read() -> None:
    many = {f"n:{i}": 1 - i / 1000 for i in range(9)}
    proposals = propose(["s:0"], found({}, many), 0.95)
    assert [each.key for each in proposals] == [f"n:{i}" for i in range(PROPOSED)]


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [("abcd", "cdxyzw", 0.5), ("abcd", "abcdefgh", 1.0), ("", "ab", 0.0), ("ab", "cd", 0.0)],
)
def test_shared_terms_are_a_share_of_the_smaller_text(
    first: str, second: str, share: float
) -> None:
    assert shared_terms(frozenset(first), frozenset(second)) == share


ASKED = frozenset("abcd")
CHUNKS = {"three:0": frozenset("abcxyz"), "four:0": frozenset("abcdxyz"), "two:0": frozenset("ab")}


def test_a_chunk_that_is_near_and_holds_most_words_answers() -> None:
    answer = find_answer(ASKED, Ranking(["three:0"], [0.7]), [], CHUNKS, 0.6)
    assert answer is not None
    assert answer.rejection is Rejection.ANSWERED
    assert answer.detail == "three:0 holds 75% of its content words, and is near"


@pytest.mark.parametrize("usual", [0.8, None])
def test_a_chunk_that_holds_most_words_but_is_not_near_does_not_answer(
    usual: float | None,
) -> None:
    assert find_answer(ASKED, Ranking(["three:0"], [0.7]), [], CHUNKS, usual) is None


def test_a_chunk_that_is_near_but_holds_few_words_does_not_answer() -> None:
    assert find_answer(ASKED, Ranking(["two:0"], [0.99]), [], CHUNKS, 0.6) is None


def test_a_chunk_that_holds_every_word_answers_wherever_it_came_back() -> None:
    answer = find_answer(ASKED, None, ["two:0", "four:0"], CHUNKS, None)
    assert answer is not None
    assert answer.detail == "four:0 holds 100% of its content words"


def test_too_few_words_say_nothing() -> None:
    assert find_answer(frozenset("ab"), Ranking(["two:0"], [1.0]), [], CHUNKS, 0.1) is None
