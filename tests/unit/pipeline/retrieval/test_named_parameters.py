"""Named parameters in SQL: found where they are symbols, left alone where they are text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.named_parameters import NamedParameters


def names(statement: str) -> list[str]:
    return list(NamedParameters.of(statement).names)


def marked(statement: str) -> str:
    found = NamedParameters.of(statement)
    return found.written(lambda text: text, lambda name: f"<{name}>")


@pytest.mark.parametrize(("statement", "expected"), [
    ("SELECT :question", ["question"]),
    ("WHERE a=:a AND b=:b_2 OR c = :a", ["a", "b_2", "a"]),
    ("LIMIT :k;", ["k"]),
    ("(:k+1)", ["k"]),
    ("SELECT :frage_ä", ["frage_ä"]),
])  # fmt: skip
def test_parameters_are_found_in_order(statement: str, expected: list[str]) -> None:
    assert names(statement) == expected


@pytest.mark.parametrize("statement", [
    "SELECT now()::date, '1'::int",
    "SELECT ':k', 'it''s :k'",
    r"SELECT E'\':k', e'a\\'",
    'SELECT ":k", "a"":k"',
    "SELECT $$ :k $$, $tag$ :k $$ :k $tag$",
    "SELECT 1 -- :k",
    "SELECT /* :k /* :k */ :k */ 1",
    "x := 1",
    "a[1:2]",
    "SELECT ':k",
    "SELECT /* :k",
    "SELECT $$ :k",
])  # fmt: skip
def test_what_is_quoted_cast_or_a_comment_holds_none(statement: str) -> None:
    assert names(statement) == []


def test_each_is_found_behind_what_only_looks_like_a_quote() -> None:
    assert marked("SELECT '--' || :a, '/*' || :b, \"$$\" || :c::text, f$1$ || :d") == (
        "SELECT '--' || <a>, '/*' || <b>, \"$$\" || <c>::text, f$1$ || <d>"
    )
    assert marked("SELECT 1 -- it's\n, :a /* ' */, :b") == "SELECT 1 -- it's\n, <a> /* ' */, <b>"
    assert marked(r"SELECT 'a\' || :a, E'b\' || :b'") == r"SELECT 'a\' || <a>, E'b\' || :b'"


@given(
    st.lists(
        st.sampled_from(
            ["'", '"', "$$", "$a$", "--", "\n", "/*", "*/", ":a", "::", " b ", "E'", "\\"]
        )
    )
)
def test_written_as_it_was_a_statement_is_the_same(pieces: list[str]) -> None:
    statement = "".join(pieces)
    found = NamedParameters.of(statement)
    assert found.written(lambda text: text, lambda name: f":{name}") == statement
    assert len(found.texts) == len(found.names) + 1
