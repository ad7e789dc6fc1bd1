"""The causes that are named where a search returned too little."""

from typing import Any

import pytest

from pipeline.retrieval.strategies import VectorStrategy
from pipeline.retrieval.underfill import underfill_cause


@pytest.mark.parametrize(
    ("settings", "limit", "tenant", "method", "cause"),
    [
        ({"iterative_scan": "off"}, 10, "acme", "hnsw",
         ("the index yields ef_search = 40 chunks, the tenant filter drops most of them, and"
         " iterative_scan is off: turn it on, or search small tenants exactly (exact_below)")),
        ({"iterative_scan": "off", "where": "published"}, 10, None, "hnsw",
         ("the index yields ef_search = 40 chunks, where drops most of them, and iterative_scan is"
         " off: turn it on, or index the chunks of that condition alone")),
        ({"iterative_scan": "off", "raise_ef_search": False}, 100, None, "hnsw",
         "ef_search = 40 is below the 100 rows asked for"),
        ({"iterative_scan": "off"}, 1500, None, None,
         "ef_search = 1000 is below the 1500 rows asked for"),
        ({}, 10, "acme", "hnsw",
         ("the iterative scan ended at hnsw.max_scan_tuples (the server's, 20,000 by default) or at"
         " the memory of hnsw.scan_mem_multiplier before enough passed the tenant filter")),
        ({"max_scan_tuples": 500, "where": "a"}, 10, "acme", "hnsw",
         ("the iterative scan ended at hnsw.max_scan_tuples (500) or at the memory of"
         " hnsw.scan_mem_multiplier before enough passed the tenant filter and where")),
        ({"tenant": "ignore"}, 10, "acme", "hnsw",
         "dead rows took places among the ef_search = 40 candidates: VACUUM the table"),
        ({"probes": 3}, 10, None, "ivfflat",
         "the lists of ivfflat.probes (3) hold too few chunks"),
        ({"iterative_scan": "off"}, 10, "acme", "ivfflat",
         ("the lists of ivfflat.probes (the server's, 1 by default) hold too few chunks that pass"
         " the tenant filter, and iterative_scan is off")),
        ({"exact": True}, 10, None, None, "vectors without a direction are never found"),
    ],
)  # fmt: skip
def test_the_cause_is_named(
    settings: dict[str, Any], limit: int, tenant: str | None, method: str | None, cause: str
) -> None:
    strategy = VectorStrategy.model_validate(settings)
    assert underfill_cause(strategy, limit, tenant=tenant, method=method) == cause


def test_what_a_least_score_cut_is_no_fault() -> None:
    strategy = VectorStrategy(min_score=0.5, iterative_scan="off")
    assert underfill_cause(strategy, 10, tenant="acme", method="hnsw") is None
