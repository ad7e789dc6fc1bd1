"""The rules that look at a run alone: could it be measured, and does it reach what it must."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pipeline.types import Verdict
from pipeline.verdict.compare import Comparison
from pipeline.verdict.gate import Finding, Gate, Judgement, Rule

ROUNDING = 1e-9
SHOWN = 3
"""Missed must-pass questions that a finding quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaks:
    """Results that are another tenant's: how many, of how many questions, and one of them.

    `tenant` is the question's own; `key` the chunk that is not.
    """

    results: int
    questions: int
    key: str
    question: str
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What is known of a run without another, in questions.

    `ineligible` counts answerable questions without a live key. `metrics` are means over the
    scored ones. `must_pass` counts those marked so and scored, `missed` are the ones among them
    without a hit at k, `not_scored` counts those that failed or have no live key. `leaks`: another
    tenant's results, where there are any.
    """

    scored: int
    failed: int
    ineligible: int
    unanswerable: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    must_pass: int = 0
    missed: Sequence[str] = ()
    not_scored: int = 0
    leaks: Leaks | None = None


def measured(gate: Gate, own: Own) -> Judgement | None:
    """Return UNMEASURED when the run says nothing about retrieval, else None.

    Too many failures are an infrastructure fault; too many questions without a live key are a
    golden set that does not fit the corpus; no scored question is no measurement.
    """
    asked = own.scored + own.failed
    answerable = asked + own.ineligible
    if asked and own.failed / asked > gate.max_failed:
        return _unmeasured(
            Rule.MAX_FAILED,
            f"{own.failed} of {asked} questions failed ({own.failed / asked:.1%}; max_failed is"
            f" {gate.max_failed:.1%})",
        )
    if answerable and own.ineligible / answerable > gate.max_ineligible:
        return _unmeasured(
            Rule.MAX_INELIGIBLE,
            f"{own.ineligible} of {answerable} answerable questions have no expected key in the"
            f" corpus ({own.ineligible / answerable:.1%}; max_ineligible is"
            f" {gate.max_ineligible:.1%}): was it re-chunked? see: recallwatch golden check",
        )
    if own.scored == 0:
        reason = (
            f"no question could be scored: {own.ineligible} without a live key,"
            f" {own.failed} failed, {own.unanswerable} unanswerable"
        )
        return _unmeasured(Rule.MAX_INELIGIBLE, reason)
    return None


def own_findings(gate: Gate, own: Own) -> list[Finding]:
    """Return a finding for each floor that is not reached, and for missed must-pass questions."""
    low = [
        Finding(
            rule=Rule.FLOOR,
            verdict=Verdict.REGRESSED,
            text=f"{metric} is {own.metrics[metric]:.4f}, under its floor {floor:g}",
            figures={"metric": metric, "value": own.metrics[metric], "floor": floor},
        )
        for metric, floor in gate.floor.items()
        if own.metrics[metric] < floor - ROUNDING
    ]
    found = leak_findings(own) + low
    return found + _must_pass(own) if gate.must_pass else found


def leak_findings(own: Own) -> list[Finding]:
    """Return a finding where results are another tenant's: no setting makes that right."""
    leaks = own.leaks
    if leaks is None:
        return []
    return [
        Finding(
            rule=Rule.LEAK,
            verdict=Verdict.REGRESSED,
            text=f"another tenant's chunks came back for {_questions(leaks.questions)}"
            f" ({leaks.results} in all): {leaks.key} for tenant {leaks.tenant}, asked"
            f" {leaks.question!r}",
            figures=asdict(leaks),
        )
    ]


def _must_pass(own: Own) -> list[Finding]:
    """Return what became of the must-pass questions; one that could not be asked is warned of."""
    unasked = Finding(
        rule=Rule.MUST_PASS,
        verdict=Verdict.OK,
        text=f"{own.not_scored} must-pass questions failed or have no expected key in the corpus",
        counts=False,
        warning=True,
        figures={"not_scored": own.not_scored},
    )
    found = [unasked] if own.not_scored else []
    if not own.missed:
        return found
    quoted = "; ".join(own.missed[:SHOWN])
    more = f"; and {len(own.missed) - SHOWN} more" if len(own.missed) > SHOWN else ""
    missed = Finding(
        rule=Rule.MUST_PASS,
        verdict=Verdict.REGRESSED,
        text=f"{len(own.missed)} of {own.must_pass} must-pass questions missed: {quoted}{more}",
        figures={"missed": len(own.missed), "of": own.must_pass},
    )
    return [missed, *found]


def _questions(n: int) -> str:
    return "1 question" if n == 1 else f"{n} questions"


def category_findings(gate: Gate, comparison: Comparison) -> list[Finding]:
    """Return a finding for each category that fell by more than it may."""
    if gate.category_max_drop is None:
        return []
    return [
        Finding(
            rule=Rule.CATEGORY,
            verdict=Verdict.REGRESSED,
            text=f"category {each.name}: {each.metric} fell by {-each.difference:.4f} over"
            f" {each.n} shared questions, more than category_max_drop {gate.category_max_drop:g}",
            reference=comparison.reference,
            figures={"category": each.name, "difference": each.difference, "n": each.n},
        )
        for each in comparison.categories
        if each.n >= gate.category_min and each.difference < -(gate.category_max_drop + ROUNDING)
    ]


def _unmeasured(rule: Rule, text: str) -> Judgement:
    finding = Finding(rule=rule, verdict=Verdict.UNMEASURED, text=text)
    return Judgement(verdict=Verdict.UNMEASURED, findings=[finding])
