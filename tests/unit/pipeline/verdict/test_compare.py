import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verdict.compare import Change, Pairing, corpus_changes
from tests.unit.pipeline.verdict.strategies import comparison

COUNTS = st.integers(0, 1000)


@given(counts=st.tuples(*[COUNTS] * 6))
def test_the_share_counts_each_question_of_either_run_once(counts: tuple[int, ...]) -> None:
    pairing = Pairing(*counts)

    assert pairing.share == (pairing.shared / sum(counts) if sum(counts) else 0.0)


def test_a_change_is_found_by_its_metric() -> None:
    fell = Change("ndcg@5", 0.5, 0.75)
    both = comparison(Change("recall@5", 1, 1), fell)

    assert both.change("ndcg@5") is fell
    assert fell.difference == -0.25
    with pytest.raises(KeyError):
        both.change("mrr@5")


def test_what_a_run_stores_is_json_with_every_figure() -> None:
    stored = json.loads(json.dumps(comparison(Change("recall@5", 0.5, 0.75), gone=3).to_json()))

    assert stored["reference"] == 7
    assert stored["pairing"]["gone"] == 3
    assert stored["changes"] == [
        {"metric": "recall@5", "current": 0.5, "previous": 0.75, "difference": -0.25}
    ]
    assert stored["corpus"] == ["chunks 1 -> 2"]


def corpus(**changes: object) -> dict[str, object]:
    facts = {"chunks": 1000, "embedded": 1000, "dimension": 64, "texts": "a", "vectors": "b"}
    return facts | changes


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (corpus(), ["chunk texts unchanged", "vectors unchanged"]),
        (corpus(vectors="c"), ["chunk texts unchanged", "vectors changed"]),
        (corpus(texts="c"), ["chunk texts changed", "vectors unchanged"]),
        (
            corpus(chunks=1200, embedded=999),
            [
                "chunks 1,000 -> 1,200",
                "embedded chunks 1,000 -> 999",
                "chunk texts unchanged",
                "vectors unchanged",
            ],
        ),
        (corpus(texts=None, vectors=None), []),
    ],
)
def test_a_corpus_is_said_to_differ_where_it_does(now: dict[str, object], said: list[str]) -> None:
    assert corpus_changes(now, corpus()) == said


def test_a_part_that_the_reference_did_not_hash_is_not_spoken_of() -> None:
    assert corpus_changes(corpus(), corpus(texts=None)) == ["vectors unchanged"]
