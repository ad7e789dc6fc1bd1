"""Generations whose requests are answered, to be screened, and what becomes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from db.session import Database
from pipeline.corpus.loading import load
from pipeline.corpus.reading import Chunk
from pipeline.embedding.settings import EmbeddingSettings
from pipeline.generation.base import Ask, SourceChunk
from pipeline.settings import EvalSettings, Settings
from tests.integration.db.building import fetch
from tests.integration.db.generating import answered, create, plan, status
from tests.integration.workers.conftest import TENANTS, TEXTS
from tests.integration.workers.working import DIMENSIONS
from workers.context import Context
from workers.enqueue import run_settings

BATTERY = "For what period does a fresh power cell keep it alive?"
RETURN = "Can I send my purchase back after three weeks?"
PARCEL = "Is the box too heavy for an old lady?"

Drafts = Sequence[tuple[str, str]]


def ask_of(key: str, **changes: Any) -> Ask:  # noqa: ANN401 - fields of Ask
    chunk = SourceChunk(key, TEXTS[key], TENANTS.get(key), "en")
    return replace(Ask([chunk], ["factual"]), **changes)


def searched(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of Settings
    """Return how a generation's plan has its questions checked, by these settings."""
    fields: dict[str, Any] = {
        "embedding": EmbeddingSettings(dimensions=DIMENSIONS),
        "eval": EvalSettings(k=3, strategies=["vector", "fulltext", "hybrid"]),
    }
    settings = Settings(**(fields | changes))
    return {
        "search": {name: run_settings(settings, name) for name in settings.eval.strategies},
        "corpus": settings.corpus, "embedding": settings.embedding, "k": settings.eval.k,
        "look_depth": settings.eval.look_depth,
    }  # fmt: skip


def drafted(
    db: Database,
    drafts: Drafts,
    *,
    plans: Mapping[str, Any] | None = None,
    asks: Mapping[str, Any] | None = None,
    **changes: Any,  # noqa: ANN401 - columns of the generation
) -> int:
    """Return a generation whose requests, one a draft (key, text), are all answered."""
    wanted = [ask_of(key, **(asks or {})) for key, _ in drafts]
    settings = plan(**(searched() | dict(plans or {})))
    generation_id = create(db, wanted, settings=settings, **changes)
    for number, (_, text) in enumerate(drafts, start=1):
        answered(db, generation_id, number, text)
    assert status(db, generation_id) == "screening"
    return generation_id


def outcomes(db: Database, generation_id: int) -> list[tuple[str, str | None]]:
    """Return each candidate's state and the filter that refused it, in order."""
    rows = fetch(
        db,
        "SELECT json_build_array(state, rejection) FROM recallwatch.candidate"
        " WHERE generation_id = :id ORDER BY number, ordinal",
        {"id": generation_id},
    )
    return [(state, rejection) for state, rejection in rows]


def facts_of(db: Database, generation_id: int, number: int = 1) -> dict[str, Any]:
    [facts] = fetch(
        db,
        "SELECT facts FROM recallwatch.candidate"
        " WHERE generation_id = :id AND number = :number AND ordinal = 1",
        {"id": generation_id, "number": number},
    )
    return dict(facts)


def synthetic(db: Database) -> list[dict[str, Any]]:
    """Return the questions that were made of candidates."""
    return fetch(
        db,
        "SELECT to_jsonb(q) FROM recallwatch.question q WHERE source = 'synthetic' ORDER BY id",
        {},
    )


def add(ctx: Context, *chunks: Chunk) -> None:
    def embed_nothing(texts: object) -> Any:  # noqa: ANN401 - never returns
        raise AssertionError(texts)

    load(ctx.corpus(), chunks, embed_nothing, model="none", dimensions=DIMENSIONS)
