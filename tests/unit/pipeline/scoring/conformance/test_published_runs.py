"""The runs that ir_measures and ranx publish without figures: scored as trec_eval scores them."""

import pytest

from pipeline.scoring import Judged, Measure, score
from pipeline.types import Level
from tests.shared import conformance, needs_shared
from tests.unit.pipeline.scoring.asking import Everything, ranked
from tests.unit.pipeline.scoring.conformance.trec import read_qrels, read_run
from tests.unit.pipeline.scoring.oracle import SHARED_NAMES, trec_eval

pytestmark = needs_shared

MEASURES = [Measure(name, k) for name in SHARED_NAMES for k in (1, 3, 5, 10, 20, 100)]
FILES = [
    ("ir_measures", "compat.qrels", "compat.run", 2),
    ("ir_measures", "cwl.qrels", "cwl.run", 3),
    ("ranx", "qrels.trec", "run.trec", 2),
]


@pytest.mark.parametrize("threshold", [1, 2])
@pytest.mark.parametrize(("tool", "qrels", "run", "topics"), FILES)
def test_a_published_run_scores_as_trec_eval_scores_it(
    tool: str, qrels: str, run: str, topics: int, threshold: int
) -> None:
    judged, rankings = read_qrels(conformance(tool, qrels)), read_run(conformance(tool, run))
    assert len(rankings) == topics
    relevant = [topic for topic in rankings if max(judged[topic].values()) >= threshold]
    expected, ranking = [judged[t] for t in relevant], [rankings[t] for t in relevant]
    ours = score(
        [Judged(grades) for grades in expected],
        [ranked(keys) for keys in ranking],
        k=100,
        level=Level.CHUNK,
        measures=MEASURES,
        relevance_threshold=threshold,
        live=Everything(),
    ).values
    for measure, column in zip(MEASURES, ours.T, strict=True):
        theirs = trec_eval(measure, expected, ranking, threshold)
        assert column.tolist() == pytest.approx(theirs, abs=1e-12), str(measure)
