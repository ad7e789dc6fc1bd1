"""Questions a second, scored by recallwatch and by pytrec_eval, measured side by side.

Both get the same random rankings and judgments and compute hit, recall, precision, reciprocal rank,
average precision and nDCG at the same cutoffs, shard by shard in turns, in one process. recallwatch
also checks liveness and reports judged share, duplicates and first ranks; pytrec_eval is handed its
nested dictionaries ready-made.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytrec_eval

from pipeline.scoring import Judged, measures_for, score
from pipeline.types import Level, Ranking

CUTOFFS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Task:
    """A shard of the same questions in both forms; `k` is the depth of every ranking."""

    k: int
    questions: list[Judged]
    rankings: list[Ranking]
    live: set[str]
    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]


def make_task(questions: int, k: int, seed: int) -> Task:
    """Draw questions with 1 to 4 expected keys, about half of them among the k retrieved."""
    rng = np.random.default_rng(seed)
    scores = [float(score) for score in range(k, 0, -1)]
    judged, rankings = [], []
    for number in range(questions):
        keys = [f"document-{number}:{index}" for index in rng.permutation(2 * k).tolist()]
        expected = rng.choice(keys, size=min(int(rng.integers(1, 5)), 2 * k), replace=False)
        judged.append(Judged({str(key): int(rng.integers(1, 4)) for key in expected}))
        rankings.append(Ranking(keys=keys[:k], scores=scores))
    return Task(
        k=k,
        questions=judged,
        rankings=rankings,
        live={key for question in judged for key in question.expected},
        qrels={str(n): dict(question.expected) for n, question in enumerate(judged)},
        run={
            str(n): dict(zip(ranking.keys, scores, strict=True))
            for n, ranking in enumerate(rankings)
        },
    )


def score_with_recallwatch(task: Task) -> None:
    """Score the task in one call."""
    score(
        task.questions,
        task.rankings,
        k=task.k,
        level=Level.CHUNK,
        measures=measures_for(task.k, CUTOFFS),
        live=task.live,
    )


def score_with_pytrec_eval(task: Task) -> None:
    """Score the task in one call, with the evaluator built anew as it holds the judgments."""
    depths = ",".join(str(k) for k in sorted({task.k, *(c for c in CUTOFFS if c <= task.k)}))
    cut = {f"{name}.{depths}" for name in ("success", "recall", "P", "map_cut", "ndcg_cut")}
    pytrec_eval.RelevanceEvaluator(task.qrels, cut | {"recip_rank"}).evaluate(task.run)


def _rate(scorer: Callable[[Task], None], shards: Sequence[Task]) -> float:
    start = time.perf_counter()
    for shard in shards:
        scorer(shard)
    return sum(len(shard.questions) for shard in shards) / (time.perf_counter() - start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both rates (median of the rounds) and their ratio (median of the rounds' ratios)."""
    parser = argparse.ArgumentParser(prog="python -m bench.scoring", description=__doc__)
    parser.add_argument("--shards", type=int, default=20, help="how many (20)")
    parser.add_argument("--questions", type=int, default=500, help="in each shard (500)")
    parser.add_argument("--k", type=int, default=10, help="depth of the rankings (10)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random rankings (1)")
    options = parser.parse_args(arguments)
    shards = [
        make_task(options.questions, options.k, options.seed + number)
        for number in range(options.shards)
    ]
    pairs = [
        (_rate(score_with_recallwatch, shards), _rate(score_with_pytrec_eval, shards))
        for _ in range(options.rounds)
    ]
    ours, theirs = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    ratio = statistics.median(our / their for our, their in pairs)
    print(
        f"{options.shards} shards of {options.questions}, k = {options.k}, {options.rounds} rounds"
    )
    print(f"recallwatch  {ours:>11,.0f} questions/s")
    print(f"pytrec_eval  {theirs:>11,.0f} questions/s")
    print(f"ratio        {ratio:>11.2f}")


if __name__ == "__main__":
    main()
