"""What a person and the reducer do to a run, each in a transaction of its own."""

from db import results, run_states
from db.session import Database
from tests.integration.db.building import (
    claimed,
    execute,
    failed,
    fetch,
    import_set,
    ineligible,
    questions,
    scored,
    start_run,
)

HOUR = 3600


def cancel(db: Database, *run_ids: int) -> list[int]:
    with db.begin() as session:
        return run_states.cancel(session, run_ids, "cancelled by ann")


def fail(db: Database, *run_ids: int) -> list[int]:
    with db.begin() as session:
        return run_states.fail(session, run_ids, "overdue")


def resume(db: Database, run_id: int) -> bool:
    with db.begin() as session:
        return run_states.resume(session, run_id, deadline=HOUR)


def retry(db: Database, run_id: int) -> bool:
    with db.begin() as session:
        return run_states.retry_failed(session, run_id, deadline=HOUR)


def reduction(db: Database, run_id: int, attempts: int = 3) -> int | None:
    with db.begin() as session:
        return run_states.claim_reduction(session, run_id, lease=60, attempts=attempts)


def states(db: Database, run_id: int) -> list[str]:
    query = "SELECT state FROM recallwatch.shard WHERE run_id = :run ORDER BY number"
    return fetch(db, query, {"run": run_id})


def stored(db: Database, run_id: int) -> list[int]:
    query = "SELECT position FROM recallwatch.result WHERE run_id = :run ORDER BY position"
    return fetch(db, query, {"run": run_id})


def completed_with_failures(db: Database) -> int:
    """Give a run of four shards: none, one, two and no questions of them failed."""
    import_set(db, questions(8))
    run_id = start_run(db, shard_size=2)
    rows = [scored(0), scored(1), scored(2), failed(3), failed(4), failed(5), ineligible(6),
            scored(7)]  # fmt: skip
    stats = {"questions": 2, "retrieve_seconds": 0.5, "underfilled": 1,
             "embedded_texts": 2, "embedding_calls": 1, "cached_texts": 3}  # fmt: skip
    for number in range(4):
        hold = claimed(db, run_id, number)
        with db.begin() as session:
            results.store(session, hold, rows[hold.first : hold.last + 1], stats=stats)
    execute(
        db,
        "UPDATE recallwatch.run SET status = 'completed', verdict = 'ok', finished_at = now(),"
        " started_at = now(), n_scored = 4, n_failed = 3, n_ineligible = 1, metrics = '{}',"
        " facts = '{}', latency = '{}', cost = '{}', by_category = '{}', by_tenant = '{}'",
    )
    return run_id
