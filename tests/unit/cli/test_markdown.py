"""Texts of strangers in Markdown, read back by a parser of GitHub's dialect."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cli.markdown import plain, table
from cli.output import Column, one_line

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

TROUBLE = st.text(alphabet="\\`*_{}[]<>#|&~$!-+.)(1 ab:/=\"'\n\t@^", max_size=40)


def shown(tokens: list[Token]) -> list[str]:
    """Return the text of each inline part; anything but text in it is a failure."""
    inlines = [token for token in tokens if token.type == "inline"]
    parts = [child for token in inlines for child in token.children or []]
    assert {part.type for part in parts} <= {"text", "text_special"}, parts
    return ["".join(part.content for part in token.children or []) for token in inlines]


def calling_nobody(text: str) -> str:
    """Return the line as it has to be shown: a word joiner behind a mention's @ stops it."""
    return re.sub(r"(^|\W)@(?=\w)", "\\1@\u2060", one_line(text))


@given(TROUBLE | st.text(max_size=40))
@example("@org/team")
@example("1. one")
@example("- nested")
@example("<!-- gone -->")
@example("&lt;b&gt;")
@example("[a](http://x)")
@example("+ ~~x~~")
def test_a_text_in_a_list_is_shown_as_it_is(text: str) -> None:
    tokens = PARSER.parse(f"- {plain(text)} (1 -> -)")

    assert [token.type for token in tokens[:3]] == [
        "bullet_list_open", "list_item_open", "paragraph_open",
    ]  # fmt: skip
    assert len(tokens) == 7
    assert shown(tokens) == [f"{calling_nobody(text)} (1 -> -)".lstrip()]


@given(st.lists(TROUBLE.filter(str.strip), min_size=1, max_size=3))
def test_a_text_in_a_table_stays_in_its_cell(texts: list[str]) -> None:
    lines = table(["text", Column("n", right=True)], [[plain(text), 1] for text in texts])

    tokens = PARSER.parse("\n".join(lines))
    cells = shown(tokens)
    assert cells[:2] == ["text", "n"]
    assert cells[2::2] == [calling_nobody(text) for text in texts]
    assert cells[3::2] == ["1"] * len(texts)
    assert [token.type for token in tokens].count("tr_open") == len(texts) + 1


@pytest.mark.parametrize("text", ["recall@5 fell", "someone@example.org", "a @ b"])
def test_an_at_sign_that_mentions_nobody_stays(text: str) -> None:
    assert "\u2060" not in plain(text)


def test_nothing_is_shown_as_a_dash() -> None:
    assert table(["a", "b"], [[None, 0]])[2] == "| - | 0 |"


@pytest.mark.parametrize("width", [1, 5, 90])
def test_a_long_text_is_cut_before_it_is_escaped(width: int) -> None:
    assert plain("*" * 100, width) == r"\*" * (width - 1) + "…"
