"""The rules that turn a run and its comparison into a verdict, each with its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from pipeline.types import Verdict
from pipeline.verdict.compare import Change, Comparison

TOLERANCE = 1e-9
"""Differences of means are floating-point sums: a drop of exactly `max_drop` passes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """When a run counts as regressed; `metrics` are names at a cutoff, as recall@5."""

    max_drop: float
    metrics: Sequence[str]
    min_shared: float
    max_failed: float

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `dataclasses.asdict` wrote into the run record."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and, in one line each, the rules that spoke."""

    verdict: Verdict
    reasons: Sequence[str]


def measured(gate: Gate, *, scored: int, failed: int, ineligible: int) -> Judgement | None:
    """Return UNMEASURED when the run says nothing about retrieval, else None.

    Too many failures are an infrastructure fault; no scored question is no measurement.
    """
    asked = scored + failed
    if asked and failed / asked > gate.max_failed:
        reason = (
            f"{failed} of {asked} questions failed ({failed / asked:.1%}; max_failed is"
            f" {gate.max_failed:.1%})"
        )
        return Judgement(Verdict.UNMEASURED, [reason])
    if scored == 0:
        reason = f"no question could be scored: {ineligible} ineligible, {failed} failed"
        return Judgement(Verdict.UNMEASURED, [reason])
    return None


def judge(gate: Gate, last: Comparison | None, pinned: Comparison | None = None) -> Judgement:
    """Judge a measured run against the last one and, where a person pinned one, the baseline.

    The worse of the two verdicts stands: small drops that pass one after the other against the
    run before add up against the baseline.
    """
    if last is None and pinned is None:
        reason = "first measured run of this set, strategy, k and level"
        return Judgement(Verdict.BASELINE, [reason])
    answers = [] if last is None else [_against(gate, last)]
    if pinned is not None:
        answer = _against(gate, pinned)
        answers.append(
            replace(answer, reasons=[f"against the baseline: {said}" for said in answer.reasons])
        )
    worst = min(answers, key=lambda answer: SEVERITY.index(answer.verdict))
    return replace(worst, reasons=[said for answer in answers for said in answer.reasons])


SEVERITY = (Verdict.REGRESSED, Verdict.INCOMPARABLE, Verdict.OK, Verdict.IMPROVED)
"""The verdicts of a comparison, worst first."""


def _against(gate: Gate, comparison: Comparison) -> Judgement:
    """Judge against one reference: the field's plain threshold rule.

    Regressed when any of the gate's metrics fell by more than `max_drop` over the shared
    questions; improved when one rose by more than that and none fell so far.
    """
    pairing = comparison.pairing
    if pairing.shared == 0 or pairing.share < gate.min_shared:
        reason = (
            f"only {pairing.shared} questions ({pairing.share:.0%}) can be paired with run"
            f" {comparison.reference} (min_shared is {gate.min_shared:.0%})"
        )
        return Judgement(Verdict.INCOMPARABLE, [reason])
    changes = [comparison.change(metric) for metric in gate.metrics]
    fell = [c for c in changes if c.difference < -(gate.max_drop + TOLERANCE)]
    if fell:
        return Judgement(Verdict.REGRESSED, [_drop(c, comparison, gate) for c in fell])
    rose = [c for c in changes if c.difference > gate.max_drop + TOLERANCE]
    if rose:
        return Judgement(Verdict.IMPROVED, [_rise(c, comparison) for c in rose])
    return Judgement(Verdict.OK, [_within(changes, comparison, gate)])


def _drop(change: Change, comparison: Comparison, gate: Gate) -> str:
    return f"{_moved('fell', change, comparison)}, more than max_drop {gate.max_drop:g}"


def _rise(change: Change, comparison: Comparison) -> str:
    return _moved("rose", change, comparison)


def _moved(verb: str, change: Change, comparison: Comparison) -> str:
    return (
        f"{change.metric} {verb} from {change.previous:.4f} to {change.current:.4f}"
        f" ({change.difference:+.4f}) over {comparison.pairing.shared} shared questions"
    )


def _within(changes: Sequence[Change], comparison: Comparison, gate: Gate) -> str:
    worst = min(changes, key=lambda change: change.difference)
    return (
        f"largest change {worst.metric} {worst.difference:+.4f} over"
        f" {comparison.pairing.shared} shared questions, within max_drop {gate.max_drop:g}"
    )
