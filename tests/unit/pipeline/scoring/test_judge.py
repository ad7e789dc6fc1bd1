"""Which questions are scored, against which judgments, on which part of the ranking."""

import math

import numpy as np
import pytest

from pipeline.scoring import CONVENTION, Judged, Measure, measures_for, score
from pipeline.types import Failure, Kind, Level, Outcome, Ranking
from tests.unit.pipeline.scoring.asking import Everything, ask, ranked, value

TIMEOUT = Failure("the retriever did not answer within 10 s")


def test_the_convention_has_the_name_that_runs_store() -> None:
    assert CONVENTION == "rw-1"


def test_an_answered_question_with_a_live_key_is_scored() -> None:
    scores = ask(Judged({"a:0": 1}), ["b:0", "a:0"], "hit@5", "mrr@5", live={"a:0", "b:0"})
    assert scores.outcomes == [Outcome.SCORED]
    assert scores.values.tolist() == [[1.0, 0.5]]


def test_an_empty_ranking_scores_zero_on_every_measure() -> None:
    measures = [str(measure) for measure in measures_for(5, (1, 3), exponential=True)]
    scores = ask(Judged({"a:0": 1}), [], *measures)
    assert scores.outcomes == [Outcome.SCORED]
    assert scores.values.tolist() == [[0.0] * len(measures)]


def test_a_failure_is_failed_and_never_a_miss() -> None:
    scores = ask(Judged({"a:0": 1}), TIMEOUT, "hit@5")
    assert scores.outcomes == [Outcome.FAILED]
    assert np.isnan(scores.values).all()
    assert scores.rankings == [[]]
    assert scores.ranking_scores == [[]]
    assert scores.first_ranks == [None]


@pytest.mark.parametrize(
    "question",
    [
        Judged({}, Kind.UNANSWERABLE),
        Judged({"a:0": 1}, Kind.UNANSWERABLE),
        Judged({}),
        Judged({"gone:0": 1}),
        Judged({"a:0": 0}),
        Judged({"a:0": -1, "gone:0": 2}),
    ],
)
@pytest.mark.parametrize("result", [["a:0"], TIMEOUT])
def test_a_question_without_a_live_relevant_key_is_ineligible_even_when_retrieval_failed(
    question: Judged, result: list[str] | Failure
) -> None:
    scores = ask(question, result, "hit@5", live={"a:0"})
    assert scores.outcomes == [Outcome.INELIGIBLE]
    assert np.isnan(scores.values).all()
    assert scores.first_ranks == [None]


def test_an_ineligible_question_keeps_its_ranking_for_its_own_figure() -> None:
    scores = ask(Judged({}, Kind.UNANSWERABLE), ["a:0", "b:0"], "hit@5")
    assert scores.rankings == [["a:0", "b:0"]]
    assert scores.ranking_scores == [[2.0, 1.0]]


def test_dead_expected_keys_are_left_out_and_named_sorted() -> None:
    question = Judged({"z:0": 1, "a:0": 1, "b:0": 2, "never:0": 0})
    scores = ask(question, ["a:0"], "recall@5", "ndcg@5", live={"a:0"})
    assert scores.values.tolist() == [[1.0, 1.0]]
    assert scores.expected == [{"a:0": 1}]
    assert scores.missing == [("b:0", "z:0")]


def test_a_dead_key_that_is_retrieved_all_the_same_earns_nothing() -> None:
    scores = ask(Judged({"a:0": 1, "gone:0": 1}), ["gone:0"], "hit@5", "judged@5", live={"a:0"})
    assert scores.values.tolist() == [[0.0, 0.0]]


def test_a_stale_key_counts_as_dead_for_its_question_alone() -> None:
    judged = [Judged({"a:0": 1, "b:0": 1}, stale={"a:0"}), Judged({"a:0": 1}, stale={"a:0"}),
              Judged({"a:0": 1})]  # fmt: skip
    scores = score(
        judged, [ranked(["a:0", "b:0"])] * 3, k=2, level=Level.CHUNK, live={"a:0", "b:0"},
        measures=[Measure.parse("recall@2"), Measure.parse("mrr@2")],
    )  # fmt: skip
    assert scores.outcomes == [Outcome.SCORED, Outcome.INELIGIBLE, Outcome.SCORED]
    assert scores.missing == [("a:0",), ("a:0",), ()]
    assert scores.values[[0, 2]].tolist() == [[1.0, 0.5], [1.0, 1.0]]


def test_the_ranking_is_cut_to_k_with_its_scores() -> None:
    scores = ask(Judged({"c:0": 1}), ["a:0", "b:0", "c:0"], "hit@2", k=2)
    assert scores.rankings == [["a:0", "b:0"]]
    assert scores.ranking_scores == [[3.0, 2.0]]
    assert scores.values.tolist() == [[0.0]]


def test_the_first_rank_is_looked_for_deeper_than_k() -> None:
    scores = ask(Judged({"c:0": 1, "a:0": 0}), ["a:0", "b:0", "c:0"], "hit@1", k=1)
    assert scores.first_ranks == [3]


def test_the_first_rank_is_none_when_no_relevant_key_came_back() -> None:
    assert ask(Judged({"c:0": 1}), ["a:0"], "hit@1", k=1).first_ranks == [None]


def test_the_first_rank_heeds_the_relevance_threshold() -> None:
    scores = ask(Judged({"a:0": 1, "b:0": 2}), ["a:0", "b:0"], "hit@5", threshold=2)
    assert scores.first_ranks == [2]


def test_binary_measures_heed_the_threshold_and_ndcg_does_not() -> None:
    judgments, keys = {"a:0": 1, "b:0": 2}, ["a:0", "x:0"]
    assert value(judgments, keys, "recall@2", threshold=1) == 0.5
    assert value(judgments, keys, "recall@2", threshold=2) == 0.0
    strict, loose = (value(judgments, keys, "ndcg@2", threshold=level) for level in (2, 1))
    assert strict == loose == pytest.approx(1 / (2 + 1 / math.log2(3)), abs=1e-15)


def test_a_question_below_the_threshold_is_ineligible_and_its_live_keys_are_not_missing() -> None:
    scores = ask(Judged({"a:0": 1}), ["a:0"], "hit@5", threshold=2)
    assert scores.outcomes == [Outcome.INELIGIBLE]
    assert scores.missing == [()]


def test_a_repeated_key_keeps_its_slot_and_earns_nothing() -> None:
    judgments, keys = {"a:0": 1, "b:0": 1}, ["a:0", "a:0", "b:0"]
    assert value(judgments, keys, "recall@2") == 0.5
    assert value(judgments, keys, "precision@3") == pytest.approx(2 / 3, abs=1e-15)
    assert value(judgments, keys, "map@3") == pytest.approx((1 + 2 / 3) / 2, abs=1e-15)
    assert value(judgments, keys, "duplicates@3") == pytest.approx(1 / 3, abs=1e-15)
    assert value(judgments, keys, "judged@3") == 1.0


def test_duplicates_and_judged_are_shares_of_what_was_returned() -> None:
    assert value({"a:0": 1}, ["a:0", "a:0"], "duplicates@10") == 0.5
    assert value({"a:0": 0, "b:0": 1}, ["a:0", "x:0", "y:0", "z:0"], "judged@10") == 0.25


def test_documents_take_the_best_grade_and_the_first_place_of_their_chunks() -> None:
    question = Judged({"a:0": 1, "a:7": 3, "b:0": -1, "b:1": 0})
    keys = ["x:0", "x:1", "x:2", "a:9", "b:1"]
    scores = ask(question, keys, "mrr@2", "duplicates@2", k=2, level=Level.DOCUMENT)
    assert scores.rankings == [["x", "a"]]
    assert scores.ranking_scores == [[5.0, 2.0]]
    assert scores.expected == [{"a": 3, "b": 0}]
    assert scores.values.tolist() == [[0.5, 0.0]]
    assert scores.first_ranks == [2]


def test_a_document_is_live_though_the_expected_chunk_is_gone() -> None:
    question = Judged({"a:7": 1, "gone:0": 1})
    scores = ask(question, ["a:0"], "recall@5", level=Level.DOCUMENT, live={"a"})
    assert scores.values.tolist() == [[1.0]]
    assert scores.missing == [("gone",)]


def test_document_ids_may_hold_colons() -> None:
    question = Judged({"https://example.org/a:3": 1})
    scores = ask(question, ["https://example.org/a:0"], "hit@1", k=1, level=Level.DOCUMENT)
    assert scores.rankings == [["https://example.org/a"]]
    assert scores.values.tolist() == [[1.0]]


def test_keys_without_a_colon_are_scored_as_they_stand() -> None:
    assert value({"FR940202-2-00150": 1}, ["FR940202-2-00150"], "ndcg@1") == 1.0


def test_more_expected_keys_than_k_keep_recall_below_one_and_ndcg_at_one() -> None:
    judgments = {f"a:{index}": 1 for index in range(4)}
    assert value(judgments, ["a:0", "a:1"], "recall@2") == 0.5
    assert value(judgments, ["a:0", "a:1"], "map@2") == 0.5
    assert value(judgments, ["a:0", "a:1"], "ndcg@2") == 1.0


def test_every_question_keeps_its_row_among_others_that_are_not_scored() -> None:
    scores = score(
        [Judged({"a:0": 1}), Judged({}), Judged({"b:0": 1}), Judged({"c:0": 1})],
        [ranked(["a:0"]), ranked(["b:0"]), TIMEOUT, ranked(["x:0", "c:0"])],
        k=3,
        level=Level.CHUNK,
        measures=[Measure("mrr", 3)],
        live=Everything(),
    )
    assert scores.outcomes == [
        Outcome.SCORED,
        Outcome.INELIGIBLE,
        Outcome.FAILED,
        Outcome.SCORED,
    ]
    assert [row[0] for row in scores.values[[0, 3]]] == [1.0, 0.5]
    assert np.isnan(scores.values[[1, 2]]).all()
    assert scores.first_ranks == [1, None, None, 2]


def test_no_questions_give_no_rows() -> None:
    scores = score(
        [], [], k=5, level=Level.CHUNK, measures=measures_for(5, (1,)), live=Everything()
    )
    assert scores.outcomes == []
    assert scores.values.shape == (0, 14)


def test_no_measures_give_outcomes_only() -> None:
    scores = ask(Judged({"a:0": 1}), ["a:0"])
    assert scores.outcomes == [Outcome.SCORED]
    assert scores.values.shape == (1, 0)


def test_huge_grades_do_not_overflow_exponential_gain() -> None:
    assert value({"a:0": 5_000, "b:0": 1}, ["b:0", "a:0"], "ndcg_exp@2") == pytest.approx(
        1 / math.log2(3)
    )


def test_a_measure_deeper_than_k_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match=r"recall@10: deeper than the rankings, which are cut to 5"
    ):
        ask(Judged({"a:0": 1}), ["a:0"], "hit@5", "recall@10")


def test_a_k_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        ask(Judged({"a:0": 1}), ["a:0"], k=0)


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="relevance_threshold is 0"):
        ask(Judged({"a:0": 1}), ["a:0"], "hit@5", threshold=0)


def test_a_result_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score(
            [Judged({"a:0": 1}), Judged({"a:0": 1})],
            [ranked(["a:0"])],
            k=1,
            level=Level.CHUNK,
            measures=[],
            live=Everything(),
        )


@pytest.mark.parametrize("level", list(Level))
def test_a_ranking_without_a_score_for_each_key_is_refused(level: Level) -> None:
    with pytest.raises(ValueError, match="2 keys has 1 scores: a retriever must return one score"):
        score(
            [Judged({"a:0": 1})],
            [Ranking(["a:0", "b:0"], [1.0])],
            k=1,
            level=level,
            measures=[],
            live=Everything(),
        )
