import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.filters import Rejection
from pipeline.generation.similarity import Asked, Twins, same_words
from pipeline.types import FloatMatrix

NUMBERS = st.integers(-8, 8).map(float)
VECTOR = st.lists(NUMBERS, min_size=3, max_size=3)


def matrix(*rows: list[float]) -> FloatMatrix:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    "other",
    [
        "how do i reset the router",
        "How  do I\u200b reset the router ?!",
        "“How do I reset the router?”",
    ],
)
def test_case_blanks_and_marks_around_words_make_no_other_question(other: str) -> None:
    assert same_words(other) == same_words("How do I reset the router?")


def test_two_ways_to_write_an_accent_make_no_other_question() -> None:
    assert same_words("O que e\u0301 isso?") == same_words("o que é isso")


def test_marks_within_words_make_another_question() -> None:
    questions = ["What is C?", "What is C#?", "What is C++?", "What is v1.2?", "What is v12?"]
    assert len(set(map(same_words, questions))) == 5


def test_vowel_signs_make_another_question() -> None:
    assert same_words("กิน") != same_words("กัน")


def test_a_question_of_marks_alone_is_not_the_same_as_another_one() -> None:
    assert same_words("??") != same_words("!!")


def test_the_same_words_are_a_duplicate() -> None:
    twins = Twins([Asked("Reset router?")], None, 0.95)
    assert twins.finding(0) is None
    twins.compare([Asked("Where is it?"), Asked("reset ROUTER")])
    found = twins.finding(0)
    assert found is not None
    assert (found.rejection, "'reset ROUTER'" in found.detail) == (Rejection.DUPLICATE, True)


def test_another_tenant_may_ask_the_same() -> None:
    twins = Twins([Asked("Reset?", "acme")], matrix([1, 0]), 0.95)
    twins.compare([Asked("Reset?", "globex"), Asked("Reset?")], matrix([1, 0], [1, 0]))
    assert twins.finding(0) is None
    twins.compare([Asked("Reset?", "acme")], matrix([1, 0]))
    assert twins.finding(0) is not None


def test_nearly_the_same_direction_is_a_near_duplicate_and_is_shown() -> None:
    twins = Twins([Asked("a"), Asked("b")], matrix([2, 0], [0, 1]), 0.95)
    twins.compare([Asked("c"), Asked("d")], matrix([10, 1], [1, 1]))
    found = twins.finding(0)
    assert found is not None
    assert (found.rejection, found.detail) == (Rejection.NEAR_DUPLICATE, "cosine 0.995 to 'c'")
    assert twins.finding(1) is None
    cosine_to, text = twins.nearest(1)
    assert text == "d"
    assert cosine_to == pytest.approx(0.7071, abs=1e-4)


def test_a_question_without_a_vector_is_near_to_none() -> None:
    twins = Twins([Asked("a"), Asked("b")], matrix([np.nan, np.nan], [0, 0]), 0.95)
    twins.compare([Asked("c"), Asked("d")], matrix([1, 0], [np.nan, np.inf]))
    assert twins.finding(0) is None
    assert twins.finding(1) is None


def test_a_page_of_questions_without_any_vector_is_compared_by_its_words() -> None:
    twins = Twins([Asked("a"), Asked("b")], matrix([1, 0], [0, 1]), 0.95)
    twins.compare([Asked("A")], np.empty((1, 0), np.float32))
    assert twins.finding(0) is not None
    assert twins.finding(1) is None


def test_words_alone_are_compared_without_vectors() -> None:
    twins = Twins([Asked("a")], None, 0.95)
    twins.compare([Asked("b")], matrix([1, 0]))
    assert twins.nearest(0) == (-1.0, "")


@given(st.lists(VECTOR, min_size=1, max_size=5), st.lists(VECTOR, min_size=1, max_size=8))
def test_pages_of_questions_find_the_nearest_one_as_numpy_does_at_once(
    ours: list[list[float]], theirs: list[list[float]]
) -> None:
    twins = Twins([Asked(str(i)) for i in range(len(ours))], matrix(*ours), 0.95)
    for column, vector in enumerate(theirs):
        twins.compare([Asked(f"other {column}")], matrix(vector))

    for row, vector in enumerate(ours):
        cosines = [cosine(vector, other) for other in theirs]
        assert twins.nearest(row)[0] == pytest.approx(max(cosines), abs=1e-5)


def cosine(one: list[float], other: list[float]) -> float:
    first, second = np.array(one, np.float64), np.array(other, np.float64)
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0
