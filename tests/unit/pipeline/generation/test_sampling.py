import random
from collections import Counter
from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.base import Ask, Category, SourceChunk
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.sampling import (
    BLOCK,
    DISTINCTIVE,
    DrawnChunk,
    ask_for,
    categories,
    distinct,
    distinctive_terms,
    document_frequencies,
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


def taken(*chunks: DrawnChunk, wanted: int = 100, skipped: tuple[str, ...] = ()) -> list[str]:
    found = distinct(chunks, wanted, near_duplicate=0.95, skipped=set(skipped))
    return [each.chunk.key for each in found]


def test_chunks_that_say_other_things_are_all_taken_up_to_the_number_wanted() -> None:
    chunks = [drawn(str(n), prose(n)) for n in range(5)]

    assert taken(*chunks) == ["0", "1", "2", "3", "4"]
    assert taken(*chunks, wanted=2) == ["0", "1"]
    assert taken(*chunks, wanted=2, skipped=("0", "2")) == ["1", "3"]


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

    assert taken(*many, *again, wanted=9999) == [each.chunk.key for each in many]


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


def test_distinctive_terms_are_the_words_that_other_chunks_lack() -> None:
    chunks = [
        SourceChunk("a", "The zephyrlink pump needs a zephyrlink seal before the pump runs."),
        SourceChunk("b", "The pump runs before the valve, and the valve needs oil."),
        SourceChunk("c", "Before the winter the house needs a new roof."),
    ]

    terms = distinctive_terms(chunks[0], document_frequencies(chunks))

    assert terms[0] == "zephyrlink"
    assert "seal" in terms
    assert not {"before", "needs", "runs", "the"} & set(terms)
    assert len(terms) <= DISTINCTIVE


def test_an_ask_is_stored_and_read_as_it_was() -> None:
    chunks = (SourceChunk("d:1", "text", "acme", "pt"), SourceChunk("d:2", "more"))
    ask = ask_for(chunks, ("factual",), kind=Kind.UNANSWERABLE, forbidden=("zephyr",))

    assert ask == Ask(chunks, ("factual",), Kind.UNANSWERABLE, "pt", ("zephyr",))
    assert ask_from_json(ask_to_json(ask)) == ask


def test_a_plan_is_stored_and_read_as_it_was() -> None:
    settings = GenerationSettings(base_url="http://localhost:8080", max_cost=2.0)
    plan = GenerationPlan(
        generation=settings, prompt_version="questions-1", sample=5, categories={"factual": 2},
        seed=9, tenant="acme",
    )  # fmt: skip

    assert GenerationPlan.from_json(plan.to_json()) == plan
