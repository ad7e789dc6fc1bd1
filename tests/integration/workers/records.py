"""What a run measured, and what makes one that is not as it was."""

from typing import Any

from db.models import Run
from db.session import Database
from tests.integration.db.building import execute, fetch, forget_evidence
from tests.integration.workers.working import Bell, finish_runs
from tests.loopback.openai_server import OpenAIServer, refuse_longer_than, vectors
from workers.context import Context

RECORD = ("metrics", "by_category", "by_tenant", "n_scored", "n_failed", "n_ineligible", "facts")


EXACT = ("n", "of", "sampled", "metrics", "served", "index_loss", "missed", "found_more", "error")


def record(run: Run) -> dict[str, Any]:
    """Return what was measured, without how long it took."""
    exact = run.exact and {name: run.exact[name] for name in EXACT}
    return {name: getattr(run, name) for name in RECORD} | {"exact": exact}


def tokens(db: Database, run_id: int) -> list[int]:
    query = "SELECT token FROM recallwatch.shard WHERE run_id = :run ORDER BY number"
    return fetch(db, query, {"run": run_id})


def change_corpus(db: Database, document: str = "weight") -> None:
    query = "UPDATE recallwatch_corpus.chunks SET content = 'x' WHERE document_id = :document"
    execute(db, query, {"document": document})
    forget_evidence(db)


TOO_LONG = 39
"""Characters; three of the eight questions are longer, in two of three shards."""


def run_with_failures(ctx: Context, bell: Bell, provider: OpenAIServer) -> Run:
    """Evaluate, with no vector in the cache, while the provider takes no long texts."""
    ctx.redis.flushdb()
    provider.default = refuse_longer_than(TOO_LONG, "maximum context length is 39")
    [run] = finish_runs(ctx, bell, "vector")
    provider.default = vectors()
    assert run.n_failed == 3
    return run
