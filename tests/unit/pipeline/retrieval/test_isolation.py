"""Asking in groups, and in halves around a question that cannot be asked."""

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import CorpusError, TransientError
from pipeline.retrieval.isolation import MAX_TIMEOUTS, ask_in_groups
from pipeline.types import Failure, Ranking


class Server:
    """Answers each position with a ranking that names it; some positions spoil a statement."""

    def __init__(self, spoilers: dict[int, Exception]) -> None:
        self.spoilers = spoilers
        self.asked: list[tuple[object, list[int]]] = []

    def ask(self, group: object, positions: Sequence[int]) -> list[Ranking]:
        self.asked.append((group, list(positions)))
        for position in positions:
            if position in self.spoilers:
                raise self.spoilers[position]
        return [Ranking(keys=[f"d:{position}"], scores=[1.0]) for position in positions]


@given(
    groups=st.lists(st.sampled_from("abc"), max_size=60),
    spoilers=st.sets(st.integers(0, 59), max_size=5),
    size=st.integers(1, 20),
)
def test_each_position_gets_its_own_answer_whatever_spoils_the_others(
    groups: list[str], spoilers: set[int], size: int
) -> None:
    server = Server(dict.fromkeys(spoilers, psycopg.DataError("a bad value")))
    answers = ask_in_groups(range(len(groups)), groups.__getitem__, size, server.ask)
    assert set(answers) == set(range(len(groups)))
    for position, answer in answers.items():
        if position in spoilers:
            assert answer == Failure("the question cannot be searched for: a bad value")
        else:
            assert answer == Ranking(keys=[f"d:{position}"], scores=[1.0])
    for group, positions in server.asked:
        assert {groups[position] for position in positions} == {group}
        assert len(positions) <= size


def test_a_clean_batch_takes_one_statement_per_full_group() -> None:
    server = Server({})
    ask_in_groups(range(250), lambda position: position % 2, 100, server.ask)
    assert [len(positions) for _, positions in server.asked] == [100, 25, 100, 25]


def test_a_spoiler_costs_a_number_of_statements_that_grows_with_the_logarithm() -> None:
    server = Server({70: psycopg.DataError("a bad value")})
    ask_in_groups(range(100), lambda _: None, 100, server.ask)
    assert len(server.asked) <= 1 + 2 * 7


def test_one_slow_question_becomes_a_failure() -> None:
    server = Server({3: psycopg.errors.QueryCanceled("statement timeout")})
    answers = ask_in_groups(range(100), lambda _: None, 100, server.ask)
    assert answers[3] == Failure("the search ran into its time limit")
    assert sum(isinstance(answer, Ranking) for answer in answers.values()) == 99


def test_a_server_that_is_slow_for_every_question_ends_the_batch() -> None:
    server = Server(dict.fromkeys(range(100), psycopg.errors.QueryCanceled("statement timeout")))
    with pytest.raises(TransientError, match="searches of one batch ran into their time limit"):
        ask_in_groups(range(100), lambda _: None, 100, server.ask)
    assert len(server.asked) == MAX_TIMEOUTS + 1


def test_text_that_is_no_unicode_is_its_own_questions_failure() -> None:
    error = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    answers = ask_in_groups(range(4), lambda _: None, 4, Server({1: error}).ask)
    assert answers[1] == Failure("the question holds characters that are not valid Unicode")
    assert isinstance(answers[0], Ranking)


def test_stored_vectors_of_several_lengths_concern_every_question() -> None:
    error = psycopg.DataError("different vector dimensions 3 and 4")
    with pytest.raises(CorpusError, match=r"several lengths .*dimensions 3 and 4"):
        ask_in_groups(range(4), lambda _: None, 4, Server({1: error}).ask)


@pytest.mark.parametrize(
    "error", [psycopg.OperationalError("gone"), psycopg.errors.UndefinedTable("no table")]
)
def test_an_error_of_the_server_is_passed_on_at_once(error: psycopg.Error) -> None:
    server = Server({1: error})
    with pytest.raises(type(error)):
        ask_in_groups(range(4), lambda _: None, 4, server.ask)
    assert len(server.asked) == 1
