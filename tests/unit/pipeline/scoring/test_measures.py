"""Measures as named values: written, read, ordered, listed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.scoring import NAMES, Measure, measures_for

KNOWN = (*NAMES, "ndcg_exp")


@given(st.sampled_from(KNOWN), st.integers(1, 10_000))
def test_a_measure_reads_back_as_it_was_written(name: str, k: int) -> None:
    assert Measure.parse(str(Measure(name, k))) == Measure(name, k)


def test_a_measure_is_written_with_its_cutoff() -> None:
    assert str(Measure("recall", 5)) == "recall@5"


def test_measures_sort_by_name_then_by_cutoff_as_a_number() -> None:
    texts = ["recall@10", "recall@5", "hit@100"]
    assert [str(m) for m in sorted(map(Measure.parse, texts))] == [
        "hit@100",
        "recall@5",
        "recall@10",
    ]


@pytest.mark.parametrize("text", ["recal@5", "ndcgexp@3"])
def test_an_unknown_name_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(ValueError, match=", ".join(KNOWN)):
        Measure.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "recall",
        "recall@",
        "@5",
        "recall@0",
        "recall@05",
        "recall@-1",
        "recall@5 ",
        "recall@\u0665",
    ],
)
def test_what_is_no_name_with_a_cutoff_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="like recall@5; known names are hit"):
        Measure.parse(text)


def test_a_cutoff_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="recall has the cutoff 0: it must be 1 or more"):
        Measure("recall", 0)


def test_a_run_records_each_measure_at_each_cutoff_up_to_k() -> None:
    listed = [str(measure) for measure in measures_for(5, (1, 3, 5, 10))]
    assert listed == [
        *("hit@1", "hit@3", "hit@5"),
        *("recall@1", "recall@3", "recall@5"),
        *("precision@1", "precision@3", "precision@5"),
        *("mrr@1", "mrr@3", "mrr@5"),
        *("map@1", "map@3", "map@5"),
        *("ndcg@1", "ndcg@3", "ndcg@5"),
        *("judged@5", "duplicates@5"),
    ]


def test_k_is_recorded_also_when_it_is_no_cutoff() -> None:
    assert {measure.k for measure in measures_for(7, (1, 10))} == {1, 7}


def test_cutoffs_are_recorded_ascending_and_once() -> None:
    cutoffs = [measure.k for measure in measures_for(10, (5, 1, 5, 3)) if measure.name == "hit"]
    assert cutoffs == [1, 3, 5, 10]


def test_exponential_ndcg_is_recorded_on_request_after_ndcg() -> None:
    names = list(dict.fromkeys(m.name for m in measures_for(3, (1,), exponential=True)))
    assert names == [
        "hit",
        "recall",
        "precision",
        "mrr",
        "map",
        "ndcg",
        "ndcg_exp",
        "judged",
        "duplicates",
    ]


@pytest.mark.parametrize(("k", "cutoffs"), [(0, (1,)), (5, (0, 1)), (-3, ())])
def test_a_run_without_a_positive_cutoff_is_refused(k: int, cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        measures_for(k, cutoffs)
