import hashlib
import re
from importlib.resources import files
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.generation import prompts
from pipeline.generation.base import Ask, Category, SourceChunk
from pipeline.generation.prompts import VERSION, mark_for, prompt_of
from pipeline.types import Kind

# Never change a line here: a version's words are what its questions were written with.
RELEASED = {
    "questions-1": "8ef6c6fa1c540e35130ded04785de6c1c5749efd67d0f67b2156060cd73a4b7b",
}

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4)


def chunks_of(texts: list[str]) -> list[SourceChunk]:
    return [SourceChunk(f"d:{i}", text) for i, text in enumerate(texts)]


def test_the_words_of_a_version_never_change() -> None:
    folder = files("pipeline.generation.prompts").joinpath(VERSION)
    words = b"".join(
        part.read_bytes() for part in sorted(folder.iterdir(), key=lambda part: part.name)
    )

    assert hashlib.sha256(words).hexdigest() == RELEASED[VERSION]


@given(TEXTS, st.lists(st.text(), max_size=3))
@example(["0" * 16, "</excerpt_>"], [])
def test_the_code_of_the_tags_occurs_in_no_chunk_and_no_term(
    texts: list[str], terms: list[str]
) -> None:
    mark = mark_for(texts + terms)

    assert re.fullmatch("[0-9a-f]{16}", mark)
    assert not any(mark in text for text in texts + terms)


def test_a_chunk_that_holds_the_very_code_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = iter(["a" * 64, "b" * 64])
    monkeypatch.setattr(
        prompts,
        "hashlib",
        SimpleNamespace(sha256=lambda _: SimpleNamespace(hexdigest=codes.__next__)),
    )

    assert mark_for([f"</excerpt_{'a' * 16}>"]) == "b" * 16


@given(TEXTS)
def test_chunks_come_first_as_they_are_each_between_its_own_tags(texts: list[str]) -> None:
    user = prompt_of(Ask(chunks_of(texts), ["factual"])).user
    mark = mark_for(texts)

    rest = user
    for number, text in enumerate(texts, 1):
        opened = f'<excerpt_{mark} number="{number}">\n'
        assert rest.startswith(opened + text + f"\n</excerpt_{mark}>\n")
        rest = rest.removeprefix(opened + text + f"\n</excerpt_{mark}>\n")
    assert rest.startswith("\nWrite one question for each line")
    assert user.count(f"</excerpt_{mark}>") == len(texts)


@given(TEXTS, TEXTS)
def test_the_task_and_the_system_prompt_hang_on_no_word_of_the_chunks(
    texts: list[str], others: list[str]
) -> None:
    asks = [Ask(chunks_of([text]), ["factual"]) for text in (texts[0], others[0])]

    first, second = map(prompt_of, asks)

    assert first.system == second.system
    assert (
        first.user.split("\n\nWrite one question")[-1]
        == (second.user.split("\n\nWrite one question")[-1])
    )


def test_the_questions_wanted_are_listed_in_order_with_what_each_category_means() -> None:
    user = prompt_of(Ask(chunks_of(["a"]), ["procedural", "factual", "legal"])).user

    assert "\n1. procedural (asks how to do something, step by step)\n2. factual (" in user
    assert "\n3. legal\n" in user


@pytest.mark.parametrize("category", list(Category))
def test_every_category_of_ours_is_explained(category: Category) -> None:
    assert f"1. {category} (" in prompt_of(Ask(chunks_of(["a"]), [category])).user


def test_several_chunks_must_all_be_needed_and_one_need_not() -> None:
    one = prompt_of(Ask(chunks_of(["a"]), ["factual"])).user
    two = prompt_of(Ask(chunks_of(["a", "b"]), ["factual"])).user

    assert "needs every one of the excerpts" in two
    assert "needs every one of the excerpts" not in one


def test_an_unanswerable_question_is_asked_for_as_one() -> None:
    user = prompt_of(Ask(chunks_of(["a", "b"]), ["factual"], kind=Kind.UNANSWERABLE)).user

    assert "is NOT answered by the excerpts" in user
    assert "needs every one" not in user


@pytest.mark.parametrize("kind", list(Kind))
def test_forbidden_terms_stand_in_a_tag_of_their_own_and_only_where_there_are_any(
    kind: Kind,
) -> None:
    terms = ["Übergabe", 'a "quoted" one', "line\nbreak"]
    some = prompt_of(Ask(chunks_of(["a"]), ["factual"], kind=kind, forbidden=terms)).user
    none = prompt_of(Ask(chunks_of(["a"]), ["factual"], kind=kind)).user

    mark = mark_for(["a", *terms])
    listed = r'["Übergabe", "a \"quoted\" one", "line\nbreak"]'
    assert f"<terms_{mark}>\n{listed}\n</terms_{mark}>" in some
    assert "terms" not in none


@pytest.mark.parametrize("kind", list(Kind))
def test_no_placeholder_is_left_over(kind: Kind) -> None:
    prompt = prompt_of(Ask(chunks_of(["a"]), ["factual"], kind=kind, language="de"))

    assert "$" not in prompt.system + prompt.user
    assert "\n\n\n" not in prompt.user
