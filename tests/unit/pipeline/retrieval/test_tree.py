"""Trees of strategies: what a run stores of them, and what is read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import PermanentError, UsageError
from pipeline.retrieval.strategies import (
    BUILT_IN,
    FulltextStrategy,
    HybridStrategy,
    Strategy,
    VectorStrategy,
)
from pipeline.retrieval.tree import StrategyTree, tree_of, with_defaults

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
    outer = HybridStrategy(arms={"the hybrid": 1.0, next(iter(arms)): 2.0})
    strategies: dict[str, Strategy] = {**arms, "the hybrid": hybrid, "the outer": outer}
    for name, strategy in strategies.items():
        # As jsonb gives it back: keys in an order of its own.
        stored = json.loads(json.dumps(tree_of(name, strategies).to_json(), sort_keys=True))
        assert stored["name"] == name
        tree = StrategyTree.from_json(stored)
        assert (tree, tree.strategy) == (tree_of(name, strategies), strategy)


def test_a_stored_hybrid_holds_the_settings_and_weights_of_its_arms() -> None:
    strategies: dict[str, Strategy] = {
        "vector-ef200": VectorStrategy(ef_search=200),
        "mixed": HybridStrategy(arms={"vector-ef200": 0.7}, rrf_k=10),
    }
    stored = tree_of("mixed", strategies).to_json()
    assert (stored["kind"], stored["rrf_k"]) == ("hybrid", 10)
    assert stored["arms"] == {"vector-ef200": 0.7}
    arm = stored["parts"]["vector-ef200"]
    assert (arm["name"], arm["kind"], arm["ef_search"]) == ("vector-ef200", "vector", 200)


@pytest.mark.parametrize(
    ("name", "needed"),
    [("vector", True), ("fulltext", False), ("hybrid", True), ("words", False), ("outer", True)],
)
def test_a_tree_says_whether_vectors_are_needed(name: str, needed: bool) -> None:
    strategies = {
        **BUILT_IN,
        "words": HybridStrategy(arms={"fulltext": 1.0}),
        "outer": HybridStrategy(arms={"words": 1.0, "hybrid": 1.0}),
    }
    assert tree_of(name, strategies).needs_vectors is needed


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no strategy 'vektor'; there are: fulltext, hybrid, vect"):
        tree_of("vektor", BUILT_IN)


def test_settings_of_another_version_are_refused_naming_the_place() -> None:
    stored = tree_of("vector", BUILT_IN).to_json() | {"quantizer": 8}
    with pytest.raises(PermanentError, match=r"strategy 'vector' .* vector[.]quantizer: "):
        StrategyTree.from_json(stored)


def test_the_searches_of_a_tree_are_its_leaves_from_left_to_right() -> None:
    strategies = {
        **BUILT_IN,
        "both": HybridStrategy(arms={"vector": 1.0, "fulltext": 2.0}),
        "deep": HybridStrategy(arms={"fulltext": 1.0, "both": 1.0}),
    }
    names = [each.name for each in tree_of("deep", strategies).searches()]
    assert names == ["fulltext", "vector", "fulltext"]
    assert [each.name for each in tree_of("vector", strategies).searches()] == ["vector"]


def test_settings_of_an_earlier_version_get_the_defaults_of_those_that_came_later() -> None:
    now = tree_of("hybrid", BUILT_IN).to_json()
    before = {**now, "parts": {**now["parts"], "vector": {
        "name": "vector", "kind": "vector", "ef_search": 40, "exact": False,
    }}}  # fmt: skip

    assert with_defaults(before) == now
    assert with_defaults(now) == now


def test_what_this_version_cannot_read_stays_as_it_is() -> None:
    for stored in ({}, {"kind": "gone", "name": "x"}, {"kind": "hybrid", "arms": {"a": 1.0}}):
        assert with_defaults(stored) == stored
