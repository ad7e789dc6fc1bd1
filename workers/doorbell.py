"""Ring a worker: send a message that carries ids, after the state it points at is committed."""

from collections.abc import Iterable

from kombu.exceptions import OperationalError

from pipeline.errors import TransientError

EMBED_SHARD = "recallwatch.embed_shard"
EVALUATE_SHARD = "recallwatch.evaluate_shard"
REDUCE_RUN = "recallwatch.reduce_run"
DELIVER_ALERT = "recallwatch.deliver_alert"
SWEEP = "recallwatch.sweep"
TICK = "recallwatch.tick"
REINDEXED = "recallwatch.reindexed"
ASK_REQUEST = "recallwatch.ask_request"
SUBMIT_GENERATION = "recallwatch.submit_generation"
POLL_MESSAGE_BATCH = "recallwatch.poll_message_batch"
SCREEN_GENERATION = "recallwatch.screen_generation"


def embed(batch_id: int, numbers: Iterable[int]) -> None:
    """Ask for a batch's shards to be embedded."""
    _ring(EMBED_SHARD, "embedding", ((batch_id, number) for number in numbers))


def evaluate(shards: Iterable[tuple[int, int]]) -> None:
    """Ask for (run, shard) pairs to be evaluated."""
    _ring(EVALUATE_SHARD, "evaluation", shards)


def reduce(run_ids: Iterable[int]) -> None:
    """Ask for runs to be reduced."""
    _ring(REDUCE_RUN, "default", ((run_id,) for run_id in run_ids))


def deliver(alert_ids: Iterable[int]) -> None:
    """Ask for alerts to be delivered."""
    _ring(DELIVER_ALERT, "alerts", ((alert_id,) for alert_id in alert_ids))


def ask(requests: Iterable[tuple[int, int]]) -> None:
    """Ask for (generation, request) pairs to be sent to the model."""
    _ring(ASK_REQUEST, "generation", requests)


def submit(generation_ids: Iterable[int]) -> None:
    """Ask for all that generations wait for to be sent in message batches."""
    _ring(SUBMIT_GENERATION, "generation", ((each,) for each in generation_ids))


def poll(requests: Iterable[tuple[int, int]]) -> None:
    """Ask for the message batches that hold these (generation, request) pairs to be looked at."""
    _ring(POLL_MESSAGE_BATCH, "generation", requests)


def screen(generation_ids: Iterable[int]) -> None:
    """Ask for generations' candidates to be filtered."""
    _ring(SCREEN_GENERATION, "generation", ((each,) for each in generation_ids))


def _ring(task: str, queue: str, messages: Iterable[tuple[int, ...]]) -> None:
    """Send one message per argument tuple over one connection; none opens none.

    Raises TransientError when the broker does not take them; the state stands, and the sweep
    rings again.
    """
    from workers.app import app  # noqa: PLC0415 - the app imports the tasks, which import this

    waiting = list(messages)
    if not waiting:
        return
    try:
        with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
            for arguments in waiting:
                app.send_task(task, arguments, queue=queue, producer=producer)
    except (OperationalError, OSError) as error:
        raise TransientError(
            f"the queue at {app.connection_for_write().as_uri()} does not answer: {error}"
        ) from error
