"""Vectors kept beside production: by source, bit for bit, whoever keeps them first."""

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from db import side_vectors
from db.session import Database
from tests.integration.db.building import together

Vector = NDArray[np.float32]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def vectors(*texts: str, dimensions: int = 5, seed: int = 0) -> dict[str, Vector]:
    rng = np.random.default_rng(seed)
    return {hashed(text): rng.normal(size=dimensions).astype(np.float32) for text in texts}


def keep(db: Database, source: str, kept: dict[str, Vector]) -> None:
    with db.begin() as session:
        side_vectors.keep(session, source, kept)


def found(db: Database, source: str, *texts: str) -> dict[str, Vector]:
    with db.begin() as session:
        return side_vectors.found(session, source, [hashed(text) for text in texts])


def test_vectors_come_back_bit_for_bit(db: Database) -> None:
    kept = vectors("a", "b", dimensions=3072)
    keep(db, "m", kept)

    back = found(db, "m", "b", "a", "c")

    assert back.keys() == kept.keys()
    for text_hash, vector in kept.items():
        np.testing.assert_array_equal(back[text_hash], vector)


def test_each_source_has_its_own(db: Database) -> None:
    keep(db, "m query", vectors("a", seed=1))
    keep(db, "m document", vectors("a", "b", seed=2))

    with db.begin() as session:
        assert side_vectors.known(session, "m query", [hashed("a"), hashed("b")]) == {hashed("a")}
    np.testing.assert_array_equal(
        found(db, "m document", "a")[hashed("a")], vectors("a", "b", seed=2)[hashed("a")]
    )


def test_what_is_kept_stays(db: Database) -> None:
    keep(db, "m", vectors("a", seed=1))
    keep(db, "m", vectors("a", "b", seed=2))

    assert found(db, "m", "a", "b").keys() == {hashed("a"), hashed("b")}
    np.testing.assert_array_equal(
        found(db, "m", "a")[hashed("a")], vectors("a", seed=1)[hashed("a")]
    )


def test_many_may_keep_the_same_ones_at_once(db: Database) -> None:
    texts = [str(n) for n in range(300)]
    both = vectors(*texts), vectors(*reversed(texts))

    together(*(lambda kept=kept: keep(db, "m", kept) for kept in both))

    assert len(found(db, "m", *texts)) == 300


def test_more_than_a_statement_takes_are_looked_up(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_vectors, "HASHES_PER_STATEMENT", 2)
    texts = list("abcde")
    keep(db, "m", vectors(*texts))

    assert len(found(db, "m", *texts)) == 5
    with db.begin() as session:
        known = side_vectors.known(session, "m", [hashed(text) for text in [*texts, "f"]])
    assert known == {hashed(text) for text in texts}


def test_nothing_is_kept_of_nothing(db: Database) -> None:
    keep(db, "m", {})

    assert found(db, "m") == {}


def test_all_can_be_forgotten(db: Database) -> None:
    keep(db, "m", vectors("a", "b"))
    keep(db, "n", vectors("a"))

    with db.begin() as session:
        assert side_vectors.forget(session) == 3
    assert found(db, "m", "a", "b") == {}
