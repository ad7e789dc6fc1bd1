"""Vectors of other models and of other chunks than production's: kept, so that none is paid twice.

A `source` says whose vectors they are; equal texts have equal vectors under it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CursorResult, delete, select, text
from sqlalchemy.orm import Session

from db.models import SideVector

Vector = NDArray[np.float32]

HASHES_PER_STATEMENT = 5_000


def found(session: Session, source: str, hashes: Sequence[str]) -> dict[str, Vector]:
    """Return text hash -> vector, shape (dimensions,), of those texts that have one."""
    vectors: dict[str, Vector] = {}
    for start in range(0, len(hashes), HASHES_PER_STATEMENT):
        part = hashes[start : start + HASHES_PER_STATEMENT]
        query = select(SideVector.text_hash, SideVector.vector).where(
            SideVector.source == source, SideVector.text_hash.in_(part)
        )
        for text_hash, vector in session.execute(query):
            vectors[text_hash] = np.frombuffer(vector, dtype="<f4")
    return vectors


def known(session: Session, source: str, hashes: Sequence[str]) -> set[str]:
    """Return those of the text hashes that have a vector."""
    there: set[str] = set()
    for start in range(0, len(hashes), HASHES_PER_STATEMENT):
        part = hashes[start : start + HASHES_PER_STATEMENT]
        query = select(SideVector.text_hash).where(
            SideVector.source == source, SideVector.text_hash.in_(part)
        )
        there.update(session.scalars(query))
    return there


def keep(session: Session, source: str, vectors: Mapping[str, Vector]) -> None:
    """Keep vectors by text hash; those that somebody else kept meanwhile stay as they are."""
    # In order, so that two who keep the same ones do not wait for each other.
    query = text("""
        INSERT INTO recallwatch.side_vector (source, text_hash, vector)
        SELECT :source, new.* FROM unnest(CAST(:hashes AS text[]), CAST(:vectors AS bytea[]))
            AS new (text_hash, vector)
        ORDER BY text_hash ON CONFLICT DO NOTHING
    """)
    packed = [vector.astype("<f4").tobytes() for vector in vectors.values()]
    session.execute(query, {"source": source, "hashes": list(vectors), "vectors": packed})


def forget(session: Session) -> int:
    """Delete all of them; return how many there were."""
    return cast("CursorResult[Any]", session.execute(delete(SideVector))).rowcount
