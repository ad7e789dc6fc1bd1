"""Snapshots of strategies: what a run stores of them, and what is read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import PermanentError, UsageError
from pipeline.retrieval.build import arms_of, needs_vectors, parse_snapshot, snapshot
from pipeline.settings import BUILT_IN, FulltextStrategy, HybridStrategy, Strategy, VectorStrategy

VECTORS = st.builds(
    VectorStrategy,
    ef_search=st.integers(1, 1000),
    iterative_scan=st.sampled_from(["off", "strict_order", "relaxed_order"]),
    exact=st.booleans(),
)
FULLTEXTS = st.builds(
    FulltextStrategy,
    match=st.sampled_from(["any", "all"]),
    max_document_frequency=st.floats(0, 1),
    normalization=st.integers(0, 63),
)
ARMS = st.dictionaries(
    st.text("abcdefgh-", min_size=1, max_size=8), VECTORS | FULLTEXTS, min_size=1, max_size=4
)


@given(arms=ARMS, data=st.data())
def test_a_stored_strategy_reads_back_as_it_was(
    arms: dict[str, Strategy], data: st.DataObject
) -> None:
    weights = data.draw(st.fixed_dictionaries({name: st.floats(0.1, 10) for name in arms}))
    hybrid = HybridStrategy(arms=weights, rrf_k=data.draw(st.integers(1, 10_000)))
    strategies: dict[str, Strategy] = {**arms, "the hybrid": hybrid}
    for name, strategy in strategies.items():
        # As jsonb gives it back: keys in an order of its own.
        stored = json.loads(json.dumps(snapshot(name, strategies), sort_keys=True))
        assert stored["name"] == name
        assert parse_snapshot(stored) == (strategy, arms if strategy is hybrid else {})


def test_a_snapshot_of_a_hybrid_holds_its_arms_settings_and_weights() -> None:
    strategies: dict[str, Strategy] = {
        "vector-ef200": VectorStrategy(ef_search=200),
        "mixed": HybridStrategy(arms={"vector-ef200": 0.7}, rrf_k=10),
    }
    stored = snapshot("mixed", strategies)
    assert (stored["kind"], stored["rrf_k"]) == ("hybrid", 10)
    arm = stored["arms"]["vector-ef200"]
    assert (arm["weight"], arm["kind"], arm["ef_search"]) == (0.7, "vector", 200)


@pytest.mark.parametrize(
    ("name", "needed"), [("vector", True), ("fulltext", False), ("hybrid", True), ("words", False)]
)
def test_a_snapshot_says_whether_vectors_are_needed(name: str, needed: bool) -> None:
    words_only = HybridStrategy(arms={"fulltext": 1.0})
    assert needs_vectors(snapshot(name, {**BUILT_IN, "words": words_only})) is needed


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no strategy 'vektor'; there are: fulltext, hybrid, vect"):
        snapshot("vektor", BUILT_IN)


def test_settings_of_another_version_are_refused_naming_the_place() -> None:
    stored = snapshot("vector", BUILT_IN) | {"quantizer": 8}
    with pytest.raises(PermanentError, match=r"strategy 'vector' .* vector[.]quantizer: "):
        parse_snapshot(stored)


def test_the_arms_of_a_strategy_are_the_searches_it_makes() -> None:
    strategies = {**BUILT_IN, "both": HybridStrategy(arms={"vector": 1.0, "fulltext": 2.0})}
    assert arms_of(snapshot("vector", strategies)) == [VectorStrategy()]
    assert arms_of(snapshot("both", strategies)) == [VectorStrategy(), FulltextStrategy()]
