"""Find out which ef_search would bring the index loss under a point, and what it costs."""

import time
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

from db.exact import ExactRow, Served
from db.models import Json, Run
from pipeline.retrieval.limits import needed_limit
from pipeline.retrieval.vector import MAX_EF_SEARCH
from pipeline.types import Level
from workers.shard_questions import ShardQuestions

POINT = 0.01
"""An index loss, in recall at k, that is worth looking into."""

MOST = 200
"""Questions that each ef_search is tried with: the first by rank, a random sample."""

FOR_WALK = 0.25
"""Share of [eval] exact_budget that it may take."""

TIMES = 2
"""Each search is made so often, and its fastest time taken: the first also warms the caches."""


class _AnyKey(Container[str]):
    """Holds every key."""

    def __contains__(self, key: object) -> bool:
        return True


ANY_KEY = _AnyKey()
"""To score by, where what is not live was left out of the judgments before."""


def ladder(first: int) -> Iterator[int]:
    """Yield what to try: the first, then double of the last, up to the largest there is."""
    width = first
    while width < MAX_EF_SEARCH:
        yield width
        width *= 2
    yield MAX_EF_SEARCH


def walk(
    questions: ShardQuestions, served: Sequence[Served], exact: Sequence[ExactRow]
) -> Json | None:
    """Try wider searches of an HNSW index, where it loses a point or more, until one does not.

    Returns {"questions": how many were asked, "ladder": [{"ef_search", "loss" (recall at k, exact
    less served), "ms" (a question)}, ...] with the run's own ef_search first, "suggested": the
    first wider one with a loss under a point, or None}. None: there was nothing to find out.
    """
    run = questions.run
    recall = run.measures.index(f"recall@{run.k}")
    by_position = {row.position: row.measured[recall] for row in exact}
    asked = [i for i, item in enumerate(questions.items) if item.position in by_position]
    losses = [by_position[served[i].item.position] - served[i].measured[recall] for i in asked]
    if not asked or np.mean(losses) < POINT or not _has_width(run):
        return None
    sample = asked[:MOST]
    goal = float(np.mean([by_position[served[i].item.position] for i in sample]))
    rungs = list(_rungs(questions, sample, goal))
    enough = [rung["ef_search"] for rung in rungs[1:] if rung["loss"] < POINT]
    return {"questions": len(sample), "ladder": rungs, "suggested": enough[0] if enough else None}


def _has_width(run: Run) -> bool:
    index = run.corpus_fingerprint.get("index") or {}
    return run.settings["strategy"]["kind"] == "vector" and index.get("method") == "hnsw"


def _rungs(
    questions: ShardQuestions, numbers: Sequence[int], goal: float
) -> Iterator[dict[str, Any]]:
    """Yield what each ef_search loses and costs, until one is enough or the time is up."""
    run = questions.run
    now = run.settings["strategy"]["ef_search"]
    first = min(max(now, needed_limit(run.k, Level(run.level))), MAX_EF_SEARCH)
    until = time.monotonic() + FOR_WALK * run.settings["exact_budget"]
    for width in ladder(first):
        recall, seconds = _try(questions, numbers, width)
        loss = goal - recall
        yield {"ef_search": width, "loss": loss, "ms": 1000 * seconds / len(numbers)}
        # Twice the width takes up to twice the time.
        if (loss < POINT and width > first) or time.monotonic() + 2 * TIMES * seconds > until:
            return


def _try(questions: ShardQuestions, numbers: Sequence[int], width: int) -> tuple[float, float]:
    """Return the mean recall at k of a search that wide, and the seconds it took."""
    run = questions.run
    wider = run.settings | {"strategy": run.settings["strategy"] | {"ef_search": width}}
    retriever = questions.ctx.retriever(wider, run.corpus_fingerprint)
    seconds = []
    for _ in range(TIMES):
        started = time.monotonic()
        found = questions.ask(numbers, run.k, retriever)
        seconds.append(time.monotonic() - started)
    values = questions.score(numbers, found, ANY_KEY).values
    column = run.measures.index(f"recall@{run.k}")
    # A search that fails has no value: it found nothing.
    return float(np.nan_to_num(values[:, column]).mean()), min(seconds)
