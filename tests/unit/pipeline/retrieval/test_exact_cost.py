"""How many questions exact search is asked: as many as the budget allows, at least a hundred."""

from dataclasses import replace
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.exact_cost import LEAST, MOST_IN_SHARD, ExactCost, Sample, sample

COST = ExactCost(chunks=100_000, dimensions=256, limit=10, vector_arms=1, fulltext_arms=0)


def chosen(
    cost: ExactCost,
    questions: int,
    budget: float = 60,
    shard: float = 150,
    tenant: str | None = None,
) -> Sample:
    tenants = repeat(tenant, questions)
    return sample(cost, tenants, {"acme": 500}.__getitem__, budget=budget, shard=shard)


def test_a_small_corpus_takes_every_question() -> None:
    found = chosen(replace(COST, chunks=1000), 5000)

    assert (found.questions, found.shards) == (5000, 5000 // MOST_IN_SHARD)
    assert found.seconds < 5


@given(
    chunks=st.integers(0, 3_000_000),
    dimensions=st.integers(1, 2000),
    limit=st.integers(1, 1000),
    fulltext_arms=st.integers(0, 2),
    questions=st.integers(0, 3000),
    budget=st.floats(1, 600),
)
def test_no_question_is_added_for_which_there_is_no_time(
    chunks: int, dimensions: int, limit: int, fulltext_arms: int, questions: int, budget: float
) -> None:
    cost = ExactCost(chunks, dimensions, limit, 1, fulltext_arms)

    found = chosen(cost, questions, budget)

    expected = found.shards * cost.reading + found.questions * cost.question(chunks)
    assert found.seconds == pytest.approx(expected)
    assert found.questions >= min(LEAST, questions)
    assert found.seconds <= budget or found.questions == min(LEAST, questions)
    if found.questions < questions:
        assert found.seconds + cost.question(chunks) + cost.reading > budget


@given(
    chunks=st.integers(1, 3_000_000),
    questions=st.integers(1, 3000),
    shard=st.floats(5, 300),
)
def test_a_shard_keeps_within_its_time_where_a_reading_does(
    chunks: int, questions: int, shard: float
) -> None:
    cost = replace(COST, chunks=chunks)

    found = chosen(cost, questions, 10_000, shard)

    assert found.questions <= found.shards * MOST_IN_SHARD
    if cost.reading + cost.question(chunks) <= shard:
        assert found.seconds / found.shards <= shard


def test_a_tenants_questions_cost_what_its_chunks_do() -> None:
    all_of_it, own = chosen(COST, 100_000), chosen(COST, 100_000, tenant="acme")

    assert own.questions > 3 * all_of_it.questions


@pytest.mark.parametrize(
    "more",
    [
        {"chunks": 400_000},
        {"dimensions": 1536},
        {"limit": 1000},
        {"vector_arms": 2},
        {"fulltext_arms": 1},
    ],
)
def test_more_work_a_question_leaves_time_for_fewer(more: dict[str, int]) -> None:
    dearer = replace(COST, **more)

    assert dearer.question(dearer.chunks) > 1.4 * COST.question(COST.chunks)
    assert LEAST < chosen(dearer, 100_000).questions < chosen(COST, 100_000).questions


def test_l1_which_no_matrix_product_has_takes_longer() -> None:
    by_product, by_differences = COST, replace(COST, l1_arms=1)

    assert by_differences.question(100_000) > 5 * by_product.question(100_000)
    assert chosen(by_differences, 5000).questions < chosen(by_product, 5000).questions
