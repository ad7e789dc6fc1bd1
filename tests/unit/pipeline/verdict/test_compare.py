import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.verdict.compare import (
    CategoryChange,
    Change,
    Comparison,
    ExactComparison,
    Pairing,
    corpus_changes,
    setup_changes,
)
from pipeline.verdict.resampling import Differences, with_statistics
from tests.unit.pipeline.verdict.strategies import any_change, comparison

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
    assert stored["changes"][:1] == [
        {
            "metric": "recall@5", "current": 0.5, "previous": 0.75, "interval": None, "p": None,
            "difference": -0.25,
        }
    ]  # fmt: skip
    assert stored["corpus"] == ["chunks 1 -> 2"]


@given(changes=st.lists(any_change()), counts=st.tuples(*[COUNTS] * 8))
def test_a_comparison_comes_back_from_the_record_as_it_was(
    changes: list[Change], counts: tuple[int, ...]
) -> None:
    pairing = Pairing(*counts[:6])
    made = Comparison(
        7, pairing, changes, lost=counts[6], won=counts[7], corpus=["vectors changed"],
        setup=("strategy.ef_search 40 -> 20",),
        categories=(CategoryChange("billing", "recall@5", -0.25, 4),),
        exact=ExactComparison(
            shared=3, changes=changes, lost=1, won=0, loss_now=0.5, loss_before=0.25, missed_now=2,
            missed_before=1,
        ),
    )  # fmt: skip

    assert Comparison.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_a_change_of_a_record_from_before_intervals_can_be_read() -> None:
    old = {"metric": "recall@5", "current": 0.5, "previous": 0.75, "difference": -0.25}

    assert Change.from_json(old) == Change("recall@5", 0.5, 0.75)


STEPS, CHANCES = [-1.0, -0.5, 0.0, 0.5, 1.0], [0.1, 0.1, 0.7, 0.05, 0.05]
RAW = np.random.default_rng(5).choice(STEPS, size=300, p=CHANCES)


def test_interval_and_p_are_scipys_on_the_same_differences() -> None:
    known = with_statistics(Change("recall@5", 0.5, 0.75), Differences.from_raw(RAW), seed=1)

    interval = stats.bootstrap(
        (RAW,), np.mean, method="percentile", n_resamples=10_000, batch=500,
        rng=np.random.default_rng(9),
    ).confidence_interval  # fmt: skip
    p = stats.permutation_test(
        (RAW,), np.mean, permutation_type="samples", vectorized=True, n_resamples=10_000,
        batch=500, rng=np.random.default_rng(9),
    ).pvalue  # fmt: skip
    assert known.interval == pytest.approx(interval, abs=0.005)
    assert known.p == pytest.approx(p, abs=0.005)
    assert (known.metric, known.current, known.previous) == ("recall@5", 0.5, 0.75)


def test_the_same_seed_gives_the_same_statistics_and_another_seed_others() -> None:
    change, differences = Change("recall@5", 0.5, 0.75), Differences.from_raw(RAW)

    one, again, other = (with_statistics(change, differences, seed) for seed in (1, 1, 2))

    assert one == again
    assert one.interval != other.interval


def test_where_every_question_moved_alike_the_interval_is_that_difference() -> None:
    known = with_statistics(
        Change("recall@5", 0.5, 0.75), Differences.from_raw([-0.25] * 4), seed=1
    )

    assert known.interval == (-0.25, -0.25)
    assert known.p == pytest.approx(2 / 2**4)


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


BY_COSINE = "hnsw (v vector_cosine_ops)"


def index(file: str = "1", options: str = "") -> dict[str, str]:
    statement = f"CREATE INDEX i ON docs USING {BY_COSINE}{options}"
    return {"name": "i", "method": "hnsw", "definition": statement, "file": file}


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (index(), index(), []),
        (None, None, []),
        (index(file="2"), index(), ["index rebuilt"]),
        (index(), None, ["index i created"]),
        (None, index(), ["index i dropped"]),
        (
            index(file="2", options=" WITH (m='32')"),
            index(),
            [f"index options changed: {BY_COSINE} -> {BY_COSINE} WITH (m='32')"],
        ),
    ],
)
def test_what_became_of_the_vector_index_is_said(
    now: dict[str, str] | None, before: dict[str, str] | None, said: list[str]
) -> None:
    unread = {"texts": None, "vectors": None}

    assert corpus_changes(corpus(**unread, index=now), corpus(**unread, index=before)) == said


def test_an_index_that_an_old_run_did_not_record_is_not_spoken_of() -> None:
    unread = {"texts": None, "vectors": None}

    assert corpus_changes(corpus(**unread, index=index()), corpus(**unread)) == []


def test_settings_that_differ_are_named_with_both_values() -> None:
    before = {"strategy": {"kind": "vector", "ef_search": 40}, "embedding_model": "a"}
    now = {"strategy": {"kind": "vector", "ef_search": 20, "exact": True}, "embedding_model": "b"}

    assert setup_changes(now, before) == [
        "embedding_model a -> b",
        "strategy.ef_search 40 -> 20",
        "strategy.exact unset -> True",
    ]
    assert setup_changes(now, now) == []


def test_of_strategies_of_two_kinds_only_that_is_said() -> None:
    vector = {"strategy": {"kind": "vector", "ef_search": 40}, "embedding_model": "a"}
    hybrid = {"strategy": {"kind": "hybrid", "rrf_k": 60}, "embedding_model": "b"}
    assert setup_changes(hybrid, vector) == ["strategy vector -> hybrid", "embedding_model a -> b"]
    assert setup_changes(hybrid, hybrid) == []
