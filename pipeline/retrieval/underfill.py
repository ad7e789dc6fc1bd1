"""Why a vector search returned fewer rows than it was asked for, though there are more."""

from pipeline.retrieval.strategies.vector import VectorStrategy

DEFAULT_SCAN_TUPLES = 20_000
"""hnsw.max_scan_tuples where nobody sets it."""


def underfill_cause(
    strategy: VectorStrategy, limit: int, *, tenant: str | None = None, method: str | None = None
) -> str | None:
    """Name the likely cause; None: `min_score` may have left the rest out, which is no fault.

    `limit`: the rows asked for. `tenant`: the question's. `method`: of the index, hnsw (or None,
    not known) or ivfflat. How many rows there are to find within a tenant and `where`:
    `pipeline.corpus.statistics.searched_sizes`.
    """
    if strategy.min_score is not None:
        return None
    if strategy.exact:
        return "vectors without a direction are never found"
    filters = _filters(strategy, tenant)
    if method == "ivfflat":
        return _of_lists(strategy, filters)
    width = strategy.width(limit)
    if width < limit and strategy.iterative_scan == "off":
        return f"ef_search = {width} is below the {limit} rows asked for"
    if filters and strategy.iterative_scan == "off":
        return (
            f"the index yields ef_search = {width} chunks before {filters} drops most of them, and"
            f" iterative_scan is off: turn it on, or {_narrower(strategy, tenant)}"
        )
    if filters or width < limit:
        return _of_iterating(strategy, filters)
    return f"dead rows took places among the ef_search = {width} candidates: VACUUM the table"


def _filters(strategy: VectorStrategy, tenant: str | None) -> str:
    """Name what is filtered by; blank: nothing."""
    by_tenant = tenant is not None and strategy.tenant == "question"
    return " and ".join(["the tenant"] * by_tenant + ["where"] * (strategy.where is not None))


def _narrower(strategy: VectorStrategy, tenant: str | None) -> str:
    if tenant is not None and strategy.tenant == "question":
        return "search small tenants exactly (exact_below)"
    return "index the chunks of that condition alone"


def _of_lists(strategy: VectorStrategy, filters: str) -> str:
    probes = "the server's" if strategy.probes is None else f"{strategy.probes}"
    kept = f" after {filters} dropped others" if filters else ""
    scanning = (
        ", and iterative_scan is off" if strategy.iterative_scan == "off" and filters else ""
    )
    return f"the lists of ivfflat.probes ({probes}) held too few chunks{kept}{scanning}"


def _of_iterating(strategy: VectorStrategy, filters: str) -> str:
    most = strategy.max_scan_tuples
    given = f"{DEFAULT_SCAN_TUPLES:,} unless the server's is another" if most is None else f"{most:,}"
    of = f" before {filters} let enough through" if filters else ""
    return (
        f"the iterative scan ended at hnsw.max_scan_tuples ({given}) or at the memory of"
        f" hnsw.scan_mem_multiplier{of}"
    )
