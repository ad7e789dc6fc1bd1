"""Score rankings against judgments, by the conventions `rw-1` of docs/architecture.md.

`score` takes a shard of questions and what the retriever returned for each; it decides which can be
scored at all, lays those out as a `GradeTable` and evaluates every measure for all of them at once.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.scoring.formulas import Floats, evaluate
from pipeline.scoring.layout import lay_out
from pipeline.scoring.measures import Measure
from pipeline.types import Failure, Kind, Level, Outcome, Ranking, document_of


@dataclass(frozen=True, slots=True)
class Judged:
    """What scoring needs of a question: its chunk keys with their grades, and its kind.

    `stale` are those of the keys that count as not live: they stand for another text by now.
    """

    expected: Mapping[str, int]
    kind: Kind = Kind.ANSWERABLE
    stale: Container[str] = ()


@dataclass(frozen=True, eq=False)
class Scores:
    """What `score` found, one entry a question, in the order asked.

    `values` has shape (n, len(measures)), a row of NaN where the question was not scored.
    `first_ranks`: rank of the first relevant key in the whole ranking, which may be deeper than k;
    None where there is none and where the question was not scored.
    `missing`: the expected keys (grade >= 1) that are not live, sorted.
    `rankings`, `ranking_scores`: what was scored, cut to k; empty where retrieval failed.
    `expected`: the judgments counted, those whose key is live.
    At document level all keys are document ids.
    """

    outcomes: list[Outcome]
    values: Floats
    first_ranks: list[int | None]
    missing: list[tuple[str, ...]]
    rankings: list[list[str]]
    ranking_scores: list[list[float]]
    expected: list[dict[str, int]]


def score(
    questions: Sequence[Judged],
    results: Sequence[Ranking | Failure],
    *,
    k: int,
    level: Level,
    measures: Sequence[Measure],
    relevance_threshold: int = 1,
    live: Container[str],
) -> Scores:
    """Score what a retriever returned for each question.

    `live` holds the keys that the corpus has now: chunk keys, or document ids at document level.
    A question is INELIGIBLE when it is unanswerable or when no live key has a grade of at least
    `relevance_threshold`. This wins over FAILED: it could not have been scored in any case, so its
    failure must not count against the run. Memory grows with n * k; a shard is the unit meant.

    Raises ValueError when `questions` and `results` differ in length, when a ranking has not one
    score a key, when k or the threshold is below 1, or when a measure looks deeper than k.
    """
    _check(k, measures, relevance_threshold)
    judgments = [judgments_at(question.expected, level) for question in questions]
    expected = [
        _usable(question, each, live) for question, each in zip(questions, judgments, strict=True)
    ]
    whole = [_ranking(result, level) for result in results]
    outcomes = [
        _outcome(question, grades, result, relevance_threshold)
        for question, grades, result in zip(questions, expected, results, strict=True)
    ]
    scored = [row for row, outcome in enumerate(outcomes) if outcome is Outcome.SCORED]
    rankings = [list(ranking.keys[:k]) for ranking in whole]
    table = lay_out(
        [expected[row] for row in scored], [rankings[row] for row in scored], k, relevance_threshold
    )
    values = np.full((len(outcomes), len(measures)), np.nan)
    values[scored] = evaluate(table, measures)
    return Scores(
        outcomes=outcomes,
        values=values,
        first_ranks=[
            _first_rank(whole[row].keys, expected[row], relevance_threshold) if each else None
            for row, each in enumerate(one is Outcome.SCORED for one in outcomes)
        ],
        missing=[_missing(*pair) for pair in zip(judgments, expected, strict=True)],
        rankings=rankings,
        ranking_scores=[list(ranking.scores[:k]) for ranking in whole],
        expected=expected,
    )


def _usable(question: Judged, judgments: Mapping[str, int], live: Container[str]) -> dict[str, int]:
    """Leave out the judgments whose keys are gone, or stand for another text."""
    return {
        key: grade for key, grade in judgments.items() if key in live and key not in question.stale
    }


def _check(k: int, measures: Sequence[Measure], threshold: int) -> None:
    if k < 1:
        raise ValueError(f"k is {k}: it must be 1 or more")
    if threshold < 1:
        raise ValueError(f"relevance_threshold is {threshold}: a grade below 1 is never relevant")
    too_deep = [str(measure) for measure in measures if measure.k > k]
    if too_deep:
        raise ValueError(f"{', '.join(too_deep)}: deeper than the rankings, which are cut to {k}")


def judgments_at(expected: Mapping[str, int], level: Level) -> Mapping[str, int]:
    """At document level, collapse chunk keys to documents with the best grade of their chunks."""
    if level is Level.CHUNK:
        return expected
    best: dict[str, int] = {}
    for key, grade in expected.items():
        document = document_of(key)
        best[document] = max(grade, best.get(document, grade))
    return best


def _ranking(result: Ranking | Failure, level: Level) -> Ranking:
    """At document level, collapse chunk keys to documents, the first occurrence of each."""
    if isinstance(result, Failure):
        return Ranking((), ())
    if len(result.keys) != len(result.scores):
        raise ValueError(
            f"a ranking of {len(result.keys)} keys has {len(result.scores)} scores: "
            "a retriever must return one score a key"
        )
    if level is Level.CHUNK:
        return result
    first: dict[str, float] = {}
    for key, similarity in zip(result.keys, result.scores, strict=True):
        first.setdefault(document_of(key), similarity)
    return Ranking(list(first), list(first.values()))


def _outcome(
    question: Judged, expected: Mapping[str, int], result: Ranking | Failure, threshold: int
) -> Outcome:
    best = max(expected.values(), default=0)
    if question.kind is Kind.UNANSWERABLE or best < threshold:
        return Outcome.INELIGIBLE
    return Outcome.FAILED if isinstance(result, Failure) else Outcome.SCORED


def _first_rank(keys: Sequence[str], expected: Mapping[str, int], threshold: int) -> int | None:
    for rank, key in enumerate(keys, start=1):
        if expected.get(key, 0) >= threshold:
            return rank
    return None


def _missing(judgments: Mapping[str, int], expected: Mapping[str, int]) -> tuple[str, ...]:
    if len(judgments) == len(expected):
        return ()
    gone = [key for key, grade in judgments.items() if grade >= 1 and key not in expected]
    return tuple(sorted(gone))
