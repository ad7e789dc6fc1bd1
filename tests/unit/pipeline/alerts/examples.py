"""Alerts to render and to send."""

from typing import Any

from hypothesis import strategies as st

from pipeline.alerts.message import Alert, CategoryDrop, LostQuestion, Severity
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import Change

REGRESSED: dict[str, Any] = {
    "kind": AlertKind.REGRESSED,
    "severity": Severity.CRITICAL,
    "idempotency_id": "run-41-regressed",
    "created_at": "2026-03-02T06:00:00+00:00",
    "set_name": "support",
    "strategy": "vector",
    "k": 5,
    "level": Level.CHUNK,
    "run_id": 41,
    "compared_to": 38,
    "verdict": Verdict.REGRESSED,
    "reasons": ("recall@5 fell by more than its noise explains (12 net lost, 7 needed)",),
    "changes": (
        Change("recall@5", current=0.88, previous=0.91, interval=(-0.06, -0.001), p=0.0125),
        Change("ndcg@5", current=0.8, previous=0.8125),
        Change("recall@1", current=0.5, previous=0.6),
    ),
    "lost": 15,
    "won": 3,
    "shared": 400,
    "n_scored": 410,
    "size": 420,
    "categories": (CategoryDrop("billing", -0.25, 40), CategoryDrop("login", -0.05, 1)),
    "lost_questions": (
        LostQuestion("How do I cancel?", "https://docs.example.org/cancel:3", None),
        LostQuestion("Where is my invoice?", "invoices:0", 14),
    ),
    "corpus": ("chunks 1,000 -> 1,200", "vectors changed"),
    "reproduce": "recallwatch eval --set support --strategy vector -k 5 --level chunk",
    "link": "https://recallwatch.example.org/runs/41",
    "git_sha": "1a2b3c4d5e6f7a8b",
}


def regressed(**other: Any) -> Alert:  # noqa: ANN401 - fields of Alert
    """Return an alert in which every field holds something."""
    return Alert(**{**REGRESSED, **other})


def stale(**other: Any) -> Alert:  # noqa: ANN401 - fields of Alert
    """Return an alert without a run."""
    least = {
        "kind": AlertKind.GOLDEN_STALE,
        "severity": Severity.WARNING,
        "idempotency_id": "stale-support-9",
        "created_at": "2026-03-02T06:00:00+00:00",
        "set_name": "support",
        "reasons": ("12 of 340 expected keys are no longer in the corpus",),
    }
    return Alert(**{**least, **other})


# All that Python can hold, surrogates and control characters too, and what Slack would read.
TROUBLE = (
    *("<!channel>", "<@U012AB3CD>", "@here", "@Channel", "&", "&amp;", "<", ">", "|"),
    *("*b*", "_i_", "~s~", "`c`", "```", ":tada:", "\n", "https://example.org"),
    *("x" * 700, "\N{PARTY POPPER}" * 300, "&" * 900),
)
any_text = st.text(st.characters(exclude_categories=())) | st.lists(st.sampled_from(TROUBLE)).map(
    "".join
)

figures = st.floats(0, 1)

any_change = st.builds(
    Change,
    any_text,
    figures,
    figures,
    interval=st.none() | st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    p=st.none() | figures,
)

any_alert = st.builds(
    Alert,
    kind=st.sampled_from(AlertKind),
    severity=st.sampled_from(Severity),
    idempotency_id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}", fullmatch=True),
    created_at=st.just("2026-03-02T06:00:00+00:00"),
    set_name=any_text,
    repeat=st.sampled_from([1, 1, 2, 3, 100]),
    strategy=st.none() | any_text,
    k=st.none() | st.integers(1, 1000),
    level=st.none() | st.sampled_from(Level),
    run_id=st.none() | st.integers(1),
    compared_to=st.none() | st.integers(1),
    verdict=st.none() | st.sampled_from(Verdict),
    reasons=st.lists(any_text, max_size=8).map(tuple),
    changes=st.lists(any_change, max_size=30).map(tuple),
    lost=st.integers(0),
    won=st.integers(0),
    shared=st.none() | st.integers(0),
    n_scored=st.none() | st.integers(0),
    size=st.integers(0),
    categories=st.lists(
        st.builds(CategoryDrop, any_text, st.floats(-1, 0), st.integers(1)), max_size=5
    ).map(tuple),
    lost_questions=st.lists(
        st.builds(LostQuestion, any_text, any_text, st.none() | st.integers(1)), max_size=5
    ).map(tuple),
    corpus=st.lists(any_text, max_size=4).map(tuple),
    reproduce=st.none() | any_text,
    link=st.none() | st.from_regex(r"https?://[!-~]{1,300}", fullmatch=True),
    git_sha=st.none() | any_text,
)
