"""Figures that Anthropic's cookbook states for three retrievers over its own documentation.

It divides precision by the number of chunks that came back; ours divides by k. The two part where
fewer than three came back, and agree at that cutoff.
"""

import json
from typing import Any

import numpy as np
import pytest

from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.types import Failure, Level, Outcome
from tests.shared import conformance, needs_shared
from tests.unit.pipeline.scoring.asking import Everything, ranked

pytestmark = needs_shared

K = 3


def rows() -> list[dict[str, Any]]:
    path = conformance("anthropic-docs", "rankings.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scored(asked: list[dict[str, Any]], k: int) -> Scores:
    return score(
        [Judged(dict.fromkeys(row["expected"], 1)) for row in asked],
        [
            ranked(row["retrieved"]) if "retrieved" in row else Failure(row["error"])
            for row in asked
        ],
        k=k,
        level=Level.CHUNK,
        measures=[Measure("precision", k), Measure("recall", k), Measure("mrr", k)],
        live=Everything(),
    )


@pytest.mark.parametrize("returned", [1, 2, 3])
def test_stated_figures_are_reproduced_at_the_number_of_chunks_returned(returned: int) -> None:
    asked = [row for row in rows() if len(row.get("retrieved", ())) == returned]
    stated = [[row["stated"][name] for name in ("precision", "recall", "mrr")] for row in asked]
    assert len(stated) == {1: 3, 2: 4, 3: 292}[returned]
    np.testing.assert_allclose(scored(asked, returned).values, stated, rtol=0, atol=1e-12)


def test_precision_at_k_also_counts_the_places_left_empty() -> None:
    short = [row for row in rows() if len(row.get("retrieved", ())) < K and "retrieved" in row]
    stated = [row["stated"]["precision"] * len(row["retrieved"]) / K for row in short]
    assert scored(short, K).values[:, 0].tolist() == pytest.approx(stated, abs=1e-12)
    assert any(row["stated"]["precision"] > 0 for row in short)


def test_the_question_on_which_the_retriever_crashed_is_failed() -> None:
    outcomes = scored(rows(), K).outcomes
    assert (outcomes.count(Outcome.SCORED), outcomes.count(Outcome.FAILED)) == (299, 1)
