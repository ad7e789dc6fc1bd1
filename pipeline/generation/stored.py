"""Asks and answers as JSON values, as they are stored."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipeline.generation.base import Answer, Ask, SourceChunk
from pipeline.types import Kind


def ask_to_json(ask: Ask) -> dict[str, Any]:
    """Return an ask as JSON values."""
    return {
        "chunks": [asdict(chunk) for chunk in ask.chunks],
        "categories": list(ask.categories),
        "kind": ask.kind.value,
        "language": ask.language,
        "forbidden": list(ask.forbidden),
    }


def ask_from_json(stored: Mapping[str, Any]) -> Ask:
    """Return the ask that was stored."""
    return Ask(
        chunks=tuple(SourceChunk(**chunk) for chunk in stored["chunks"]),
        categories=tuple(stored["categories"]),
        kind=Kind(stored["kind"]),
        language=stored["language"],
        forbidden=tuple(stored["forbidden"]),
    )


def reply_to_json(answer: Answer) -> dict[str, Any]:
    """Return what came back, its usage aside, as JSON values."""
    return {"drafts": [asdict(draft) for draft in answer.drafts], "refusal": answer.refusal}
