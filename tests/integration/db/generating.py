"""Generations in a few words, through the functions that the product uses."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from db import generation_requests, generations
from db.generation_requests import Claim
from db.generations import NewGeneration
from db.session import Database
from pipeline.corpus.settings import CorpusSettings
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.generation.base import Answer, Ask, Draft, SourceChunk, Usage
from pipeline.generation.plan import GenerationPlan
from pipeline.generation.settings import GenerationSettings
from pipeline.types import Kind
from tests.integration.db.building import SET, execute, fetch

LEASE = 60
ATTEMPTS = 3


def chunk(key: str, **labels: str) -> SourceChunk:
    return SourceChunk(key, f"what {key} says", **labels)


def asks(n: int) -> list[Ask]:
    return [Ask((chunk(f"d:{number}"),), ("factual",)) for number in range(1, n + 1)]


def plan(**changes: object) -> dict[str, Any]:
    made = GenerationPlan(
        generation=GenerationSettings(attempts=ATTEMPTS), prompt_version="questions-1", sample=3,
        categories={"factual": 1}, seed=1, search={}, corpus=CorpusSettings(),
        embedding=EmbeddingSettings(), k=10, look_depth=100,
    )  # fmt: skip
    return made.model_copy(update=changes).to_json()


def create(db: Database, wanted: Sequence[Ask], **changes: Any) -> int:  # noqa: ANN401 - fields of NewGeneration
    fields: dict[str, Any] = {
        "set_name": SET, "settings": plan(), "corpus_fingerprint": {}, "message_batches": False,
        "max_cost": None, "requested_by": "ana", "deadline": timedelta(hours=1),
    }  # fmt: skip
    with db.begin() as session:
        return generations.create(session, NewGeneration(asks=wanted, **(fields | changes)))


def claim(db: Database, generation_id: int, number: int = 1) -> Claim | None:
    with db.begin() as session:
        claims = generation_requests.claim(session, generation_id, numbers=[number], lease=LEASE)
    return claims[0] if claims else None


def claimed(db: Database, generation_id: int, number: int = 1) -> Claim:
    found = claim(db, generation_id, number)
    assert found is not None
    return found


def leave(db: Database, hold: Claim, cost: float = 0.1) -> generation_requests.Leave:
    with db.begin() as session:
        return generation_requests.leave_to_send(session, hold, cost, lease=LEASE)


def asked(db: Database, generation_id: int, number: int = 1, cost: float = 0.1) -> Claim:
    hold = claimed(db, generation_id, number)
    assert leave(db, hold, cost) is generation_requests.Leave.GRANTED
    return hold


def answer(*texts: str, refusal: str | None = None) -> Answer:
    drafts = [Draft(text, "factual", [1]) for text in texts]
    return Answer(drafts, Usage(100, 20), refusal)


def store(db: Database, hold: Claim, given: Answer, cost: float = 0.04) -> str | None:
    with db.begin() as session:
        return generation_requests.store(session, hold, given, cost)


def answered(db: Database, generation_id: int, number: int = 1, *texts: str) -> str | None:
    return store(db, asked(db, generation_id, number), answer(*(texts or (f"q{number}?",))))


def states(db: Database, generation_id: int) -> list[str]:
    query = (
        "SELECT state FROM recallwatch.generation_request WHERE generation_id = :id ORDER BY number"
    )
    return fetch(db, query, {"id": generation_id})


def status(db: Database, generation_id: int) -> str:
    return str(field(db, generation_id, "status"))


def spent(db: Database, generation_id: int) -> float:
    return float(field(db, generation_id, "spent"))


def field(db: Database, generation_id: int, name: str) -> Any:  # noqa: ANN401 - a column's value
    with db.begin() as session:
        return getattr(generations.get(session, generation_id), name)


def expire(db: Database) -> None:
    """Let every lease run out, and every wait be over."""
    execute(db, "UPDATE recallwatch.generation_request SET next_at = NULL,"
                " lease_until = lease_until - interval '1 hour'")  # fmt: skip


def unanswerable(key: str) -> Ask:
    return Ask([chunk(key)], ["factual"], kind=Kind.UNANSWERABLE)
