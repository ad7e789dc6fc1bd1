"""Task reindexed: the corpus was re-indexed, so measure it once that is over.

Any Celery app on the same broker may send it, with JSON:

    app.send_task("recallwatch.reindexed", kwargs={"documents": ["manual-7"]}, queue="default")

`documents` and all other keywords (`set_name`, `strategies`, `k`, `level`, `requested_by`) may be
left out. Notices within [queue] reindex_quiet seconds of each other start one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog
from celery import Task

from pipeline.errors import RecallwatchError, TransientError
from pipeline.types import Level, Trigger
from workers import context
from workers.app import app
from workers.context import Context
from workers.doorbell import REINDEXED
from workers.enqueue import Request, StartedBatch, start
from workers.preflight import DocumentCheck, check_documents
from workers.retrying import wait_before_retry

TRIES = 6
"""How often a notice is taken up while a server does not answer: for about a minute."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reindexed:
    """The batch that a notice started or joined, and what it says of the documents it names."""

    started: StartedBatch
    documents: DocumentCheck


def reindexed(ctx: Context, request: Request, document_ids: Sequence[str] = ()) -> Reindexed:
    """Start a batch that waits until re-indexing is over, or join the one that does.

    The whole corpus is measured whatever the documents: a changed one may push others out of the
    results. They say where to look for expected keys that are gone. Raises as `start_batch`.
    """
    started = start(ctx, replace(request, trigger=Trigger.REINDEX))
    documents = check_documents(ctx, started.version_id, document_ids)
    log.info(
        "reindexed",
        batch=started.batch_id,
        joined=started.joined,
        keys_gone=started.keys.gone,
        documents_unknown=len(documents.unknown),
    )
    return Reindexed(started, documents)


@app.task(name=REINDEXED, bind=True)
def reindexed_notice(
    self: Task,
    *,
    documents: str | int | Sequence[str | int] | None = None,
    set_name: str | None = None,
    strategies: Sequence[str] | None = None,
    k: int | None = None,
    level: Level | str | None = None,
    requested_by: str | None = REINDEXED,
) -> None:
    """Take a notice of another app; one that cannot be followed is logged, as nobody waits."""
    request = Request(strategies, set_name, k, level, requested_by=requested_by)
    try:
        reindexed(context.current(), request, _ids(documents))
    except TransientError as error:
        # With a delay, unlike all else: the notice stands in this message alone.
        wait = wait_before_retry(error, attempt=self.request.retries + 1)
        raise self.retry(exc=error, countdown=wait, max_retries=TRIES - 1) from error
    except RecallwatchError as error:
        log.error("reindexed_refused", reason=str(error))  # noqa: TRY400 - the reason is all


def _ids(documents: str | int | Sequence[str | int] | None) -> list[str]:
    """Take one id for a list of one, and a number for its digits: other apps know no types."""
    if documents is None:
        return []
    given = [documents] if isinstance(documents, str | int) else documents
    return [str(each) for each in given]
