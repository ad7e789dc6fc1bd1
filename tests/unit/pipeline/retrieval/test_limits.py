"""How deep to ask, for each kind of strategy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.retrieval.limits import effective_limit
from pipeline.settings import FulltextStrategy, HybridStrategy, Strategy, VectorStrategy
from pipeline.types import Level

INDEXED = VectorStrategy(ef_search=40)
EXACT = VectorStrategy(exact=True)
HYBRID = HybridStrategy(depth=50)
ALL = (INDEXED, EXACT, FulltextStrategy(), HYBRID)


@pytest.mark.parametrize(
    ("strategy", "k", "look_depth", "expected"),
    [
        (INDEXED, 5, 50, 40),
        (INDEXED, 5, 20, 20),
        (INDEXED, 100, 50, 100),
        (EXACT, 5, 50, 50),
        (FulltextStrategy(), 5, 50, 50),
        (FulltextStrategy(), 60, 50, 60),
        (HYBRID, 5, 200, 50),
        (HYBRID, 80, 200, 80),
    ],
)
def test_chunks_are_looked_for_as_deep_as_changes_nothing(
    strategy: Strategy, k: int, look_depth: int, expected: int
) -> None:
    assert effective_limit(strategy, k, Level.CHUNK, look_depth) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"), [(INDEXED, 5), (EXACT, 50), (FulltextStrategy(), 50), (HYBRID, 50)]
)
def test_within_a_tenant_an_index_is_asked_for_no_more_than_counts(
    strategy: Strategy, expected: int
) -> None:
    assert effective_limit(strategy, 5, Level.CHUNK, 50, tenants=True) == expected


@pytest.mark.parametrize("strategy", ALL)
def test_documents_need_five_times_as_many_chunks(strategy: Strategy) -> None:
    assert effective_limit(strategy, 30, Level.DOCUMENT, 1) == 150


@given(
    strategy=st.sampled_from(ALL),
    k=st.integers(1, 1000),
    level=st.sampled_from(Level),
    look_depth=st.integers(1, 1000),
    tenants=st.booleans(),
)
def test_what_the_index_or_the_arms_are_asked_does_not_depend_on_the_look_depth(
    strategy: Strategy, k: int, level: Level, look_depth: int, tenants: bool
) -> None:
    """A deeper look never raises ef_search, and never the arms' candidates."""
    shallow = effective_limit(strategy, k, level, 1, tenants=tenants)
    deep = effective_limit(strategy, k, level, look_depth, tenants=tenants)
    assert k <= shallow <= deep
    if strategy is INDEXED:
        assert max(INDEXED.ef_search, deep) == max(INDEXED.ef_search, shallow)
    if strategy is HYBRID:
        assert max(HYBRID.depth, deep) == max(HYBRID.depth, shallow)
