"""What every run must come to, computed without the database and without our own scoring.

Vectors are the loopback provider's, rankings are exact cosine by numpy in float64, measures are
trec_eval's own, through pytrec_eval.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

from pipeline.types import Kind, Question
from tests.chaos.provider import DIMENSIONS
from tests.loopback.openai_server import vectors_for

K = 5
CUTOFFS = (1, 3, 5)
CHUNKS = 200
QUESTIONS = 40
IN_TREC_EVAL = {"hit": "success", "recall": "recall", "precision": "P", "map": "map_cut",
                "ndcg": "ndcg_cut"}  # fmt: skip
SAFE_GAP = 1e-5
"""Least difference of neighbouring cosines: float32 in the database orders them alike."""


@dataclass(frozen=True)
class Expected:
    """What must be stored of one question; `measures` is None for one that is ineligible."""

    retrieved: Sequence[str]
    measures: Mapping[str, float] | None


class Collection:
    """Chunks that never change, and as many sets of questions as there are numbers."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.keys = [f"doc{i // 10}:{i % 10}" for i in range(CHUNKS)]
        self.texts = [f"chunk {i} of the kill suite {seed}" for i in range(CHUNKS)]
        self.vectors = vectors_for(self.texts, DIMENSIONS)

    @cached_property
    def _unit(self) -> NDArray[np.float64]:
        return _normalised(self.vectors)

    def rank(self, texts: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return the best chunks of each text with their cosines, best first."""
        cosines = _normalised(vectors_for(texts, DIMENSIONS)) @ self._unit.T
        orders = np.argsort(-cosines, axis=1)[:, : 4 * K]
        return [
            [(self.keys[i], float(row[i])) for i in order]
            for row, order in zip(cosines, orders, strict=True)
        ]

    def questions(self, number: int) -> list[Question]:
        """Return set `number`: mostly answerable, some with dead keys, some unanswerable."""
        rng = random.Random(f"{self.seed} {number}")  # noqa: S311 - to be repeated, not secret
        texts = [f"question {i} of set {number} of {self.seed}" for i in range(2 * QUESTIONS)]
        rankings = zip(texts, self.rank(texts), strict=True)
        clear = [(text, ranking) for text, ranking in rankings if _is_clear(ranking)]
        return [
            _question(rng, text, [key for key, _ in ranking]) for text, ranking in clear[:QUESTIONS]
        ]

    def expect(self, questions: Sequence[Question]) -> dict[str, Expected]:
        """Return by text what a run over the questions must store."""
        rankings = self.rank([question.text for question in questions])
        return {
            question.text: self._expect(question, [key for key, _ in ranking[:K]])
            for question, ranking in zip(questions, rankings, strict=True)
        }

    def _expect(self, question: Question, top: Sequence[str]) -> Expected:
        live = {key: grade for key, grade in question.expected.items() if key in self.keys}
        if question.kind is Kind.UNANSWERABLE or not live:
            return Expected(top, None)
        return Expected(top, _measures(live, top))


def means(expected: Mapping[str, Expected]) -> dict[str, float]:
    """Return the mean of each measure over the scored questions."""
    scored = [each.measures for each in expected.values() if each.measures is not None]
    return {name: fmean(measures[name] for measures in scored) for name in scored[0]}


def _measures(live: Mapping[str, int], top: Sequence[str]) -> dict[str, float]:
    found = {
        f"{name}@{k}": _asked(live, top, f"{there}.{k}", f"{there}_{k}")
        for name, there in IN_TREC_EVAL.items()
        for k in CUTOFFS
    }
    ranks = {f"mrr@{k}": _asked(live, top[:k], "recip_rank", "recip_rank") for k in CUTOFFS}
    judged = sum(key in live for key in top) / K
    return found | ranks | {f"judged@{K}": judged, f"duplicates@{K}": 0.0}


def _asked(live: Mapping[str, int], ranking: Sequence[str], asked: str, answered: str) -> float:
    run = {key: float(len(ranking) - place) for place, key in enumerate(ranking)}
    answers = pytrec_eval.RelevanceEvaluator({"q": dict(live)}, {asked}).evaluate({"q": run})
    return float(answers["q"][answered])


def _question(rng: random.Random, text: str, ranked: Sequence[str]) -> Question:
    luck = rng.random()
    if luck < 0.08:
        return Question(text=text, expected={}, kind=Kind.UNANSWERABLE)
    if luck < 0.16:
        return Question(text=text, expected={"gone:1": 1})
    expected = {rng.choice(ranked[: 2 * K]): rng.randint(1, 3) for _ in range(rng.randint(1, 3))}
    if luck > 0.9:
        expected["gone:2"] = 1
    return Question(text=text, expected=expected)


def _is_clear(ranking: Sequence[tuple[str, float]]) -> bool:
    cosines = np.array([cosine for _, cosine in ranking])
    return bool(np.min(-np.diff(cosines)) > SAFE_GAP)


def _normalised(matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = matrix.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)  # type: ignore[no-any-return]  # numpy
