"""The field's plain rule: a metric may not fall by more than `max_drop`."""

from collections.abc import Sequence

from pipeline.types import Verdict
from pipeline.verdict.compare import Change, Comparison
from pipeline.verdict.gate import Finding, Gate, Rule

ROUNDING = 1e-9
"""Differences of means are floating-point sums: a drop of exactly `max_drop` passes."""


def threshold_findings(gate: Gate, comparison: Comparison, *, counts: bool) -> list[Finding]:
    """Return a finding for each metric that moved too far, or one that says how far the worst did.

    Regressed when any of the gate's metrics fell by more than `max_drop` over the shared
    questions; improved when one rose by more than that and none fell so far.
    """
    changes = [comparison.change(metric) for metric in gate.metrics]
    fell = [c for c in changes if c.difference < -(gate.max_drop + ROUNDING)]
    rose = [c for c in changes if c.difference > gate.max_drop + ROUNDING]
    if fell:
        said = [(Verdict.REGRESSED, _drop(c, comparison, gate)) for c in fell]
    elif rose:
        said = [(Verdict.IMPROVED, _moved("rose", c, comparison)) for c in rose]
    else:
        said = [(Verdict.OK, _within(changes, comparison, gate))]
    before = "" if counts else "plain rule, shown beside: "
    return [
        Finding(
            rule=Rule.THRESHOLD,
            verdict=verdict,
            text=f"{before}{text}",
            counts=counts,
            reference=comparison.reference,
            figures={"max_drop": gate.max_drop},
        )
        for verdict, text in said
    ]


def _drop(change: Change, comparison: Comparison, gate: Gate) -> str:
    return f"{_moved('fell', change, comparison)}, more than max_drop {gate.max_drop:g}"


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
