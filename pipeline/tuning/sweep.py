"""Each setting's measures for one question, from the rankings that the arms gave once."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.retrieval.fusion import Floats, Formula, Pool, best_first
from pipeline.scoring.formulas import evaluate
from pipeline.scoring.layout import lay_out
from pipeline.scoring.measures import Measure
from pipeline.tuning.grid import HybridSetting
from pipeline.types import Level, Ranking, document_of

Columns = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Staged:
    """A question with the rankings of its arms, and the judgments that count at the run's level."""

    expected: Mapping[str, int]
    rankings: Sequence[Ranking]


@dataclass(frozen=True, slots=True)
class Conventions:
    """What a run's figures go by; `limit`: chunks that its first k results take."""

    k: int
    limit: int
    level: Level
    measures: Sequence[Measure]
    threshold: int


class Sweep:
    """Evaluates many settings at once.

    The same as fusing and scoring one after the other, to the last bit: what differs in weights
    alone is fused together, and all settings are scored as if they were so many questions.
    """

    def __init__(self, settings: Sequence[HybridSetting], conventions: Conventions) -> None:
        self._conventions = conventions
        self._size = len(settings)
        self._by_depth = _grouped(settings)

    def values(self, question: Staged) -> Floats:
        """Return the measures of every setting, of the shape (settings, measures)."""
        graded = np.full((self._size, self._conventions.k), np.nan)
        for depth, formulas in self._by_depth.items():
            pool = Pool.of([_cut(ranking, depth) for ranking in question.rankings])
            for formula, (numbers, weights) in formulas.items():
                scores = pool.fused(formula, weights)
                graded[numbers] = self._grades(pool, scores, question.expected)
        return self._evaluate(graded, question.expected)

    def alone(self, question: Staged) -> Floats:
        """Return the measures of each arm by itself, of the shape (arms, measures)."""
        conventions = self._conventions
        found = [self._results(ranking.keys[: conventions.limit]) for ranking in question.rankings]
        expected = [question.expected] * len(found)
        table = lay_out(expected, found, conventions.k, conventions.threshold)
        return evaluate(table, conventions.measures)

    def _results(self, keys: Sequence[str]) -> list[str]:
        if self._conventions.level is Level.DOCUMENT:
            keys = list(dict.fromkeys(map(document_of, keys)))
        return list(keys[: self._conventions.k])

    def _grades(self, pool: Pool, scores: Floats, expected: Mapping[str, int]) -> Floats:
        """Return the grades of the first k results, of the shape (rows of scores, k).

        NaN where a result is not judged, or there is none.
        """
        best = best_first(scores, self._conventions.limit)
        names = pool.keys
        if self._conventions.level is Level.DOCUMENT:
            names, best = _documents(names, best)
        # Behind the last name stands what an empty slot holds.
        grades = np.array([*(expected.get(name, np.nan) for name in names), np.nan])
        kept = grades[best[:, : self._conventions.k]]
        filler = np.full((len(kept), self._conventions.k - kept.shape[1]), np.nan)
        return np.hstack([kept, filler])

    def _evaluate(self, graded: Floats, expected: Mapping[str, int]) -> Floats:
        conventions = self._conventions
        table = lay_out([expected], [[]], conventions.k, conventions.threshold)
        rows = len(graded)
        return evaluate(
            replace(
                table,
                grades=graded,
                repeated=np.zeros(graded.shape, np.bool_),
                ideal=table.ideal.repeat(rows, axis=0),
                returned=table.returned.repeat(rows),
                relevant=table.relevant.repeat(rows),
            ),
            conventions.measures,
        )


Group = tuple[Columns, Floats]
"""The numbers of settings that differ in their weights alone, and these: (settings, arms)."""


def _grouped(settings: Sequence[HybridSetting]) -> dict[int, dict[Formula, Group]]:
    """Return depth -> formula -> the settings of both."""
    members: dict[int, dict[Formula, list[int]]] = {}
    for number, each in enumerate(settings):
        members.setdefault(each.depth, {}).setdefault(each.formula, []).append(number)
    return {
        depth: {
            formula: (np.array(numbers), np.array([settings[n].weights for n in numbers]))
            for formula, numbers in formulas.items()
        }
        for depth, formulas in members.items()
    }


def _cut(ranking: Ranking, depth: int) -> Ranking:
    return Ranking(ranking.keys[:depth], ranking.scores[:depth])


def _documents(keys: Sequence[str], best: Columns) -> tuple[list[str], Columns]:
    """Return document ids, and best chunks as best documents, the first chunk of each counting.

    Rows with fewer documents than others end with -1.
    """
    names = sorted({document_of(key) for key in keys})
    number = {name: n for n, name in enumerate(names)}
    of_key = np.array([number[document_of(key)] for key in keys], np.intp)
    rows = [list(dict.fromkeys(row)) for row in of_key[best].tolist()]
    padded = list(itertools.zip_longest(*rows, fillvalue=-1))
    return names, np.array(padded, np.intp).T.reshape(len(best), -1)
