"""What a strategy returns for one question now, with all that a person may want to know of it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.corpus.neighbours import returned_contents
from pipeline.corpus.statistics import tenant_sizes
from pipeline.corpus.tenants import as_stored, tenants_of
from pipeline.errors import CorpusError
from pipeline.retrieval.base import Retriever
from pipeline.retrieval.serving import serving_index, unserved
from pipeline.retrieval.tree import StrategyTree, tree_of
from pipeline.types import Failure, FloatMatrix, QueryBatch, Ranking
from workers.context import Context
from workers.enqueue import run_settings
from workers.underfill import Searched, underfilled


@dataclass(frozen=True, slots=True)
class Query:
    """A question, as a golden set would hold it; at most `k` chunks are wanted."""

    text: str
    tenant: str | None = None
    language: str | None = None
    k: int = 5


@dataclass(frozen=True, slots=True)
class Tried:
    """A strategy's ranking, or why there is none; milliseconds of the search, without embedding.

    `contents` and `tenants` are those of its keys that the corpus holds; `plans` PostgreSQL's plans
    of the searches, where they were asked for; `notes` what to know of it besides.
    """

    strategy: str
    found: Ranking | Failure
    ms: float
    contents: Mapping[str, str] = field(default_factory=dict)
    tenants: Mapping[str, set[str | None]] = field(default_factory=dict)
    plans: Sequence[str] = ()
    notes: Sequence[str] = ()


def try_strategy(ctx: Context, strategy: str, query: Query, *, explain: bool = False) -> Tried:
    """Ask one strategy one question, as a run would ask it.

    Raises UsageError for an unknown strategy, and what retrieving raises.
    """
    settings = run_settings(ctx.settings, strategy)
    session = None
    if explain:
        retriever, session = ctx.explained_retriever(settings)
    else:
        retriever = ctx.retriever(settings, {})
    batch = QueryBatch(
        [query.text], [query.tenant], [query.language], _vector(ctx, retriever, query.text)
    )
    started = time.monotonic()
    [found] = retriever.retrieve(batch, query.k)
    seconds = time.monotonic() - started - (session.seconds if session is not None else 0.0)
    keys = [] if isinstance(found, Failure) else [*found.keys]
    table = ctx.corpus_table()
    tree = tree_of(strategy, ctx.settings.strategies)
    return Tried(
        strategy,
        found,
        1000 * seconds,
        returned_contents(ctx.corpus(), table, [(query.tenant, keys)])[query.tenant],
        tenants_of(ctx.corpus(), table, keys),
        session.plans if session is not None else (),
        [*_notes(ctx, tree, query, found)],
    )


def _notes(
    ctx: Context, tree: StrategyTree, query: Query, found: Ranking | Failure
) -> Iterator[str]:
    """Yield what is odd: a search without an index, too few results, a tenant without chunks."""
    conn, table = ctx.corpus(), ctx.corpus_table()
    yield from map(str, unserved(conn, table, tree))
    index = serving_index(conn, table, tree)
    searched = Searched(conn, table, None, index.method if index else None, [query.tenant])
    for stage, cause in underfilled(searched, tree, query.k, [found]):
        of = f" of {stage}" if stage else ""
        yield f"fewer results{of} than the corpus has: {cause}"
    silent = isinstance(found, Ranking) and not found.keys
    if silent and query.tenant is not None and table.has("tenant"):
        [stored] = as_stored(conn, table, [query.tenant]).values()
        if stored not in tenant_sizes(conn, table):
            yield f"no chunk of the corpus is of tenant {query.tenant!r}"


def _vector(ctx: Context, retriever: Retriever, text: str) -> FloatMatrix | None:
    """Return the question's vector, shape (1, dimensions), where the strategy asks for it."""
    if not retriever.needs_vectors:
        return None
    dimensions = ctx.corpus_table().dimensions
    vectors, failures = ctx.embedder(dimensions=dimensions).embed([text])
    if failures:
        raise CorpusError(f"the question cannot be embedded: {failures[0].reason}")
    return vectors
