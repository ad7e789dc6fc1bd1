"""What a person does to a run: cancel it, let it go on, have its failed questions asked again."""

from collections.abc import Sequence

from db import run_states, runs, shards
from db.models import Run
from db.session import Session
from pipeline.corpus.settings import CorpusSettings
from pipeline.corpus.statistics import fingerprint
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.errors import UsageError
from pipeline.retrieval.serving import as_searched
from pipeline.retrieval.tree import StrategyTree
from pipeline.types import RunStatus
from workers import doorbell
from workers.context import Context
from workers.spending import renew_cap

RESUMABLE = (RunStatus.FAILED, RunStatus.CANCELLED)


def cancel(ctx: Context, run_ids: Sequence[int], *, by: str | None = None) -> list[int]:
    """End unfinished runs as cancelled; return those it ended.

    Whoever works on a shard of one can store nothing any more. No alert is written: a person did
    it. Raises UsageError for a run that is not there.
    """
    with ctx.database.begin() as session:
        for run_id in run_ids:
            runs.get(session, run_id)
        return run_states.cancel(session, run_ids, f"cancelled by {by}" if by else "cancelled")


def resume(ctx: Context, run_id: int) -> int:
    """Let a failed or cancelled run go on; return how many of its shards were rung for.

    What was measured is kept. Raises UsageError for a run in another state, or whose corpus
    changed since it was queued: its two halves would have measured two things.
    """
    with ctx.database.begin() as session:
        run = runs.get(session, run_id).run
    if run.status not in RESUMABLE:
        raise UsageError(f"run {run_id} is {run.status}: only a failed or cancelled one goes on")
    _need_same_corpus(ctx, run)
    with ctx.database.begin() as session:
        if not run_states.resume(session, run_id, deadline=ctx.settings.queue.deadline):
            raise UsageError(f"run {run_id} was changed by somebody else meanwhile: look again")
        renew_cap(ctx, session, run)
        waiting = shards.ring_pending(session, run_id)
    _ask_provider_again(ctx, run)
    _ring(run_id, waiting)
    return len(waiting)


def retry_failed(ctx: Context, run_id: int) -> int:
    """Have a completed run's failed questions asked again, in whole shards; return how many.

    Its record is written anew when they are done. Raises UsageError for a run in another state,
    one without failed questions, one that later runs were compared with or that is pinned, and
    one whose corpus changed since it was queued.
    """
    with ctx.database.begin() as session:
        run = _lock_failed(session, run_id)
    # Without the lock: the corpus may take its time, and reducers wait to compare with the run.
    _need_same_corpus(ctx, run)
    with ctx.database.begin() as session:
        run = _lock_failed(session, run_id)
        renew_cap(ctx, session, run)
        run_states.retry_failed(session, run_id, deadline=ctx.settings.queue.deadline)
        waiting = shards.ring_pending(session, run_id)
    _ask_provider_again(ctx, run)
    _ring(run_id, waiting)
    return run.n_failed or 0


def _lock_failed(session: Session, run_id: int) -> Run:
    """Lock a completed run with failed questions that nothing hangs on, and return it."""
    run = run_states.lock_completed(session, run_id)
    if run is None:
        status = runs.get(session, run_id).run.status
        how = "it can be resumed" if status in RESUMABLE else "wait for its end"
        raise UsageError(f"run {run_id} is {status}, not completed: {how}")
    if not run.n_failed:
        raise UsageError(f"no question of run {run_id} failed")
    if (used_by := runs.users(session, run_id)) is not None:
        raise UsageError(f"run {run_id} stays as it is: {used_by}; start a new one")
    return run


def _need_same_corpus(ctx: Context, run: Run) -> None:
    """Raise UsageError for a corpus that changed. Call it outside of a transaction: it is slow."""
    corpus = CorpusSettings.model_validate(run.settings["corpus"])
    conn, table = ctx.corpus(), ctx.corpus_table(corpus)
    tree = StrategyTree.from_json(run.settings["strategy"])
    now = as_searched(conn, table, fingerprint(conn, table), tree).to_json()
    if now != run.corpus_fingerprint:
        raise UsageError(
            f"the corpus changed since run {run.id} was queued, and a run measures one corpus:"
            " start a new one with recallwatch eval"
        )


def _ask_provider_again(ctx: Context, run: Run) -> None:
    """Lift the pause that the provider's refusal may have set: a person asks anew."""
    if run.needs_vectors:
        ctx.lift_pause(EmbeddingSettings.model_validate(run.settings["embedding"]))


def _ring(run_id: int, waiting: Sequence[int]) -> None:
    """Ring for evaluation, which embeds inline what the cache lacks."""
    if waiting:
        doorbell.evaluate((run_id, number) for number in waiting)
    else:
        doorbell.reduce([run_id])
