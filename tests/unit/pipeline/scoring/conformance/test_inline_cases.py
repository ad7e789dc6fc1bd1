"""Figures stated in the test suites of other tools: reproduced, or the difference named."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pipeline.scoring import Judged, Measure, Scores, score
from pipeline.types import Level, Outcome
from tests.shared import conformance, needs_shared
from tests.unit.pipeline.scoring.asking import Everything, ranked

pytestmark = needs_shared

WHOLE = 1_000
RETURNED = 0


@dataclass(frozen=True)
class Reading:
    """What a name in the file asks for; a cutoff of `RETURNED` is the length of the ranking."""

    name: str
    k: int = WHOLE
    threshold: int = 1


READINGS = {
    "average_precision": Reading("map"),
    "average_precision, relevant from grade 2": Reading("map", threshold=2),
    "dcg@10 (exponential gain)": Reading("ndcg_exp", 10),
    "hit_rate": Reading("hit"),
    "hit_rate (granular)": Reading("hit"),
    "hit_rate@2, relevant from grade 2": Reading("hit", 2, 2),
    "hits@5": Reading("hit", 5),
    "map@2": Reading("map", 2),
    "mrr": Reading("mrr"),
    "mrr@10": Reading("mrr", 10),
    "mrr@2, relevant from grade 2": Reading("mrr", 2, 2),
    "ndcg": Reading("ndcg"),
    "ndcg (linear gain)": Reading("ndcg"),
    "ndcg@10 (exponential gain)": Reading("ndcg_exp", 10),
    "ndcg@1000": Reading("ndcg", 1_000),
    "ndcg@2": Reading("ndcg", 2),
    "ndcg@3 (linear gain)": Reading("ndcg", 3),
    "precision": Reading("precision", RETURNED),
    "precision@5": Reading("precision", 5),
    "precision@5, relevant from grade 2": Reading("precision", 5, 2),
    "recall": Reading("recall"),
    "recall (no cut-off), relevant from grade 1": Reading("recall"),
    "recall (no cut-off), relevant from grade 3": Reading("recall", threshold=3),
    "recall@2": Reading("recall", 2),
}


@dataclass(frozen=True)
class Difference:
    """A case that ours answers otherwise: why, our answer (None: ineligible), and the way over."""

    why: str
    ours: Mapping[str, float | None]


DIFFERENCES = {
    4: Difference(
        "ranx's hits counts the relevant keys found, our hit says whether there is any: the count "
        "is precision@k * k",
        {"1": 1.0, "2": 1.0},
    ),
    25: Difference(
        "LlamaIndex's granular hit rate is the share of expected keys found: that is our recall",
        {"q": 1.0},
    ),
    28: Difference(
        "a question without judgments cannot be scored: ours is ineligible, not 0",
        {"1": None},
    ),
    29: Difference(
        "DCG without normalisation has no bounds to compare within: ours is DCG / ideal DCG",
        {"q": 13.84826362927298 / 14.595390756454924},
    ),
    36: Difference(
        "no key reaches the threshold, so nothing can be found: ours is ineligible, not 0",
        {"0": None, "1": None},
    ),
}


def cases() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(
        conformance("inline_cases.json").read_text(encoding="utf-8")
    )
    return loaded


def scored(case: dict[str, Any], reading: Reading) -> Scores:
    """Score the rankings of a case; topics that are judged but were not asked are left out."""
    k = reading.k or max(len(keys) for keys in case["run"].values())
    return score(
        [Judged(case["qrels"][topic]) for topic in case["run"]],
        [ranked(keys) for keys in case["run"].values()],
        k=k,
        level=Level.CHUNK,
        measures=[Measure(reading.name, k)],
        relevance_threshold=reading.threshold,
        live=Everything(),
    )


def figures(case: dict[str, Any], reading: Reading) -> dict[str, float | None]:
    """Return each topic's value, None where it is not scored."""
    scores = scored(case, reading)
    return {
        topic: float(row[0]) if outcome is Outcome.SCORED else None
        for topic, outcome, row in zip(case["run"], scores.outcomes, scores.values, strict=True)
    }


def with_mean(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Add the mean over the scored topics, None when there is none."""
    scored_ones = [value for value in values.values() if value is not None]
    return {**values, "mean": sum(scored_ones) / len(scored_ones) if scored_ones else None}


@pytest.mark.parametrize("number", [n for n in range(42) if n not in DIFFERENCES])
def test_a_stated_figure_is_reproduced(number: int) -> None:
    case = cases()[number]
    ours = with_mean(figures(case, READINGS[case["metric"]]))
    stated = case["expected"]
    assert {name: ours[name] for name in stated} == pytest.approx(stated, abs=case["tolerance"])


@pytest.mark.parametrize("number", DIFFERENCES)
def test_a_named_difference_gives_the_value_of_our_convention(number: int) -> None:
    case, difference = cases()[number], DIFFERENCES[number]
    ours = figures(case, READINGS[case["metric"]])
    assert ours == pytest.approx(difference.ours, abs=1e-12), difference.why
    assert {name: with_mean(ours)[name] for name in case["expected"]} != case["expected"]


def test_every_case_of_the_file_is_read() -> None:
    assert len(cases()) == 42


def test_ranx_hits_are_precision_times_k() -> None:
    values = with_mean(figures(cases()[4], Reading("precision", 5)))
    assert values["mean"] is not None
    assert values["mean"] * 5 == pytest.approx(cases()[4]["expected"]["mean"], abs=1e-12)


def test_the_granular_hit_rate_is_recall() -> None:
    assert figures(cases()[25], Reading("recall")) == cases()[25]["expected"]
