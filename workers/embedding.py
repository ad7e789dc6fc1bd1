"""Task embed_shard: put the vectors of a batch's shard into the cache, then ring its runs."""

import json
import time

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from db import golden, runs, shards
from db.models import Run
from db.session import Session
from pipeline.embedding.cached import CachedEmbedder, Stats
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import RecallwatchError, TransientError
from workers import context, doorbell
from workers.app import app
from workers.context import Context
from workers.doorbell import EMBED_SHARD
from workers.failing import fail_runs
from workers.retrying import asks_patience, wait_before_retry
from workers.spending import BatchBudget

log = structlog.get_logger(__name__)


@app.task(name=EMBED_SHARD)
def embed_shard(batch_id: int, number: int) -> None:
    """Embed what the cache lacks of one shard of a batch's questions."""
    embed(context.current(), batch_id, number)


def embed(ctx: Context, batch_id: int, number: int) -> None:
    """Hold the shard, warm the cache, let the shard go and ring every run that waits for it.

    Nothing is stored but the cache, so running twice costs time only. An error that waiting may
    cure leaves the shard to the sweep: where a server asked for patience that rings here again,
    else for evaluation, which embeds inline and counts the attempt. Any other error fails the runs
    that need the vectors.
    """
    with structlog.contextvars.bound_contextvars(batch=batch_id, shard=number):
        with ctx.database.begin() as session:
            lease = ctx.settings.queue.lease
            positions = shards.hold_for_embedding(session, batch_id, number, lease=lease)
            if positions is None:
                return
            run, texts = _load(session, batch_id, positions)
        try:
            spent = _warm(_embedder(ctx, run), texts, BatchBudget(ctx, batch_id))
        except TransientError as error:
            _postpone(ctx, batch_id, number, error)
        except RecallwatchError as error:
            _fail(ctx, batch_id, number, str(error))
        except SoftTimeLimitExceeded:
            _postpone(ctx, batch_id, number, TransientError(f"not embedded in {lease} seconds"))
        except Exception as error:
            log.exception("embedding_raised")
            _postpone(ctx, batch_id, number, error)
        else:
            with ctx.database.begin() as session:
                shards.add_stats(session, batch_id, number, stats=json.dumps(spent))
                waiting = shards.end_hold(session, batch_id, number)
            doorbell.evaluate((run_id, number) for run_id in waiting)


def _warm(embedder: CachedEmbedder, texts: list[str], budget: BatchBudget) -> dict[str, float]:
    """Cache the vectors; return what it took, in the names that evaluation uses.

    Cache hits are left out: evaluation finds every text in the cache, and counts it.
    """
    embedder.stats = spent = Stats()
    started = time.monotonic()
    embedder.warm(texts, budget)
    return {
        "embedded_texts": spent.misses,
        "embedding_calls": spent.calls,
        "warm_seconds": time.monotonic() - started,
    }


def _load(session: Session, batch_id: int, positions: tuple[int, int]) -> tuple[Run, list[str]]:
    """Return one run of those that need the vectors, all alike in this, and the texts."""
    run = next(run for run in runs.of_batch(session, batch_id) if run.needs_vectors)
    version_id = runs.get(session, run.id).version.id
    return run, [item.text for item in golden.items(session, version_id, *positions)]


def _embedder(ctx: Context, run: Run) -> CachedEmbedder:
    embedding = EmbeddingSettings.model_validate(run.settings["embedding"])
    return ctx.embedder(embedding, run.corpus_fingerprint["dimension"])


def _postpone(ctx: Context, batch_id: int, number: int, error: Exception) -> None:
    wait = wait_before_retry(error, attempt=1)
    reason = str(error) if isinstance(error, RecallwatchError) else repr(error)
    log.warning("embedding_postponed", wait=wait, reason=reason)
    with ctx.database.begin() as session:
        shards.end_hold(session, batch_id, number, wait=wait, error=reason)
        if asks_patience(error):
            shards.ring_anew(session, batch_id, number)


def _fail(ctx: Context, batch_id: int, number: int, reason: str) -> None:
    """Fail the runs whose shard still waits for these vectors: the others got theirs."""
    log.warning("embedding_failed", reason=reason)
    with ctx.database.begin() as session:
        waiting = shards.end_hold(session, batch_id, number, error=reason)
    # In a transaction of its own: two that end a run with a shard of it locked would deadlock.
    fail_runs(ctx, waiting, reason)
