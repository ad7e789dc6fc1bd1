"""Judge a measured run: gather what it is held against and what is known of the noise."""

from dataclasses import replace

from db import baselines, calibrations, comparisons, results, runs
from db.models import Run
from db.results import Aggregate
from db.runs import RunContext
from db.session import Session
from pipeline.types import Verdict
from pipeline.verdict import estimate
from pipeline.verdict.calibration import staleness, untouched
from pipeline.verdict.compare import Comparison
from pipeline.verdict.estimate import NoiseEstimate
from pipeline.verdict.gate import Gate, Judgement
from pipeline.verdict.own_rules import Leaks, Own, leak_findings, measured
from pipeline.verdict.rules import Against, judge
from workers.exact_plan import has_index


def judge_run(session: Session, found: RunContext, aggregate: Aggregate) -> Judgement:
    """Return the verdict of a run whose counts, metrics and facts stand; note its comparisons."""
    run = found.run
    gate, own = Gate.from_json(run.gate), _own(session, found, aggregate)
    unmeasured = measured(gate, own)
    if unmeasured is not None:
        return _with_leaks(_with_example(run, unmeasured), own)
    last, pinned = _references(session, found)
    against_last = hold_against(session, found, last) if last else None
    against_pinned = hold_against(session, found, pinned) if pinned else None
    if against_last is not None:
        compared = against_last.comparison
        run.compared_to, run.comparison = compared.reference, compared.to_json()
    if against_pinned is not None:
        compared = against_pinned.comparison
        run.baseline_run, run.baseline_comparison = compared.reference, compared.to_json()
    return judge(gate, own, against_last, against_pinned)


def _own(session: Session, found: RunContext, aggregate: Aggregate) -> Own:
    run, counts = found.run, aggregate.counts
    facts = run.facts or {}
    must_pass = results.must_pass(session, run, found.version.id)
    return Own(
        scored=counts.scored,
        failed=counts.failed,
        ineligible=facts["dead"],
        unanswerable=facts["unanswerable"],
        metrics=aggregate.means,
        must_pass=must_pass.scored,
        missed=must_pass.missed,
        not_scored=must_pass.not_scored,
        leaks=Leaks(**found_leaks) if (found_leaks := facts.get("leaks")) else None,
    )


def _with_example(run: Run, judgement: Judgement) -> Judgement:
    """Add the first error to what is said of a run that could not be measured."""
    example = (run.facts or {}).get("example_error")
    if example is None:
        return judgement
    (finding,) = judgement.findings
    said = replace(finding, text=f"{finding.text}; first error: {example}")
    return replace(judgement, findings=[said])


def _with_leaks(judgement: Judgement, own: Own) -> Judgement:
    """Have leaks told of a run that could not be measured: they are the worse of the two."""
    leaks = leak_findings(own)
    if not leaks:
        return judgement
    return replace(judgement, verdict=Verdict.REGRESSED, findings=[*leaks, *judgement.findings])


def _references(session: Session, found: RunContext) -> tuple[Run | None, Run | None]:
    """Return the last run and the pinned baseline; one that is both stands once, as the last."""
    last, pinned = runs.find_reference(session, found), baselines.of(session, found)
    same = last is not None and pinned is not None and last.id == pinned.id
    return last, None if same else pinned


def hold_against(session: Session, found: RunContext, reference: Run) -> Against:
    """Compare a run with a reference, and say what is known of the noise between the two."""
    comparison = comparisons.compare(session, found.run, reference)
    return Against(comparison, noise_of(session, found, reference, comparison))


def noise_of(
    session: Session, found: RunContext, reference: Run, comparison: Comparison
) -> NoiseEstimate | None:
    """Return what is known of the noise between two runs: the best source there is, or None.

    A search without an approximate index has none. One that was neither rebuilt nor written to
    answers as it did, so that the noise of rebuilds, if that was calibrated, is not its own. Of
    any other calibration tells best, and else what the index missed before bounds it: what it
    misses now is what is judged.
    """
    run, shared = found.run, comparison.pairing.shared
    if not has_index(run) and not has_index(reference):
        return estimate.exact(shared)
    known = calibrations.find(session, run, found.version, reference)
    same = untouched(run.corpus_fingerprint, reference.corpus_fingerprint)
    if known is not None and not (same and known.reindexed):
        now = calibrations.run_conditions(run, found.version.id)
        notes = staleness(calibrations.conditions(known), now)
        return calibrations.figures(known).estimate(notes)
    if same:
        return estimate.untouched(shared)
    apart = comparison.exact
    if apart is None or apart.shared == 0:
        return None
    return estimate.from_index_loss(apart.missed_before, apart.shared, apart.loss_before)
