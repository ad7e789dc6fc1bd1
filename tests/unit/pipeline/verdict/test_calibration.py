"""Figures of A/A pairs against counting by hand, and what a calibration tells of."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verdict.calibration import (
    Conditions,
    Figures,
    Floats,
    applies,
    figures,
    staleness,
    untouched,
)
from pipeline.verdict.estimate import Source

METRICS = ("hit@5", "recall@5")

RECALLS = (0.0, 1 / 3, 0.5, 2 / 3, 1.0)

# A question in a round: its recall, or None where it was not scored.
rounds_of_recalls = st.integers(1, 12).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from((*RECALLS, None)), min_size=n, max_size=n),
        min_size=2,
        max_size=6,
    )
)


def as_round(recalls: Sequence[float | None]) -> Floats:
    rows = [(np.nan, np.nan) if r is None else (float(r > 0), r) for r in recalls]
    return np.array(rows, dtype=np.float64)


def scored_everywhere(rounds: list[list[float | None]]) -> list[int]:
    return [i for i, column in enumerate(zip(*rounds, strict=True)) if None not in column]


@given(rounds_of_recalls)
def test_flips_and_the_largest_net_are_those_counted_by_hand(
    rounds: list[list[float | None]],
) -> None:
    kept = scored_everywhere(rounds)
    if not kept:
        return
    hits = [[bool(recalls[i]) for i in kept] for recalls in rounds]

    found = figures(METRICS, [as_round(recalls) for recalls in rounds])

    flips = 0
    for before, after in itertools.pairwise(hits):
        flips += sum(was != now for was, now in zip(before, after, strict=True))
    nets = []
    for before, after in itertools.combinations(hits, 2):
        lost = sum(was and not now for was, now in zip(before, after, strict=True))
        won = sum(now and not was for was, now in zip(before, after, strict=True))
        nets.append(abs(lost - won))
    assert (found.n, found.pairs) == (len(kept), len(rounds) - 1)
    assert (found.flips, found.largest_net) == (flips, max(nets))
    assert Fraction(found.flip_rate) == min(
        Fraction(0.5), Fraction((flips + 1) / (2 * len(kept) * found.pairs))
    )


@given(rounds_of_recalls)
def test_differences_are_those_of_rounds_that_follow_each_other(
    rounds: list[list[float | None]],
) -> None:
    kept = scored_everywhere(rounds)
    if not kept:
        return

    found = figures(METRICS, [as_round(recalls) for recalls in rounds])

    by_hand: Counter[float] = Counter()
    for before, after in itertools.pairwise(rounds):
        by_hand.update(round((after[i] or 0.0) - (before[i] or 0.0), 12) for i in kept)
    assert found.differences["recall@5"] == sorted(by_hand.items())
    assert sum(count for _, count in found.differences["hit@5"]) == len(kept) * found.pairs


def test_the_largest_net_is_looked_for_between_all_rounds() -> None:
    """A slide of one question a round nets two over three rounds, though one in each pair."""
    slide = [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]

    assert figures(METRICS, [as_round(recalls) for recalls in slide]).largest_net == 2


def test_no_difference_is_written_twice_for_its_rounding_or_its_sign() -> None:
    rounds = [[0.1, 0.3, 0.5, 0.0], [0.3, 0.5, 0.5, 0.0], [0.3, 0.5, 0.5, 0.0]]

    found = figures(METRICS, [as_round(recalls) for recalls in rounds])

    assert found.differences["recall@5"] == [(0.0, 6), (0.2, 2)]
    assert str(found.differences["recall@5"][0][0]) == "0.0"


@pytest.mark.parametrize("rounds", [[[1.0]], [[1.0, None], [None, 1.0]]])
def test_one_round_or_no_question_shows_nothing(rounds: list[list[float | None]]) -> None:
    with pytest.raises(ValueError, match="show nothing"):
        figures(METRICS, [as_round(recalls) for recalls in rounds])


def test_a_million_questions_are_counted() -> None:
    rng = np.random.default_rng(0)
    first = (rng.random((1_000_000, 1)) < 0.7).astype(np.float64)
    second = first.copy()
    second[:1000] = 1 - second[:1000]

    found = figures(["hit@5"], [first, second, first])

    net = abs(int(first[:1000].sum()) - int(second[:1000].sum()))
    assert (found.n, found.flips, found.largest_net) == (1_000_000, 2000, net)


def test_the_noise_rule_gets_rate_net_and_differences() -> None:
    differences = {"hit@5": [(-1.0, 2), (0.0, 397), (1.0, 1)]}
    found = Figures(
        n=100, pairs=4, flips=3, largest_net=2, differences=differences,
        totals={"hit@5": [60.0, 62.0, 61.0, 61.0, 60.0]},
    )  # fmt: skip

    estimate = found.estimate(["golden set changed"])

    assert (estimate.source, estimate.flip_rate) == (Source.CALIBRATED, 4 / 800)
    assert (estimate.largest_net("hit@5", 100), estimate.notes) == (2, ["golden set changed"])
    deviation = estimate.deviation("hit@5", 200)
    assert deviation is not None
    sample = np.std([60, 62, 61, 61, 60], ddof=1)
    assert deviation.questions == pytest.approx(2 * np.sqrt(2) * sample)
    assert deviation.rounds == 5
    assert estimate.differences["hit@5"].values.tolist() == [-1, 0, 1]
    assert estimate.differences["hit@5"].counts.tolist() == [2, 397, 1]


VECTOR = {"name": "vector", "kind": "vector", "ef_search": 40, "exact": False}
EXACT = VECTOR | {"exact": True}
FULLTEXT = {"name": "fulltext", "kind": "fulltext", "rank": "ts_rank"}
ARMS = {"vector": 1.0, "fulltext": 1.0}
PARTS = {"vector": VECTOR, "fulltext": FULLTEXT}
HYBRID = {"name": "hybrid", "kind": "hybrid", "arms": ARMS, "parts": PARTS}
CREATED = "CREATE INDEX {} ON public.docs USING hnsw (embedding vector_cosine_ops)"
INDEX = {"name": "i", "method": "hnsw", "file": "1", "definition": CREATED.format("i")}
EMBEDDING = {"provider": "local", "model": "", "dimensions": 64, "base_url": None, "timeout": 30.0}


def measured(
    strategy: dict[str, Any] = VECTOR,
    *,
    index: dict[str, Any] | None = INDEX,
    embedding: dict[str, Any] | None = None,
    table: dict[str, Any] | None = None,
    chunks: int = 1000,
    vectors: str | None = "v",
    version: int = 1,
) -> Conditions:
    return Conditions(
        k=5,
        level="chunk",
        relevance_threshold=1,
        convention="rw-1",
        settings={
            "strategy": strategy,
            "embedding": EMBEDDING | (embedding or {}),
            "corpus": {"table": "docs", "staging": False} | (table or {}),
        },
        corpus={"chunks": chunks, "vectors": vectors, "index": index},
        version=version,
    )


REBUILT = INDEX | {"file": "2"}
WIDER = INDEX | {"definition": CREATED.format("i") + " WITH (m='32')"}
RENAMED = {"name": "j", "method": "hnsw", "file": "3", "definition": CREATED.format("j")}


@pytest.mark.parametrize("strategy", [VECTOR, EXACT, FULLTEXT, HYBRID])
@pytest.mark.parametrize("reindexed", [True, False])
def test_what_measured_the_same_thing_applies_and_is_fresh(
    strategy: dict[str, Any], reindexed: bool
) -> None:
    same = measured(strategy)

    assert applies(same, same, same.corpus, reindexed=reindexed)
    assert staleness(same, same) == []


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (replace(measured(), k=10), "other k"),
        (replace(measured(), level="document"), "other level"),
        (replace(measured(), relevance_threshold=2), "other relevance threshold"),
        (replace(measured(), convention="rw-2"), "other metric convention"),
        (measured(VECTOR | {"ef_search": 80}), "other strategy settings"),
        (measured(embedding={"model": "m"}), "other embedding model"),
        (measured(embedding={"base_url": "http://other"}), "other embedding model"),
        (measured(table={"table": "docs2"}), "other corpus table"),
        (measured(index=WIDER), "other index options"),
        (measured(index=None), "other index options"),
    ],
)
def test_other_settings_do_not_apply_and_are_named(run: Conditions, said: str) -> None:
    assert not applies(measured(), run, run.corpus, reindexed=True)
    assert staleness(measured(), run) == [said]


@pytest.mark.parametrize(
    "run",
    [
        measured(embedding={"timeout": 5.0}),
        measured(table={"staging": True}),
        measured(index=REBUILT),
        measured(index=RENAMED),
    ],
)
def test_what_decides_no_ranking_changes_nothing(run: Conditions) -> None:
    assert applies(measured(), run, measured().corpus, reindexed=True)
    assert staleness(measured(), run) == []


@pytest.mark.parametrize("strategy", [VECTOR, HYBRID])
def test_a_calibration_without_rebuilds_tells_nothing_across_one(strategy: dict[str, Any]) -> None:
    before, after = measured(strategy), measured(strategy, index=REBUILT)

    assert not applies(before, after, before.corpus, reindexed=False)
    assert applies(before, after, before.corpus, reindexed=True)
    assert applies(before, after, after.corpus, reindexed=False)


@pytest.mark.parametrize("strategy", [EXACT, FULLTEXT])
def test_a_rebuild_is_nothing_to_a_strategy_without_an_index(strategy: dict[str, Any]) -> None:
    before, after = measured(strategy), measured(strategy, index=None)

    assert applies(before, after, before.corpus, reindexed=False)


def test_another_model_is_nothing_to_full_text_search() -> None:
    run = measured(FULLTEXT, embedding={"model": "m"})

    assert applies(measured(FULLTEXT), run, run.corpus, reindexed=False)


@pytest.mark.parametrize(
    ("chunks", "stale"), [(1000, False), (1199, False), (1200, True), (801, False), (800, True)]
)
def test_a_corpus_of_another_size_by_a_fifth_makes_it_stale_but_not_useless(
    chunks: int, stale: bool
) -> None:
    run = measured(chunks=chunks)

    said = [f"corpus had 1,000 chunks, now {chunks:,}"] if stale else []
    assert staleness(measured(), run) == said
    assert applies(measured(), run, run.corpus, reindexed=True)


def test_another_golden_version_makes_it_stale_but_not_useless() -> None:
    run = measured(version=2)

    assert staleness(measured(), run) == ["golden set changed"]
    assert applies(measured(), run, run.corpus, reindexed=True)


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (measured(), True),
        (measured(index=None), False),
        (measured(index=REBUILT), False),
        (measured(vectors="w"), False),
        (measured(vectors=None), False),
    ],
)
def test_an_index_is_untouched_where_neither_it_nor_a_vector_was_written(
    now: Conditions, same: bool
) -> None:
    assert untouched(now.corpus, measured().corpus) is same


def test_vectors_that_were_hashed_in_neither_run_are_not_known_to_be_untouched() -> None:
    unread = measured(vectors=None).corpus

    assert not untouched(unread, unread)


def test_runs_from_before_the_index_was_recorded_are_of_an_unknown_index() -> None:
    old = replace(measured(), corpus={"chunks": 1000, "vectors": "v"})

    assert not applies(measured(), old, old.corpus, reindexed=True)
