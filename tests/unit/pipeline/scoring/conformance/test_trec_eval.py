"""The figures that trec_eval publishes for its own test run, reproduced to the last printed digit.

Names as trec_eval prints them; those of its measures that we do not have are passed over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from pipeline.scoring import Judged, Measure, score
from pipeline.types import Level, Outcome
from tests.shared import conformance, needs_shared
from tests.unit.pipeline.scoring.asking import Everything, ranked
from tests.unit.pipeline.scoring.conformance.trec import read_figures, read_qrels, read_run

pytestmark = needs_shared

WHOLE = 2_000
CUT = {
    "success": "hit",
    "recall": "recall",
    "P": "precision",
    "map_cut": "map",
    "ndcg_cut": "ndcg",
    "unj": "judged",
}
UNCUT = {"map": "map", "recip_rank": "mrr", "ndcg": "ndcg", "set_recall": "recall"}


@dataclass(frozen=True)
class Published:
    """One invocation of trec_eval: its input, what it printed, and how much of that we have."""

    figures: str
    qrels: str
    run: str
    ours: int
    threshold: int = 1
    longest: int = WHOLE
    every_topic: bool = False


INVOCATIONS = [
    Published("out.test", "qrels.test", "results.test", ours=11),
    Published("out.test.a", "qrels.test", "results.test", ours=46),
    Published("out.test.aq", "qrels.test", "results.test", ours=184),
    Published("out.test.aqc", "qrels.test", "results.trunc", ours=184, every_topic=True),
    Published(
        "out.test.aqcM", "qrels.test", "results.trunc", ours=184, longest=100, every_topic=True
    ),
    Published("out.test.aql", "qrels.rel_level", "results.test", ours=184, threshold=2),
    Published("out.test.meas_params", "qrels.test", "results.test", ours=44),
]

# trec_eval prints the unjudged share, and counts two things unlike ours. An empty ranking (topic
# 302 of the truncated run): it finds nothing unjudged there, our judged@k is 0. A grade of -1
# (topic 303 of the graded judgments): to trec_eval nobody judged it, to us it is judged not
# relevant.
EMPTY_RANKING = {
    ("unj_5", "302"): "1.0000",
    ("unj_10", "302"): "1.0000",
    ("unj_20", "302"): "1.0000",
    ("unj_5", "all"): "0.3333",
    ("unj_10", "all"): "0.3333",
    ("unj_20", "all"): "0.3667",
}
NEGATIVE_GRADE = {
    ("unj_5", "303"): "0.0000",
    ("unj_10", "303"): "0.0000",
    ("unj_20", "303"): "0.0000",
    ("unj_5", "all"): "0.0000",
    ("unj_10", "all"): "0.0000",
    ("unj_20", "all"): "0.0333",
}
DIFFERS = {
    "out.test.aqc": EMPTY_RANKING,
    "out.test.aqcM": EMPTY_RANKING,
    "out.test.aql": NEGATIVE_GRADE,
}


def measure_of(name: str) -> Measure | None:
    """Return our measure for a name of trec_eval's, None when we have none."""
    cut = re.fullmatch(r"(.+)_(\d+)", name)
    if cut and cut[1] in CUT:
        return Measure(CUT[cut[1]], int(cut[2]))
    return Measure(UNCUT[name], WHOLE) if name in UNCUT else None


def our_values(published: Published, measures: list[Measure]) -> Mapping[str, list[float]]:
    """Return topic -> values, for the topics of the run (or of the qrels: trec_eval's -c)."""
    qrels = read_qrels(conformance("trec_eval", published.qrels))
    run = read_run(conformance("trec_eval", published.run))
    topics = list(qrels if published.every_topic else run)
    scores = score(
        [Judged(qrels[topic]) for topic in topics],
        [ranked(run.get(topic, [])[: published.longest]) for topic in topics],
        k=WHOLE,
        level=Level.CHUNK,
        measures=measures,
        relevance_threshold=published.threshold,
        live=Everything(),
    )
    assert set(scores.outcomes) == {Outcome.SCORED}
    rows = dict(zip(topics, scores.values.tolist(), strict=True))
    return rows | {"all": scores.values.mean(axis=0).tolist()}


@pytest.mark.parametrize("published", INVOCATIONS, ids=lambda published: published.figures)
def test_printed_figures_are_reproduced_but_for_the_differences_named(published: Published) -> None:
    figures = read_figures(conformance("trec_eval", published.figures))
    shared = {name: measure for name, _ in figures if (measure := measure_of(name)) is not None}
    values = our_values(published, list(shared.values()))
    printed = {key: figure for key, figure in figures.items() if key[0] in shared}
    ours = {}
    for name, topic in printed:
        figure = values[topic][list(shared).index(name)]
        ours[name, topic] = f"{1 - figure if name.startswith('unj_') else figure:.4f}"
    assert ours == printed | DIFFERS.get(published.figures, {})
    assert len(printed) == published.ours
