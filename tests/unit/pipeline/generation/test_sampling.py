import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.generation.base import Ask, Category, SourceChunk
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.sampling import (
    BLOCK,
    Distinct,
    DrawnChunk,
    ask_for,
    categories,
    instead_of,
)
from pipeline.generation.settings import GenerationSettings
from pipeline.generation.stored import ask_from_json, ask_to_json
from pipeline.types import Kind

WORDS = [f"word{n}" for n in range(400)]


def prose(seed: int, words: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))  # noqa: S311 - test data


def drawn(key: str, content: str, vector: list[float] | None = None) -> DrawnChunk:
    array = None if vector is None else np.array(vector, dtype=np.float32)
    return DrawnChunk(SourceChunk(key, content), vector=array)


def taken(*chunks: DrawnChunk, before: Sequence[DrawnChunk] = ()) -> list[str]:
    distinct = Distinct(near_duplicate=0.95)
    for each in before:
        distinct.remember(each)
    return [each.chunk.key for each in chunks if distinct.take(each)]


def test_chunks_that_say_other_things_are_all_taken() -> None:
    assert taken(*(drawn(str(n), prose(n)) for n in range(5))) == ["0", "1", "2", "3", "4"]


def test_what_says_the_same_as_a_chunk_of_before_is_not_taken_nor_what_is_near_to_it() -> None:
    before = [
        drawn("before", prose(1), [1, 0]),
        drawn("its copy, elsewhere", prose(1), [0, 1]),
    ]

    assert taken(
        drawn("copy", prose(1), [-1, 0]),
        drawn("near", prose(2), [20, 1]),
        drawn("near the copy", prose(3), [1, 20]),
        drawn("new", prose(4), [-1, 0]),
        before=before,
    ) == ["new"]


def test_a_copy_is_left_out_also_in_another_case_and_with_a_line_added() -> None:
    text = prose(1)

    assert taken(
        drawn("first", text),
        drawn("copy", text),
        drawn("shouted", f"  {text.upper()}"),
        drawn("added", f"{text}\n{prose(2, 8)}"),
        drawn("cut", text[: len(text) // 2]),
    ) == ["first"]


def test_chunks_that_overlap_by_a_fifth_are_both_taken() -> None:
    text = prose(3, 100)
    cut = len(text) // 5

    assert taken(drawn("a", text[: 3 * cut]), drawn("b", text[int(2.4 * cut) :])) == ["a", "b"]


def test_vectors_that_point_the_same_way_are_near_duplicates() -> None:
    assert taken(
        drawn("a", prose(1), [1, 0]),
        drawn("rewritten", prose(2), [20, 1]),
        drawn("elsewhere", prose(3), [0, 1]),
        drawn("no direction", prose(4), [0, 0]),
        drawn("no vector", prose(5)),
    ) == ["a", "elsewhere", "no direction", "no vector"]


def test_a_near_duplicate_is_found_among_many() -> None:
    vectors = np.eye(BLOCK + 3, dtype=np.float32)
    many = [drawn(str(n), prose(n), vector.tolist()) for n, vector in enumerate(vectors)]
    again = [drawn(f"again {n}", prose(1000 + n), vectors[n].tolist()) for n in (0, BLOCK + 1)]

    assert taken(*many, *again) == [each.chunk.key for each in many]


def test_texts_without_blanks_are_compared_too() -> None:
    text = (
        "東京都庁は新宿区西新宿にある東京都の行政機関の本庁舎であり多くの観光客が訪れる場所です。"
    )

    assert taken(drawn("a", text), drawn("b", text + "高さは二百四十三")) == ["a"]


@given(
    st.dictionaries(st.sampled_from(list(Category)), st.integers(1, 5), min_size=1), st.integers()
)
def test_each_round_of_categories_holds_the_mix(mix: dict[str, int], seed: int) -> None:
    size = sum(mix.values())
    stream = categories(mix, seed)

    for _ in range(3):
        assert Counter(islice(stream, size)) == mix


def test_categories_are_the_same_by_a_seed() -> None:
    mix = {str(category): 2 for category in Category}

    def first(seed: int) -> list[str]:
        return list(islice(categories(mix, seed), 30))

    assert first(5) == first(5) != first(6)


@given(st.lists(st.sampled_from("abcd"), max_size=6), st.lists(st.sampled_from("abcd"), max_size=6))
def test_what_stands_in_for_another_category_makes_up_the_difference_of_the_two_mixes(
    asked: list[str], given: list[str]
) -> None:
    found = instead_of(asked, given)

    assert len(found) == len(given)
    met = Counter(one for one, other in zip(given, found, strict=True) if other is None)
    unmet = Counter(other for other in found if other is not None)
    short = Counter(asked) - Counter(given)
    assert unmet <= short
    if len(given) <= len(asked):
        assert met == Counter(asked) & Counter(given)
        assert met + unmet <= Counter(asked)


def test_the_order_of_categories_is_the_models_own() -> None:
    assert instead_of(["a", "b", "c"], ["c", "a", "b"]) == [None, None, None]
    assert instead_of(["a", "b", "c"], ["a", "a", "a"]) == [None, "b", "c"]


def test_an_ask_is_in_the_language_of_its_chunks_whatever_the_corpus_says() -> None:
    german = "Die Garantie gilt drei Jahre ab dem Kauf, und sie deckt alle Fehler der Fertigung. "

    assert ask_for([SourceChunk("d:1", german * 3, language="en")], ["factual"]).language == "de"
    assert ask_for([SourceChunk("d:1", german * 3, language="de")], ["factual"]).language == "de"
    assert ask_for([SourceChunk("d:1", german * 3)], ["factual"]).language is None


def test_an_ask_is_stored_and_read_as_it_was() -> None:
    chunks = (SourceChunk("d:1", "text", "acme", "pt"), SourceChunk("d:2", "more"))
    ask = ask_for(chunks, ("factual",), kind=Kind.UNANSWERABLE, forbidden=("zephyr",))

    assert ask == Ask(chunks, ("factual",), Kind.UNANSWERABLE, "pt", ("zephyr",))
    assert ask_from_json(ask_to_json(ask)) == ask


def test_a_plan_is_stored_and_read_as_it_was() -> None:
    settings = GenerationSettings(base_url="http://localhost:8080", max_cost=2.0)
    plan = GenerationPlan(
        generation=settings, prompt_version="questions-1", sample=5, categories={"factual": 2},
        seed=9, tenant="acme", search={"vector": {"strategy": {"kind": "vector"}}},
        corpus=CorpusSettings(table="docs"), embedding=EmbeddingSettings(dimensions=8), k=10,
        look_depth=100,
    )  # fmt: skip

    assert GenerationPlan.from_json(plan.to_json()) == plan
