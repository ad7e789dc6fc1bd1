"""Lay judgments and rankings out as the matrices that the formulas work on."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from pipeline.scoring.formulas import Flags, Floats, GradeTable

_UNJUDGED = float("nan")


def lay_out(
    expected: Sequence[Mapping[str, int]], rankings: Sequence[Sequence[str]], k: int, threshold: int
) -> GradeTable:
    """Return the table of n rankings, already cut to k, against the judgments of each."""
    grades = [
        [judgments.get(key, _UNJUDGED) for key in ranking]
        for judgments, ranking in zip(expected, rankings, strict=True)
    ]
    widest = max((len(judgments) for judgments in expected), default=0)
    to_find = _padded([list(judgments.values()) for judgments in expected], max(k, widest), 0.0)
    return GradeTable(
        grades=_padded(grades, k, _UNJUDGED),
        repeated=_repeated(rankings, k),
        ideal=-np.sort(-to_find.clip(min=0.0), axis=1)[:, :k],
        returned=np.array([len(ranking) for ranking in rankings], np.int64),
        relevant=np.count_nonzero(to_find >= threshold, axis=1),
        threshold=threshold,
    )


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Floats:
    """Return rows of up to `width` numbers as one matrix, with `filler` to the right of each."""
    lengths = np.array([len(row) for row in rows], np.int64)
    matrix = np.full((len(rows), width), filler)
    inside = np.arange(width) < lengths[:, np.newaxis]
    matrix[inside] = np.fromiter(chain.from_iterable(rows), np.float64)
    return matrix


def _repeated(rankings: Sequence[Sequence[str]], k: int) -> Flags:
    """Return where a key stands that stood higher up already, shape (n, k)."""
    repeated = np.zeros((len(rankings), k), np.bool_)
    for row, ranking in enumerate(rankings):
        if len(set(ranking)) < len(ranking):
            seen: set[str] = set()
            for slot, key in enumerate(ranking):
                repeated[row, slot] = key in seen
                seen.add(key)
    return repeated
