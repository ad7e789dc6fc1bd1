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
    return _of_graph(strategy, limit, filters)


def _filters(strategy: VectorStrategy, tenant: str | None) -> str:
    """Name what is filtered by; blank: nothing."""
    [within] = strategy.whose([tenant])
    named = {"the tenant filter": within is not None, "where": strategy.where is not None}
    return " and ".join(name for name, there in named.items() if there)


def _of_graph(strategy: VectorStrategy, limit: int, filters: str) -> str:
    """Name the cause where an HNSW index was asked."""
    width, iterates = strategy.width(limit), strategy.iterative_scan != "off"
    if iterates and (filters or width < limit):
        return _of_iterating(strategy, filters)
    if width < limit:
        return f"ef_search = {width} is below the {limit} rows asked for"
    if filters:
        return (
            f"the index yields ef_search = {width} chunks, {filters} drops most of them, and"
            f" iterative_scan is off: turn it on, or {_narrower(filters)}"
        )
    return f"dead rows took places among the ef_search = {width} candidates: VACUUM the table"


def _narrower(filters: str) -> str:
    if "tenant" in filters:
        return "search small tenants exactly (exact_below)"
    return "index the chunks of that condition alone"


def _of_iterating(strategy: VectorStrategy, filters: str) -> str:
    most = strategy.max_scan_tuples
    given = f"{most:,}" if most else f"the server's, {DEFAULT_SCAN_TUPLES:,} by default"
    before = f" before enough passed {filters}" if filters else ""
    return (
        f"the iterative scan ended at hnsw.max_scan_tuples ({given}) or at the memory of"
        f" hnsw.scan_mem_multiplier{before}"
    )


def _of_lists(strategy: VectorStrategy, filters: str) -> str:
    """Name the cause where an IVFFlat index was asked."""
    probes = strategy.probes or "the server's, 1 by default"
    kept = f" that pass {filters}" if filters else ""
    off = ", and iterative_scan is off" if filters and strategy.iterative_scan == "off" else ""
    return f"the lists of ivfflat.probes ({probes}) hold too few chunks{kept}{off}"
