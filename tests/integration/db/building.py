"""Golden sets, runs and results in a few words, through the functions that the product uses."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from sqlalchemy import text

from db import golden, results, runs, shards
from db.golden_import import ImportReport, import_questions
from db.models import GoldenItem, GoldenVersion, Run, Shard
from db.results import ResultRow
from db.runs import RunPlan
from db.session import Database
from db.shards import Claim
from pipeline.types import Outcome, Question, Trigger
from tests.unit.pipeline.verdict.strategies import gate

SET = "default"
LEASE = 60
ATTEMPTS = 5
MEASURES = ("hit@5", "recall@5", "ndcg@5")
GATE = gate()
"""The plain rule alone."""

PLAN = RunPlan(
    strategy="vector",
    settings={},
    needs_vectors=True,
    k=5,
    level="chunk",
    convention="rw-1",
    measures=MEASURES,
    relevance_threshold=1,
    gate=asdict(GATE),
    embedding_model="m",
    corpus_fingerprint={
        "chunks": 9, "embedded": 9, "dimension": 4, "texts": "a", "vectors": "b",
    },
    git_sha=None,
    deadline=timedelta(hours=1),
)  # fmt: skip

Result = TypeVar("Result")

on_a_database = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""For properties whose examples share a test's database; to shrink one would take minutes."""


def together(*actions: Callable[[], Result]) -> list[Result]:
    """Run the actions at the same moment, a thread each, and return what they return, in order."""
    start = threading.Barrier(len(actions))

    def run(action: Callable[[], Result]) -> Result:
        start.wait(timeout=10)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def questions(n: int) -> list[Question]:
    """Return n questions with an expected key each."""
    return [Question(text=f"question {i}", expected={f"d{i}:0": 1}) for i in range(n)]


def import_set(
    db: Database, some: Iterable[Question], set_name: str = SET, *, replace: bool = False
) -> ImportReport:
    with db.begin() as session:
        return import_questions(session, set_name, some, replace=replace)


def snapshot(db: Database, set_name: str = SET) -> GoldenVersion:
    with db.begin() as session:
        return golden.snapshot(session, set_name)


def items_of(db: Database, version: GoldenVersion) -> Sequence[GoldenItem]:
    with db.begin() as session:
        return golden.items(session, version.id, 0, version.size - 1)


def start_batch(
    db: Database,
    *changes: dict[str, Any],
    set_name: str = SET,
    shard_size: int = 100,
) -> list[int]:
    """Start a run of the set's present version for each way to change PLAN; return their ids."""
    with db.begin() as session:
        version = golden.snapshot(session, set_name)
        plans = [replace(PLAN, **change) for change in changes]
        _, made = runs.create_batch(
            session, version, plans, trigger=Trigger.MANUAL, requested_by=None
        )
        ids = [run.id for run in made]
        shards.plan(session, ids, version.size, shard_size)
    return ids


def start_run(
    db: Database,
    changes: dict[str, Any] | None = None,
    *,
    set_name: str = SET,
    shard_size: int = 100,
) -> int:
    """Start one run of the set's present version, by PLAN with some changes."""
    return start_batch(db, changes or {}, set_name=set_name, shard_size=shard_size)[0]


def batch_of(db: Database, run_id: int) -> int:
    with db.begin() as session:
        return runs.get(session, run_id).batch.id


def claim(
    db: Database,
    run_id: int,
    number: int = 0,
    *,
    lease: int = LEASE,
    attempts: int = ATTEMPTS,
    worker: str = "w",
) -> Claim | None:
    with db.begin() as session:
        return shards.claim(session, run_id, number, worker=worker, lease=lease, attempts=attempts)


def claimed(db: Database, run_id: int, number: int = 0) -> Claim:
    """Claim a shard that must be to be had."""
    found = claim(db, run_id, number)
    assert found is not None
    return found


def expire(db: Database, run_id: int, number: int = 0) -> None:
    """Let a shard's lease and wait run out, as time would."""
    execute(
        db,
        "UPDATE recallwatch.shard SET next_at = next_at - interval '1 day',"
        " lease_until = lease_until - interval '1 day' WHERE run_id = :run AND number = :number",
        {"run": run_id, "number": number},
    )


def scored(position: int, *measured: float, missing: Sequence[str] = ()) -> ResultRow:
    """Return a result that was scored; its first expected key came back where hit@5 says so."""
    values = measured or (1.0,) * len(MEASURES)
    return ResultRow(
        position=position,
        outcome=Outcome.SCORED,
        retrieved=["d:0", "e:1"],
        scores=[0.75, 0.5],
        measured=values,
        first_rank=1 if values[0] else None,
        missing=missing,
        error=None,
    )


def failed(position: int, error: str = "the retriever raised") -> ResultRow:
    return ResultRow(position, Outcome.FAILED, [], [], None, None, [], error)


def ineligible(position: int, missing: Sequence[str] = ()) -> ResultRow:
    return ResultRow(position, Outcome.INELIGIBLE, ["d:0"], [0.25], None, None, missing, None)


def store(db: Database, claim: Claim, rows: Sequence[ResultRow]) -> bool | None:
    with db.begin() as session:
        return results.store(session, claim, rows, stats={"questions": len(rows)})


def storing(db: Database, hold: Claim) -> Callable[[], bool | None]:
    """Give what stores results for all of a shard's questions."""
    rows = [scored(position) for position in range(hold.first, hold.last + 1)]
    return lambda: store(db, hold, rows)


def store_all(db: Database, run_id: int, rows: Sequence[ResultRow]) -> None:
    """Claim each shard of a run in turn and store its rows; `rows` are in order of position."""
    done = number = 0
    while done < len(rows):
        hold = claimed(db, run_id, number)
        store(db, hold, rows[hold.first : hold.last + 1])
        done, number = done + len(hold), number + 1


def execute(db: Database, statement: str, values: dict[str, Any] | None = None) -> None:
    with db.begin() as session:
        session.execute(text(statement), values or {})


def fetch(db: Database, query: str, values: dict[str, Any] | None = None) -> list[Any]:
    """Return all rows; those of one column as its values."""
    with db.begin() as session:
        rows = session.execute(text(query), values or {}).all()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def forget_evidence(db: Database) -> None:
    """Have the keys stand for whatever texts are there, as where nobody kept what was judged."""
    execute(db, "UPDATE recallwatch.judgment SET evidence_hash = NULL")


def shard_of(db: Database, run_id: int, number: int = 0) -> Shard:
    with db.begin() as session:
        return session.get_one(Shard, (run_id, number))


def wait_of(db: Database, run_id: int, number: int = 0) -> float:
    """Return how many seconds a shard has yet to wait."""
    shard = shard_of(db, run_id, number)
    assert shard.next_at is not None
    return (shard.next_at - datetime.now(UTC)).total_seconds()


def run_of(db: Database, run_id: int) -> Run:
    with db.begin() as session:
        return runs.get(session, run_id).run


def end_run(db: Database, run_id: int, verdict: str = "ok", status: str = "completed") -> int:
    """Give a run its verdict, as if all its questions had been scored."""
    execute(
        db,
        "UPDATE recallwatch.run SET status = :status, verdict = :verdict, finished_at = now(),"
        " n_scored = size, n_failed = 0, n_ineligible = 0 WHERE id = :run",
        {"run": run_id, "verdict": verdict, "status": status},
    )
    return run_id
