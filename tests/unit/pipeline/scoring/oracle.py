"""trec_eval's own code, through pytrec_eval, asked for the measures that it shares with ours."""

from collections.abc import Mapping, Sequence

import pytrec_eval

from pipeline.scoring import Measure

NAMES_THERE = {
    "hit": "success",
    "recall": "recall",
    "precision": "P",
    "map": "map_cut",
    "ndcg": "ndcg_cut",
}
SHARED_NAMES = (*NAMES_THERE, "mrr")


def trec_eval(
    measure: Measure,
    judgments: Sequence[Mapping[str, int]],
    rankings: Sequence[Sequence[str]],
    threshold: int = 1,
) -> list[float]:
    """Return the measure for each question; each ranking holds a key once at most.

    trec_eval's recip_rank has no cutoff, so the rankings are cut beforehand.
    """
    name = NAMES_THERE.get(measure.name, "recip_rank")
    asked, answered = (
        (f"{name}.{measure.k}", f"{name}_{measure.k}") if name != "recip_rank" else (name, name)
    )
    qrels = {str(number): dict(grades) for number, grades in enumerate(judgments)}
    run = {
        str(number): {key: float(-rank) for rank, key in enumerate(keys[: measure.k])}
        for number, keys in enumerate(rankings)
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {asked}, relevance_level=threshold)
    answers = evaluator.evaluate(run)
    return [answers[number][answered] for number in qrels]
