"""What a person does to a run: cancel it, let it go on, have its failed questions asked again."""

from collections.abc import Sequence

from db import run_states, runs, shards
from db.models import Run
from pipeline.corpus.statistics import fingerprint
from pipeline.errors import UsageError
from pipeline.settings import CorpusSettings
from pipeline.types import RunStatus
from workers import doorbell
from workers.context import Context


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
    """Let a failed or cancelled run go on; return how many shards are left to do.

    What was measured is kept. Raises UsageError for a run in another state, or whose corpus
    changed since it was queued: its two halves would have measured two things.
    """
    with ctx.database.begin() as session:
        run = runs.get(session, run_id).run
        if run.status not in {RunStatus.FAILED, RunStatus.CANCELLED}:
            raise UsageError(
                f"run {run_id} is {run.status}: only a failed or cancelled one goes on"
            )
        _need_same_corpus(ctx, run)
        if not run_states.resume(session, run_id, deadline=ctx.settings.queue.deadline):
            raise UsageError(f"run {run_id} was changed by somebody else meanwhile: look again")
        waiting = shards.ring_pending(session, run_id)
    _ring(run_id, waiting)
    return len(waiting)


def retry_failed(ctx: Context, run_id: int) -> int:
    """Have a completed run's failed questions asked again, in whole shards; return how many.

    Its record is written anew when they are done. Raises UsageError for a run in another state,
    one without failed questions, one that later runs were compared with or that is pinned, and
    one whose corpus changed since it was queued.
    """
    with ctx.database.begin() as session:
        run = runs.get(session, run_id).run
        if run.status != RunStatus.COMPLETED:
            raise UsageError(f"run {run_id} is {run.status}: see recallwatch runs resume")
        if not run.n_failed:
            raise UsageError(f"no question of run {run_id} failed")
        if (used_by := runs.users(session, run_id)) is not None:
            raise UsageError(f"run {run_id} stays as it is: {used_by}; start a new one")
        _need_same_corpus(ctx, run)
        if not run_states.retry_failed(session, run_id, deadline=ctx.settings.queue.deadline):
            raise UsageError(f"run {run_id} was changed by somebody else meanwhile: look again")
        waiting = shards.ring_pending(session, run_id)
        n_failed = run.n_failed
    _ring(run_id, waiting)
    return n_failed


def _need_same_corpus(ctx: Context, run: Run) -> None:
    corpus = CorpusSettings.model_validate(run.settings["corpus"])
    now = fingerprint(ctx.corpus(), ctx.corpus_table(corpus)).to_json()
    if now != run.corpus_fingerprint:
        raise UsageError(
            f"the corpus changed since run {run.id} was queued, and a run measures one corpus:"
            " start a new one with recallwatch eval"
        )


def _ring(run_id: int, waiting: Sequence[int]) -> None:
    """Ring for evaluation, which embeds inline what the cache lacks."""
    if waiting:
        doorbell.evaluate((run_id, number) for number in waiting)
    else:
        doorbell.reduce([run_id])
