"""How long one search takes: a sample of each run, told beside the run before."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from db import results
from db.session import Database
from pipeline.errors import TransientError
from tests.integration.db.building import (
    import_set,
    ineligible,
    questions,
    scored,
    start_run,
    store_all,
)
from tests.integration.workers.conftest import GOLDEN, Opener
from tests.integration.workers.working import Bell, finish_runs
from workers import latency
from workers.context import Context
from workers.shard_questions import ShardQuestions


def timed(ctx: Context, run_id: int) -> list[bool]:
    with ctx.database.begin() as session:
        return [row.ms is not None for row in results.details(session, run_id)]


@pytest.mark.parametrize(("sample", "positions"), [
    (100, range(8)), (8, range(8)), (5, (0, 2, 4, 5, 7)), (4, (0, 2, 4, 6)), (3, (0, 3, 6)),
    (1, (0,)), (0, ()),
])  # fmt: skip
def test_an_even_share_of_the_questions_is_timed_in_all_shards(
    open_context: Opener, bell: Bell, sample: int, positions: tuple[int, ...]
) -> None:
    settings = open_context().settings.eval.model_copy(update={"latency_sample": sample})
    ctx = open_context(eval=settings)
    [run] = finish_runs(ctx, bell, "fulltext")
    assert timed(ctx, run.id) == [n in positions for n in range(len(GOLDEN))]
    assert run.latency is not None
    if not sample:
        assert run.latency["search_ms"] is None
        return
    found = run.latency["search_ms"]
    assert found["n"] == len(positions)
    assert 0 < found["p50"] <= found["p95"] <= found["p99"]


def test_a_run_remembers_how_long_a_search_took_in_the_run_before(ctx: Context, bell: Bell) -> None:
    [first] = finish_runs(ctx, bell, "vector")
    [second] = finish_runs(ctx, bell, "vector")
    assert first.latency is not None
    assert second.latency is not None
    assert second.latency["search_ms_before"] == first.latency["search_ms"]


def test_what_goes_wrong_with_it_ends_it_and_fails_nothing(
    ctx: Context, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_shard: ShardQuestions) -> Iterator[int]:
        yield 0
        raise TransientError("the server went away")

    monkeypatch.setattr(latency, "_sample", gone)
    [run] = finish_runs(ctx, bell, "fulltext")
    assert run.status == "completed"
    assert sum(timed(ctx, run.id)) == 3


def test_the_percentiles_are_those_of_numpy(db: Database) -> None:
    import_set(db, questions(7), replace=True)
    run_id = start_run(db)
    ms = [3.0, 1.0, 8.0, 2.5, 40.0]
    rows = [scored(n) for n in range(6)]
    timed_rows = [replace(row, ms=each) for row, each in zip(rows, ms, strict=False)]
    store_all(db, run_id, [*timed_rows, rows[5], ineligible(6)])
    with db.begin() as session:
        found = results.latency(session, run_id)
    assert found is not None
    assert found.pop("n") == 5
    assert found == pytest.approx({
        "p50": np.percentile(ms, 50), "p95": np.percentile(ms, 95), "p99": np.percentile(ms, 99),
    })  # fmt: skip
