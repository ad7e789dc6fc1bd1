"""Comparisons as hypothesis draws them: means of whole questions, so that drops are exact."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pipeline.verdict.compare import CategoryChange, Change, Comparison, ExactComparison, Pairing
from pipeline.verdict.gate import Gate, Judgement
from pipeline.verdict.own_rules import Own
from pipeline.verdict.rules import Against, judge

METRICS = ("hit@5", "recall@5", "precision@5", "mrr@5", "map@5", "ndcg@5")

PERCENT = st.integers(0, 100)
MEANS = PERCENT.map(lambda percent: percent / 100)
"""With two decimals: a drop is then exactly `max_drop` often, which a float misses by an ulp."""


def comparison(
    *changes: Change,
    shared: int = 100,
    new: int = 0,
    changed: int = 0,
    gone: int = 0,
    lost: int = 0,
    won: int = 0,
    exact: ExactComparison | None = None,
    categories: Sequence[CategoryChange] = (),
    setup: Sequence[str] = (),
) -> Comparison:
    """Return a comparison with run 7; hits moved as `lost` and `won` say."""
    if not any(change.metric == "hit@5" for change in changes):
        before = lost / shared if shared else 0.0
        now = won / shared if shared else 0.0
        changes = (*changes, Change("hit@5", now, before))
    pairing = Pairing(shared=shared, new=new, changed=changed, gone=gone, relived=0, unscored=0)
    return Comparison(
        reference=7,
        pairing=pairing,
        changes=changes,
        lost=lost,
        won=won,
        corpus=["chunks 1 -> 2"],
        exact=exact,
        categories=categories,
        setup=setup,
    )


OWN = Own(scored=100, failed=0, ineligible=0, metrics={})


def gate(
    max_drop: float = 0.02,
    metrics: Sequence[str] = ("recall@5", "ndcg@5"),
    **changes: Any,  # noqa: ANN401 - any field of the gate
) -> Gate:
    """Return a gate of the plain rule alone, unless `changes` say otherwise."""
    values: dict[str, Any] = {
        "rule": "threshold", "outcome": "hit@5", "alpha": 0.001, "watch_alpha": 0.05,
        "tolerance": 0.05, "max_drop": max_drop, "metrics": metrics, "floor": {},
        "category_max_drop": None, "category_min": 20, "must_pass": True, "min_shared": 0.5,
        "max_failed": 0.01, "max_ineligible": 0.5,
    }  # fmt: skip
    return Gate(**(values | changes))


def judged(gate: Gate, last: Comparison | None, pinned: Comparison | None = None) -> Judgement:
    """Judge a run of which nothing else is known."""
    sides = [None if each is None else Against(each) for each in (last, pinned)]
    return judge(gate, OWN, *sides)


@st.composite
def changes(draw: st.DrawFn) -> list[Change]:
    """Draw a change of every metric."""
    return [Change(metric, draw(MEANS), draw(MEANS)) for metric in METRICS]


def gates(max_drop: st.SearchStrategy[float] = MEANS) -> st.SearchStrategy[Gate]:
    some_metrics = st.lists(st.sampled_from(METRICS), min_size=1, unique=True)
    return st.builds(gate, max_drop, some_metrics)


def any_change() -> st.SearchStrategy[Change]:
    """Draw a change with or without its statistics."""
    interval = st.tuples(st.floats(-1, 1), st.floats(-1, 1))
    return st.builds(
        Change,
        st.sampled_from(METRICS),
        MEANS,
        MEANS,
        interval=st.none() | interval,
        p=st.none() | MEANS,
    )
