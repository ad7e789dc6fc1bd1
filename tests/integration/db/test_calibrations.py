"""Calibrations kept, and which of several tells the noise between two runs."""

from collections.abc import Callable
from typing import Any

import pytest

from db import calibrations, golden, runs
from db.models import Calibration, GoldenVersion, Run
from db.session import Database
from pipeline.retrieval.tree import with_defaults
from pipeline.types import Question
from pipeline.verdict.calibration import Figures
from tests.integration.db.building import PLAN, import_set, questions, snapshot, start_run

FIGURES = Figures(
    n=3,
    pairs=4,
    flips=2,
    largest_net=1,
    differences={"hit@5": [(-1.0, 1), (0.0, 10), (1.0, 1)]},
    totals={"hit@5": [3.0, 2.0, 3.0, 3.0, 3.0]},
)
SETTINGS: dict[str, Any] = {
    "strategy": {"name": "vector", "kind": "vector", "ef_search": 40, "exact": False},
    "embedding": {"provider": "local", "model": "", "dimensions": 4, "base_url": None},
    "corpus": {"table": "docs"},
}
CREATED = "CREATE INDEX i ON docs USING hnsw (embedding vector_cosine_ops)"


def corpus(file: str = "1", vectors: str | None = "v") -> dict[str, Any]:
    index = {"name": "i", "method": "hnsw", "definition": CREATED, "file": file}
    return PLAN.corpus_fingerprint | {"index": index, "vectors": vectors}


@pytest.fixture
def version(db: Database) -> GoldenVersion:
    import_set(db, questions(3))
    return snapshot(db)


Add = Callable[..., Calibration]


@pytest.fixture
def add(db: Database, version: GoldenVersion) -> Add:
    """Give what stores a calibration of the plan's run, with some of it changed."""

    def add_with(*, reindexed: bool, **changes: object) -> Calibration:
        columns: dict[str, object] = {
            "strategy": PLAN.strategy, "k": PLAN.k, "level": PLAN.level, "settings": SETTINGS,
            "relevance_threshold": PLAN.relevance_threshold, "convention": PLAN.convention,
            "corpus_fingerprint": corpus(),
        }  # fmt: skip
        run = Run(**columns | changes)
        with db.begin() as session:
            return calibrations.add(session, version, run, FIGURES, reindexed=reindexed)

    return add_with


def a_run(db: Database, fingerprint: dict[str, Any] | None = None) -> int:
    return start_run(db, {"settings": SETTINGS, "corpus_fingerprint": fingerprint or corpus()})


def found(db: Database, run_id: int, reference_id: int) -> int | None:
    with db.begin() as session:
        one, other = runs.get(session, run_id), runs.get(session, reference_id)
        calibration = calibrations.find(session, one.run, one.version, other.run)
        if calibration is not None:
            assert calibrations.figures(calibration) == FIGURES
        return None if calibration is None else calibration.id


def test_a_calibration_comes_back_as_it_was(db: Database, version: GoldenVersion, add: Add) -> None:
    added = add(reindexed=True)

    with db.begin() as session:
        (back,) = calibrations.recent(session)
    assert calibrations.figures(back) == FIGURES
    assert (back.set_name, back.version_id, back.reindexed) == ("default", version.id, True)
    conditions = calibrations.conditions(back)
    assert (conditions.k, conditions.level, conditions.version) == (5, "chunk", version.id)
    assert (conditions.relevance_threshold, conditions.convention) == (1, "rw-1")
    assert conditions.settings["strategy"] == with_defaults(SETTINGS["strategy"])
    assert conditions.corpus == corpus()
    assert back.id == added.id


def test_without_a_calibration_none_is_found(db: Database, version: GoldenVersion) -> None:
    del version

    assert found(db, a_run(db), a_run(db)) is None


def test_the_newest_that_applies_is_found(db: Database, add: Add) -> None:
    add(reindexed=False)
    newest = add(reindexed=False)
    add(reindexed=False, settings=SETTINGS | {"strategy": {"kind": "vector", "exact": False}})
    add(reindexed=False, k=10)
    add(reindexed=False, level="document")
    add(reindexed=False, strategy="vector-ef200")

    assert found(db, a_run(db), a_run(db)) == newest.id


def test_across_a_rebuild_only_a_calibration_with_rebuilds_is_found(db: Database, add: Add) -> None:
    before, after = a_run(db), a_run(db, corpus(file="2"))
    add(reindexed=False)
    assert found(db, after, before) is None

    rebuilt = add(reindexed=True)
    add(reindexed=False)

    assert found(db, after, before) == rebuilt.id


def test_with_the_index_untouched_the_calibration_without_rebuilds_comes_first(
    db: Database, add: Add
) -> None:
    before, after = a_run(db), a_run(db)
    rebuilt = add(reindexed=True)
    assert found(db, after, before) == rebuilt.id, "it still bounds the noise"

    same = add(reindexed=False)
    add(reindexed=True)

    assert found(db, after, before) == same.id


@pytest.mark.parametrize("vectors", ["w", None])
def test_with_vectors_written_into_the_index_the_one_with_rebuilds_comes_first(
    db: Database, add: Add, vectors: str | None
) -> None:
    before, after = a_run(db), a_run(db, corpus(vectors=vectors))
    same = add(reindexed=False)
    assert found(db, after, before) == same.id, "nothing better is known"

    rebuilt = add(reindexed=True)
    add(reindexed=False)

    assert found(db, after, before) == rebuilt.id


def test_a_calibration_of_another_set_is_not_found(db: Database, add: Add) -> None:
    add(reindexed=True)
    import_set(db, questions(3), "faq")
    plan = {"settings": SETTINGS, "corpus_fingerprint": corpus()}
    runs_of_faq = [start_run(db, plan, set_name="faq") for _ in range(2)]

    assert found(db, runs_of_faq[1], runs_of_faq[0]) is None


def test_the_newest_are_listed_first_and_chosen_by_set_and_strategy(db: Database, add: Add) -> None:
    first = add(reindexed=True)
    second = add(reindexed=False, strategy="hybrid")

    with db.begin() as session:
        everything = calibrations.recent(session)
        newest = calibrations.recent(session, limit=1)
        of_a_strategy = calibrations.recent(session, strategy="vector")
        of_another_set = calibrations.recent(session, set_name="faq")
    assert [each.id for each in everything] == [second.id, first.id]
    assert [each.id for each in newest] == [second.id]
    assert [each.id for each in of_a_strategy] == [first.id]
    assert of_another_set == []


def test_the_current_version_is_known_without_making_one(
    db: Database, version: GoldenVersion
) -> None:
    with db.begin() as session:
        known = golden.current(session, "default")
        assert known is not None
        assert known.id == version.id
        assert golden.current(session, "faq") is None

    import_set(db, [Question("one more", {"d9:0": 1})])

    with db.begin() as session:
        assert golden.current(session, "default") is None
