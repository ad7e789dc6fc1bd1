"""From what each rule finds to the run's verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.types import Verdict
from pipeline.verdict.compare import Comparison
from pipeline.verdict.estimate import NoiseEstimate, Source
from pipeline.verdict.exact_rule import POINT, exact_findings
from pipeline.verdict.gate import Cause, Finding, Gate, Judgement, Rule
from pipeline.verdict.noise_rule import noise_findings
from pipeline.verdict.own_rules import Own, category_findings, own_findings
from pipeline.verdict.threshold_rule import threshold_findings

SEVERITY = (
    Verdict.REGRESSED,
    Verdict.INCOMPARABLE,
    Verdict.WATCH,
    Verdict.OK,
    Verdict.IMPROVED,
    Verdict.BASELINE,
)
"""The verdicts of a measured run, worst first."""

_SERVED = (Rule.NOISE, Rule.THRESHOLD, Rule.CATEGORY)


@dataclass(frozen=True, slots=True)
class Against:
    """A comparison with a reference, and the noise of it; None: nobody knows the noise."""

    comparison: Comparison
    noise: NoiseEstimate | None = None


def judge(
    gate: Gate,
    own: Own,
    last: Against | None = None,
    pinned: Against | None = None,
) -> Judgement:
    """Judge a measured run by itself, against the last one, and against the pinned baseline.

    The worst of what counts stands: small drops that pass one after the other against the run
    before add up against the baseline.
    """
    findings = list(own_findings(gate, own))
    if last is None and pinned is None:
        findings.append(_first())
    if last is not None:
        findings += against(gate, last)
    if pinned is not None:
        findings += [
            replace(each, text=f"against the baseline: {each.text}")
            for each in against(gate, pinned)
        ]
    counting = [each.verdict for each in findings if each.counts]
    worst = min(counting, key=SEVERITY.index)
    ordered = sorted(findings, key=lambda each: _order(each, worst))
    regressed = worst is Verdict.REGRESSED
    cause = _cause(findings, (last, pinned)) if regressed else None
    return Judgement(verdict=worst, findings=ordered, cause=cause)


def against(gate: Gate, reference: Against) -> list[Finding]:
    """Return what the rules say of a run against one reference."""
    comparison, noise = reference.comparison, reference.noise
    pairing = comparison.pairing
    if pairing.shared == 0 or pairing.share < gate.min_shared:
        return [_incomparable(gate, comparison)]
    by_noise = gate.rule == "noise" and noise is not None
    findings = []
    if noise is not None:
        findings += noise_findings(gate, comparison, noise, counts=by_noise)
    elif gate.rule == "noise":
        findings.append(_uncalibrated(comparison))
    findings += _interval(gate, comparison)
    if comparison.exact is not None:
        findings += exact_findings(gate, comparison.exact, comparison.reference, counts=by_noise)
    findings += threshold_findings(gate, comparison, counts=not by_noise)
    return findings + category_findings(gate, comparison)


def _first() -> Finding:
    text = "first measured run of this set, strategy, k and level"
    return Finding(rule=Rule.FIRST, verdict=Verdict.BASELINE, text=text)


def _incomparable(gate: Gate, comparison: Comparison) -> Finding:
    pairing = comparison.pairing
    return Finding(
        rule=Rule.MIN_SHARED,
        verdict=Verdict.INCOMPARABLE,
        text=(
            f"only {pairing.shared} questions ({pairing.share:.0%}) can be paired with run"
            f" {comparison.reference} (min_shared is {gate.min_shared:.0%})"
        ),
        reference=comparison.reference,
        figures={"shared": pairing.shared, "share": pairing.share},
    )


def _uncalibrated(comparison: Comparison) -> Finding:
    return Finding(
        rule=Rule.NOISE,
        verdict=Verdict.OK,
        text=(
            "uncalibrated: the index's noise is not known, so max_drop decides; run recallwatch"
            " calibrate, or let exact search run beside ([eval] exact_budget)"
        ),
        counts=False,
        warning=True,
        reference=comparison.reference,
    )


def _interval(gate: Gate, comparison: Comparison) -> list[Finding]:
    """Say whether the change would hold for other questions of this kind."""
    change = comparison.change(gate.outcome)
    if change.interval is None or change.p is None:
        return []
    low, high = change.interval
    if low == high == 0:
        return []
    holds = "would fall" if high < 0 else "would rise" if low > 0 else "could be either way"
    return [
        Finding(
            rule=Rule.INTERVAL,
            verdict=Verdict.OK,
            text=(
                f"for other questions of this kind {change.metric} {holds}: {low:+.4f} to"
                f" {high:+.4f} (95 % interval)"
            ),
            counts=False,
            reference=comparison.reference,
            figures={"low": low, "high": high, "p": change.p},
        )
    ]


def _order(finding: Finding, verdict: Verdict) -> int:
    """Put what made the verdict first, then what else counts, then what is shown beside."""
    if finding.counts and finding.verdict is verdict:
        return 0
    return 1 if finding.counts else 2


def _cause(findings: Sequence[Finding], references: Sequence[Against | None]) -> Cause | None:
    """Say where a regression comes from, by the reference against which it is one.

    Without exact search beside the index there is nothing to tell by; a search that uses no
    index can only have lost by its corpus. None too where neither is seen to be worse: a drop
    that is spread over both, or that the sample does not show.
    """
    for reference in filter(None, references):
        fell = {
            each.rule
            for each in findings
            if each.reference == reference.comparison.reference
            and each.verdict is Verdict.REGRESSED
            and (each.counts or each.rule is Rule.EXACT)
        }
        served = bool(fell.intersection(_SERVED))
        counted = any(each.rule is Rule.EXACT and each.counts for each in findings)
        if not served and not (Rule.EXACT in fell and counted):
            continue
        return _cause_of(reference, served=served, exact=Rule.EXACT in fell)
    return None


def _cause_of(reference: Against, *, served: bool, exact: bool) -> Cause | None:
    compared, noise = reference.comparison, reference.noise
    if compared.exact is None or compared.exact.shared == 0:
        sure = noise is not None and noise.source is Source.EXACT and not compared.setup
        return Cause.CORPUS if sure else None
    grew = compared.exact.loss_now - compared.exact.loss_before >= POINT
    if not exact:
        return Cause.INDEX if grew else None
    return Cause.BOTH if served and grew else Cause.CORPUS
