"""Comparisons as hypothesis draws them: means of whole questions, so that drops are exact."""

from collections.abc import Sequence

from hypothesis import strategies as st

from pipeline.verdict.compare import Change, Comparison, Pairing
from pipeline.verdict.rules import Gate

METRICS = ("hit@5", "recall@5", "precision@5", "mrr@5", "map@5", "ndcg@5")

PERCENT = st.integers(0, 100)
MEANS = PERCENT.map(lambda percent: percent / 100)
"""With two decimals: a drop is then exactly `max_drop` often, which a float misses by an ulp."""


def comparison(
    *changes: Change, shared: int = 100, new: int = 0, changed: int = 0, gone: int = 0
) -> Comparison:
    """Return a comparison with run 7."""
    pairing = Pairing(shared=shared, new=new, changed=changed, gone=gone, relived=0, unscored=0)
    return Comparison(
        reference=7, pairing=pairing, changes=changes, lost=0, won=0, corpus=["chunks 1 -> 2"]
    )


def gate(
    max_drop: float = 0.02,
    metrics: Sequence[str] = ("recall@5", "ndcg@5"),
    *,
    min_shared: float = 0.5,
    max_failed: float = 0.01,
) -> Gate:
    return Gate(max_drop=max_drop, metrics=metrics, min_shared=min_shared, max_failed=max_failed)


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
