import re
from collections.abc import Callable

import pytest

from pipeline.errors import InputError
from pipeline.golden.judgments import MAX_KEYS, judgments_from, kind_from
from pipeline.types import Kind


def test_an_object_gives_each_key_its_grade() -> None:
    stated = {"a:0": 3, "a:1": 1, "b:0": 0, "b:1": -1}
    assert judgments_from(stated) == stated


def test_a_list_gives_every_key_grade_one_in_its_order() -> None:
    assert list(judgments_from(["b:0", "a:12"]).items()) == [("b:0", 1), ("a:12", 1)]


@pytest.mark.parametrize("nothing", [{}, []])
def test_nothing_expected_gives_no_judgment(nothing: object) -> None:
    assert judgments_from(nothing) == {}


@pytest.mark.parametrize(
    "key",
    [
        "https://a.example:8080/b?c=d#e:0",
        "urn:isbn:0451450523:17",
        "::0",
        " padded document :3",
        "ANÁLISE DE SISTEMAS:0",
        "a:999999999999999999",
    ],
)
def test_a_key_is_kept_exactly_and_split_on_its_last_colon(key: str) -> None:
    assert judgments_from([key]) == {key: 1}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("intro", "expected key 'intro' has no colon"),
        ("https//a/b", "expected key 'https//a/b' has no colon"),
        (":0", "expected key ':0' has a blank document id"),
        (" \u200b:0", "expected key ' \\u200b:0' has a blank document id"),
        ("a:", "expected key 'a:' ends in '', which is not a chunk index"),
        ("https://a/b", "expected key 'https://a/b' ends in '//a/b', which is not a chunk index"),
        ("a:-1", "expected key 'a:-1' ends in '-1', which is not a chunk index"),
        ("a:+1", "expected key 'a:+1' ends in '+1', which is not a chunk index"),
        ("a:1.0", "expected key 'a:1.0' ends in '1.0', which is not a chunk index"),
        ("a: 1", "expected key 'a: 1' ends in ' 1', which is not a chunk index"),
        ("a:1\n", "expected key 'a:1\\n' ends in '1\\n', which is not a chunk index"),
        ("a:01", "expected key 'a:01' ends in '01', which is not a chunk index"),
        ("a:\u0663", "expected key 'a:\u0663' ends in '\u0663', which is not a chunk index"),
        ("a:\u00b2", "expected key 'a:\u00b2' ends in '\u00b2', which is not a chunk index"),
        ("a:1000000000000000000", "ends in '1000000000000000000', which is not a chunk index"),
    ],
)
def test_a_key_of_another_shape_is_refused_with_what_it_should_look_like(
    key: str, reason: str
) -> None:
    for expected in ([key], {key: 1}):
        with pytest.raises(InputError, match=re.escape(reason)) as caught:
            judgments_from(expected)
        assert str(caught.value).endswith(
            "a key looks like document_id:chunk_index, as 'guide.html:0'"
        )


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "an expected key is blank"),
        ("a\0b:0", "an expected key holds a NUL character"),
        ("\ud800:0", "an expected key holds \\ud800, half of a surrogate pair"),
        ("é" * 1_000 + ":0", "an expected key is 2,002 bytes long; at most 2,000 are allowed"),
        (5, "an expected key is 5: a text is needed"),
        (None, "an expected key is null: a text is needed"),
        ({"key": "a:0"}, "an expected key is an object: a text is needed"),
    ],
)
def test_a_key_that_could_not_be_stored_is_refused(key: object, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)):
        judgments_from([key])


def test_a_key_listed_twice_is_refused() -> None:
    with pytest.raises(InputError, match="expected lists the key 'a:0' twice"):
        judgments_from(["a:0", "b:0", "a:0"])


@pytest.mark.parametrize(
    ("grade", "shown"),
    [
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        (None, "null"),
        ("1", "'1'"),
        ([1], "an array"),
        ({"grade": 1}, "an object"),
    ],
)
def test_a_grade_that_is_not_an_integer_is_refused(grade: object, shown: str) -> None:
    reason = f"expected key 'a:0' has the grade {shown}: an integer is needed"
    with pytest.raises(InputError, match=re.escape(reason)):
        judgments_from({"a:0": grade})


def test_a_grade_is_limited_to_what_a_database_integer_holds() -> None:
    largest = 2**31 - 1
    assert judgments_from({"a:0": largest, "a:1": -largest}) == {"a:0": largest, "a:1": -largest}
    for grade in (largest + 1, -largest - 1):
        with pytest.raises(InputError, match="has a grade outside of"):
            judgments_from({"a:0": grade})


@pytest.mark.parametrize(
    ("expected", "shown"), [("a:0", "'a:0'"), (1, "1"), (True, "true"), (0.5, "0.5")]
)
def test_expected_of_another_type_is_refused(expected: object, shown: str) -> None:
    reason = f"expected is {shown}: an object of key -> grade or a list of keys is needed"
    with pytest.raises(InputError, match=re.escape(reason)):
        judgments_from(expected)


@pytest.mark.parametrize("judgments", [{}, {"a:0": 0}, {"a:0": 0, "a:1": -1}])
def test_a_question_without_a_relevant_key_is_unanswerable(judgments: dict[str, int]) -> None:
    assert kind_from(None, judgments) is Kind.UNANSWERABLE
    assert kind_from(Kind.UNANSWERABLE, judgments) is Kind.UNANSWERABLE
    with pytest.raises(InputError, match="kind is answerable, but no expected key has a grade"):
        kind_from(Kind.ANSWERABLE, judgments)


@pytest.mark.parametrize("judgments", [{"a:0": 1}, {"a:1": 0, "a:0": 1}])
def test_a_question_with_a_relevant_key_is_answerable(judgments: dict[str, int]) -> None:
    assert kind_from(None, judgments) is Kind.ANSWERABLE
    assert kind_from(Kind.ANSWERABLE, judgments) is Kind.ANSWERABLE
    with pytest.raises(InputError, match="kind is unanswerable, but 'a:0' is expected with grade"):
        kind_from(Kind.UNANSWERABLE, judgments)


@pytest.mark.parametrize("shape", [list, dict.fromkeys])
def test_a_question_expects_a_limited_number_of_keys(
    shape: Callable[[list[str]], object],
) -> None:
    keys = [f"a:{number}" for number in range(MAX_KEYS + 1)]
    with pytest.raises(InputError, match=r"^expected holds 10,001 keys; at most 10,000 are"):
        judgments_from(shape(keys))
    assert len(judgments_from(keys[:-1])) == MAX_KEYS
