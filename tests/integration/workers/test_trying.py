"""What a strategy returns for one question now, and what is odd about it."""

import pytest

from pipeline.errors import UsageError
from pipeline.retrieval.strategies import BUILT_IN, HybridStrategy, VectorStrategy
from pipeline.types import Ranking
from tests.integration.workers.conftest import TENANTS, TEXTS, Opener
from workers.context import Context
from workers.trying import Query, Tried, try_strategy

NARROW = VectorStrategy(ef_search=1, raise_ef_search=False, iterative_scan="off")
CAUSE = "ef_search = 1 is below the"


def test_results_come_with_their_texts_and_tenants(ctx: Context) -> None:
    tried = try_strategy(ctx, "vector", Query("can goods be returned?", k=3))

    assert isinstance(tried.found, Ranking)
    assert tried.found.keys[0] == "return:0"
    assert tried.contents == {key: TEXTS[key] for key in tried.found.keys}
    assert tried.tenants == {key: {TENANTS.get(key)} for key in tried.found.keys}
    assert (tried.notes, tried.plans) == ([], ())
    assert tried.ms > 0


def test_a_tenants_few_chunks_are_not_too_few(ctx: Context) -> None:
    tried = try_strategy(ctx, "vector", Query("goods", tenant="acme", k=5))

    assert isinstance(tried.found, Ranking)
    assert set(tried.found.keys) == {"return:0", "return:1"}
    assert tried.notes == []


def test_a_tenant_that_the_corpus_does_not_know_is_named(ctx: Context) -> None:
    tried = try_strategy(ctx, "vector", Query("goods", tenant="nobody"))

    assert isinstance(tried.found, Ranking)
    assert (tried.found.keys, tried.contents) == ([], {})
    assert tried.notes == ["no chunk of the corpus is of tenant 'nobody'"]


def short(open_context: Opener, strategy: str) -> Tried:
    """Ask by the index, which a corpus of eight chunks would not be asked by otherwise."""
    both = HybridStrategy(arms={"narrow": 1.0, "fulltext": 1.0}, depth=6)
    ctx = open_context(strategies={**BUILT_IN, "narrow": NARROW, "both": both})
    ctx.corpus().execute("SET enable_seqscan = off; SET enable_sort = off")
    return try_strategy(ctx, strategy, Query("how is the router reset?", k=4))


def test_fewer_results_than_there_are_come_with_the_cause(open_context: Opener) -> None:
    tried = short(open_context, "narrow")

    assert isinstance(tried.found, Ranking)
    assert len(tried.found.keys) < 4
    [note] = tried.notes
    assert note == f"fewer results than the corpus has: {CAUSE} 4 rows asked for"


def test_an_arm_with_too_few_results_is_named(open_context: Opener) -> None:
    [note] = short(open_context, "both").notes
    assert note == f"fewer results of narrow than the corpus has: {CAUSE} 6 rows asked for"


def test_a_search_without_an_index_says_which_would_serve_it(open_context: Opener) -> None:
    ctx = open_context(strategies={"by-length": VectorStrategy(distance="l1")})

    [note] = try_strategy(ctx, "by-length", Query("goods")).notes

    assert note.startswith("no index serves strategy by-length: ")
    assert "vector_l1_ops" in note


def test_plans_are_those_of_the_searches(ctx: Context) -> None:
    plans = try_strategy(ctx, "hybrid", Query("goods"), explain=True).plans
    assert ["Execution Time" in plan for plan in plans] == [True, True]


def test_a_name_that_there_is_not_is_refused(ctx: Context) -> None:
    with pytest.raises(UsageError, match="no strategy 'nope'"):
        try_strategy(ctx, "nope", Query("goods"))
