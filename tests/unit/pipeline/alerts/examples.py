"""Alerts to render and to send."""

from typing import Any

from hypothesis import strategies as st

from pipeline.alerts.message import Alert, LostQuestion, Severity, WiderSearch
from pipeline.types import AlertKind, Level, Verdict
from pipeline.verdict.compare import CategoryChange, Change, ExactComparison
from pipeline.verdict.gate import Cause, Finding, Rule

NOISE = Finding(
    rule=Rule.NOISE,
    verdict=Verdict.REGRESSED,
    text="net 12 of 400 questions lost (15 lost, 3 won): more than noise, p = 0.0002",
    reference=38,
    figures={"n": 400, "net_lost": 12},
)
BLIND = Finding(
    rule=Rule.BLIND_SPOT,
    verdict=Verdict.OK,
    text="cannot see drops under 3.0 points with 400 questions and this noise (80 % power)",
    counts=False,
    reference=38,
)
INDEX = Finding(
    rule=Rule.INDEX,
    verdict=Verdict.OK,
    text="index loss 3.1 -> 6.0 points of recall",
    counts=False,
    reference=38,
)
EXACT = ExactComparison(
    shared=400,
    changes=[Change("recall@5", current=0.94, previous=0.941)],
    lost=1,
    won=1,
    loss_now=0.06,
    loss_before=0.031,
    missed_now=24,
    missed_before=12,
)

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
    "cause": Cause.INDEX,
    "reasons": (NOISE.text, BLIND.text, INDEX.text),
    "findings": (NOISE, BLIND, INDEX),
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
    "exact": EXACT,
    "ef_search": WiderSearch(now=40, now_ms=0.84, wider=160, wider_ms=2.1, loss=0.008),
    "categories": (
        CategoryChange("billing", "recall@5", -0.25, 40),
        CategoryChange("login", "recall@5", -0.05, 1),
    ),
    "lost_questions": (
        LostQuestion("How do I cancel?", "https://docs.example.org/cancel:3", None),
        LostQuestion("Where is my invoice?", "invoices:0", 14),
    ),
    "corpus": ("chunks 1,000 -> 1,200", "vectors changed"),
    "setup": ("strategy.ef_search 100 -> 40",),
    "expected_keys": 500,
    "missing_keys": 2,
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

any_finding = st.builds(
    Finding,
    rule=st.sampled_from(Rule),
    verdict=st.sampled_from(Verdict),
    text=any_text,
    counts=st.booleans(),
    reference=st.none() | st.integers(1),
    figures=st.dictionaries(st.sampled_from(["n", "p"]), figures),
)

any_exact = st.builds(
    ExactComparison,
    shared=st.integers(0, 10**6),
    changes=st.lists(any_change, max_size=3),
    lost=st.integers(0, 10**6),
    won=st.integers(0, 10**6),
    loss_now=figures,
    loss_before=figures,
    missed_now=st.integers(0, 10**6),
    missed_before=st.integers(0, 10**6),
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
    cause=st.none() | st.sampled_from(Cause),
    findings=st.lists(any_finding, max_size=8).map(tuple),
    exact=st.none() | any_exact,
    ef_search=st.none()
    | st.builds(
        WiderSearch,
        now=st.integers(1, 1000),
        now_ms=figures,
        wider=st.integers(1, 1000),
        wider_ms=figures,
        loss=figures,
    ),
    reasons=st.lists(any_text, max_size=8).map(tuple),
    changes=st.lists(any_change, max_size=30).map(tuple),
    lost=st.integers(0),
    won=st.integers(0),
    shared=st.none() | st.integers(0),
    n_scored=st.none() | st.integers(0),
    size=st.integers(0),
    categories=st.lists(
        st.builds(CategoryChange, any_text, any_text, st.floats(-1, 0), st.integers(1)), max_size=5
    ).map(tuple),
    lost_questions=st.lists(
        st.builds(LostQuestion, any_text, any_text, st.none() | st.integers(1)), max_size=5
    ).map(tuple),
    corpus=st.lists(any_text, max_size=4).map(tuple),
    setup=st.lists(any_text, max_size=4).map(tuple),
    reproduce=st.none() | any_text,
    link=st.none() | st.from_regex(r"https?://[!-~]{1,300}", fullmatch=True),
    git_sha=st.none() | any_text,
)
