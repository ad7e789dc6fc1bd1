"""Reciprocal rank fusion: one ranking out of several."""

import math
from collections import defaultdict
from collections.abc import Sequence

from pipeline.types import Ranking


def fuse(rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: int, limit: int) -> Ranking:
    """Fuse rankings: score(key) = sum over rankings of weight / (rrf_k + rank), rank from 1.

    A ranking that lacks a key adds nothing to it; one that holds it twice counts its first rank.
    Ties are ordered by key. At most `limit` keys are returned. The sum is exactly rounded, so the
    order of the rankings does not matter.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and
    individual Rank Learning Methods", SIGIR 2009 (weights 1, rrf_k 60).
    """
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for ranking, weight in zip(rankings, weights, strict=True):
        first_ranks: dict[str, int] = {}
        for rank, key in enumerate(ranking.keys, start=1):
            first_ranks.setdefault(key, rank)
        for key, rank in first_ranks.items():
            parts[key].append(weight / (rrf_k + rank))
    scores = {key: math.fsum(values) for key, values in parts.items()}
    best = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
    return Ranking(keys=best, scores=[scores[key] for key in best])
