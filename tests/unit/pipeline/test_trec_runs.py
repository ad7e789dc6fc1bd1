"""TREC run files: trec_eval, which sorts by score, has to find the figures that we found."""

import math
import re
import sys
from io import StringIO
from urllib.parse import quote, unquote

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from pipeline.scoring.judge import Judged, score
from pipeline.scoring.measures import Measure
from pipeline.trec_runs import escaped, qrels_lines, run_lines, strictly_decreasing
from pipeline.types import Level, Outcome, Ranking, document_of

K = 5
MEASURES = {
    "hit@5": "success_5", "recall@5": "recall_5", "precision@5": "P_5", "mrr@5": "recip_rank",
    "map@5": "map_cut_5", "ndcg@5": "ndcg_cut_5", "ndcg@3": "ndcg_cut_3",
}  # fmt: skip
KEYS = st.sampled_from(
    [f"doc {n}, a:{n}" for n in range(4)]
    + ["doc%201, a:1", "x:0", "x:1", "x:0#repeated-at-2", "y:0", "y:1"]
)
SCORES = st.floats(width=64) | st.sampled_from([0.0, 1.0, 0.5, 1e300, math.inf, math.nan])
RANKED = st.lists(st.tuples(KEYS, SCORES), max_size=8)
JUDGED = st.dictionaries(KEYS, st.integers(-1, 3), min_size=1, max_size=6).filter(
    lambda expected: max(expected.values()) >= 1
)


@given(st.lists(SCORES, max_size=20))
def test_scores_decrease_strictly_as_trec_eval_holds_them(scores: list[float]) -> None:
    found = np.array([float(f"{each:.9g}") for each in strictly_decreasing(scores)], np.float32)
    assert np.isfinite(found).all()
    assert (found[1:] < found[:-1]).all()


def test_scores_that_decrease_already_are_kept() -> None:
    assert strictly_decreasing([0.75, 0.5, -2.0]) == [0.75, 0.5, -2.0]


@given(st.lists(st.tuples(JUDGED, RANKED), min_size=1, max_size=4), st.sampled_from(list(Level)))
def test_trec_eval_finds_our_figures(
    questions: list[tuple[dict[str, int], list[tuple[str, float]]]], level: Level
) -> None:
    at_level = document_of if level is Level.DOCUMENT else str
    found = score(
        [Judged(expected) for expected, _ in questions],
        [Ranking([key for key, _ in ranked], [s for _, s in ranked]) for _, ranked in questions],
        k=K,
        level=level,
        measures=[Measure.parse(name) for name in MEASURES],
        live={at_level(key) for expected, _ in questions for key in expected},
    )
    assert set(found.outcomes) == {Outcome.SCORED}
    run, qrels = StringIO(), StringIO()
    for n, expected in enumerate(found.expected):
        run.writelines(run_lines(f"q {n}", found.rankings[n], found.ranking_scores[n], "a tag"))
        qrels.writelines(qrels_lines(f"q {n}", expected))
    theirs = _as_trec_eval(run.getvalue(), qrels.getvalue())
    for n, values in enumerate(found.values):
        ours = dict(zip(MEASURES.values(), values, strict=True))
        # A topic without a line in the run is what -c counts as 0.
        assert theirs.get(f"q%20{n}", dict.fromkeys(ours, 0.0)) == pytest.approx(ours)


def _as_trec_eval(run: str, qrels: str) -> dict[str, dict[str, float]]:
    parsed = pytrec_eval.parse_qrel(StringIO(qrels))
    names = {"success", "recall", "P", "recip_rank", "map_cut", "ndcg_cut.3,5"}
    evaluator = pytrec_eval.RelevanceEvaluator(parsed, names)
    found: dict[str, dict[str, float]] = evaluator.evaluate(pytrec_eval.parse_run(StringIO(run)))
    return {query: {each: values[each] for each in MEASURES.values()}
            for query, values in found.items()}  # fmt: skip


def test_a_line_has_the_six_fields_of_a_run_file() -> None:
    lines = list(run_lines("q1", ["a:0", "my guide.pdf:3", "a:0"], [0.5, 0.5, 0.1], "rw vector"))
    assert [line.split() for line in lines] == [
        ["q1", "Q0", "a:0", "1", "0.5", "rw%20vector"],
        ["q1", "Q0", "my%20guide.pdf:3", "2", "0.49999997", "rw%20vector"],
        ["q1", "Q0", "a:0#repeated-at-3", "3", "0.100000001", "rw%20vector"],
    ]


def test_a_blank_in_an_id_is_escaped_as_in_a_url() -> None:
    assert escaped("a b\u00a0c\n") == "a%20b%C2%A0c%0A"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a%20b", "a%2520b"),
        ("a%25b", "a%2525b"),
        ("a#repeated-at-2", "a%23repeated-at-2"),
        ("https://a.example/caf%C3%A9#b", "https://a.example/caf%C3%A9#b"),
        ("100%", "100%"),
        ("a%2", "a%2"),
    ],
)
def test_what_looks_like_an_escape_is_escaped_and_nothing_else(name: str, written: str) -> None:
    assert escaped(name) == written


BLANKS = [chr(n) for n in range(sys.maxunicode) if chr(n).isspace()]
WRITTEN = re.compile("|".join([*map(quote, BLANKS), "%25", "%23"]))
ESCAPE_PARTS = st.text(st.sampled_from(" \u00a0\u2028%20C2A8E5#") | st.characters(), max_size=8)


@given(name=ESCAPE_PARTS)
def test_every_id_can_be_told_from_how_it_is_written(name: str) -> None:
    written = escaped(name)
    assert not re.search(r"\s", written)
    assert WRITTEN.sub(lambda found: unquote(found[0]), written) == name


def test_a_repeat_is_no_document_of_that_name() -> None:
    lines = run_lines("q", ["a:0", "a:0", "a:0#repeated-at-2"], [3.0, 2.0, 1.0], "t")
    documents = [line.split()[2] for line in lines]
    assert documents == ["a:0", "a:0#repeated-at-2", "a:0%23repeated-at-2"]
