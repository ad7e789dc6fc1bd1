"""JMESPath of the settings: what is applied, what cannot be, and what is read."""

import pytest
from pydantic import TypeAdapter, ValidationError

from pipeline.retrieval.expressions import (
    Expression,
    ExpressionError,
    apply,
    compiled,
    drops,
    mentions,
    picks,
)

NOBODY = {"question": "?", "tenant": None}


@pytest.mark.parametrize(("text", "value", "said"), [
    ("join(':', @)", ["a" * 9999, 1], "join() takes array-string, not int"),
    ("ceil(@)", float("inf"), "cannot convert float infinity to integer"),
    ("a < b", {"a": "x", "b": 1}, "not supported between instances"),
    ("@[::0]", [1, 2], "slice step cannot be zero"),
    ("max_by(@, &a)", [{"a": 1}, {"a": "x"}], "not supported between instances"),
])  # fmt: skip
def test_what_an_expression_cannot_do_is_said_in_a_short_line(
    text: str, value: object, said: str
) -> None:
    with pytest.raises(ExpressionError) as raised:
        apply(text, value)
    assert str(raised.value).startswith(f"{text} cannot be applied: ")
    assert said in str(raised.value)
    assert len(str(raised.value)) < 200


def test_an_expression_may_have_several_lines_and_is_told_on_one() -> None:
    text = "{\n\tq: question,\n  n: length(k)\n}"
    assert TypeAdapter(Expression).validate_python(text) == text
    assert apply(text, {"question": "?", "k": "abc"}) == {"q": "?", "n": 3}
    with pytest.raises(ExpressionError, match=r"^\{ q: question, n: length\(k\) \} cannot"):
        apply(text, {"question": "?", "k": 3})
    with pytest.raises(ValidationError, match="holds a character that cannot be seen"):
        TypeAdapter(Expression).validate_python("'a\x07'")


@pytest.mark.parametrize("text", ["", "a b", "{a: }", "nothing(", "'x"])
def test_what_is_no_expression_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no JMESPath expression: \w") as raised:
        compiled(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "found"), [
    ("{q: question, t: tenant}", True),
    ("questions[*].{t: tenant}", True),
    ("questions[:2].tenant", True),
    ("tenant && `1` || `2`", True),
    ("map(&tenant, questions)", True),
    ("{tenant: question}", False),
    ("'tenant'", False),
    ('`"tenant"`', False),
])  # fmt: skip
def test_a_field_is_mentioned_where_it_is_read(text: str, found: bool) -> None:
    assert mentions(text, "tenant") is found


@pytest.mark.parametrize(("text", "dropped"), [
    ("questions[*].tenant", True),
    ("{q: questions[*].question, t: questions[].tenant}", True),
    ("questions[*].{t: tenant}", False),
    ("questions[*].[question, tenant]", False),
    ("questions[*].question", False),
    ("map(&tenant, questions)", False),
    ("others[*].tenant", False),
    ("questions[*].join('', [question, tenant])", False),
])  # fmt: skip
def test_a_projection_that_leaves_an_element_out_is_known(text: str, dropped: bool) -> None:
    assert drops(text, "questions", NOBODY) is dropped
    if dropped:
        asked = {"questions": [NOBODY, {"question": "!", "tenant": "x"}]}
        assert apply("questions[*].tenant", asked) == ["x"]


@pytest.mark.parametrize(("text", "one"), [
    ("questions[0].tenant", True),
    ("{t: questions[-1]}", True),
    ("questions[*].tenant", False),
    ("questions[:1]", False),
    ("others[0]", False),
])  # fmt: skip
def test_reading_one_element_of_a_list_is_known(text: str, one: bool) -> None:
    assert picks(text, "questions") is one
