"""Finished runs in a few words, as they are read back from the database."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from cli.evidence import Evidence
from db.models import Batch, GoldenVersion, Run
from db.runs import RunContext
from pipeline.types import Outcome, RunStatus, Verdict
from pipeline.verdict.compare import (
    CategoryChange,
    Change,
    Comparison,
    ExactComparison,
    Pairing,
)
from pipeline.verdict.gate import Cause, Finding, Rule

CREATED = datetime(2026, 3, 2, 6, tzinfo=UTC)

FELL = Finding(
    rule=Rule.THRESHOLD, verdict=Verdict.REGRESSED, text="recall@5 fell, 100 % sure", reference=11
)
BESIDE = Finding(
    rule=Rule.BLIND_SPOT, verdict=Verdict.OK, text="cannot see drops under 3 points", counts=False
)

EXACT = {
    "error": None, "n": 8, "of": 10, "sampled": True, "index_loss": 0.15, "ef_search": None,
    "served": {"recall@5": 0.75}, "metrics": {"recall@5": 0.9},
}  # fmt: skip


def run(verdict: Verdict = Verdict.REGRESSED, **fields: Any) -> RunContext:  # noqa: ANN401 - columns
    """Return run 12 of ten questions."""
    known = {
        "id": 12,
        "strategy": "vector",
        "k": 5,
        "level": "chunk",
        "convention": "rw-1",
        "relevance_threshold": 1,
        "measures": ["hit@5", "recall@5"],
        "gate": {"must_pass": True},
        "size": 10,
        "n_scored": 9,
        "n_failed": 1,
        "n_ineligible": 0,
        "status": RunStatus.COMPLETED,
        "metrics": {"recall@5": 0.75},
        "git_sha": "0123456789abcdef",
        "created_at": CREATED,
        "finished_at": CREATED + timedelta(seconds=90),
    }
    made = Run(**{**known, "verdict": verdict, **fields})
    return RunContext(made, Batch(id=7), GoldenVersion(id=3, set_name="faq"))


def finished(
    *findings: Finding, verdict: Verdict = Verdict.REGRESSED, **fields: Any  # noqa: ANN401 - columns
) -> Evidence:  # fmt: skip
    """Return a run with what its rules said."""
    stored = [finding.to_json() for finding in findings]
    return Evidence(run(verdict, findings=stored, **fields))


def cancelled() -> Evidence:
    """Return a run that ann cancelled before it had its record."""
    who = Finding(rule=Rule.CANCELLED, verdict=Verdict.UNMEASURED, text="cancelled by ann")
    nothing = dict.fromkeys(("n_scored", "n_failed", "n_ineligible", "metrics"))
    return finished(who, verdict=Verdict.UNMEASURED, status=RunStatus.CANCELLED, **nothing)


def compared(*, exact: bool = False) -> dict[str, Any]:
    """Return a comparison with run 11, as it is stored."""
    change = Change("recall@5", current=0.75, previous=0.875, interval=(-0.25, 0.0), p=0.0005)
    apart = ExactComparison(
        shared=8,
        changes=[Change("recall@5", current=0.9, previous=0.95)],
        lost=1,
        won=0,
        loss_now=0.15,
        loss_before=0.075,
        missed_now=2,
        missed_before=1,
    )
    found = Comparison(
        reference=11,
        pairing=Pairing(shared=8, new=1, changed=0, gone=2, relived=0, unscored=0),
        changes=[change, Change("recall@1", current=0.5, previous=0.5)],
        lost=3,
        won=1,
        corpus=["vectors changed"],
        categories=[
            CategoryChange("up", "recall@5", 0.5, 2),
            CategoryChange("down|left", "recall@5", -0.25, 4),
            CategoryChange("further", "recall@5", -0.5, 2),
        ],
        exact=apart if exact else None,
    )
    return found.to_json()


def everything() -> Evidence:
    """Return a regressed run of which all is known that can be."""
    told = finished(
        FELL, BESIDE, comparison=compared(exact=True), compared_to=11, cause=Cause.INDEX,
        exact=EXACT, facts={"empty": 2},
    )  # fmt: skip
    return Evidence(told.found, lost=[lost("Why *me*?"), lost("And?", first_rank=7)])


def lost(text: str, *, was_rank: int = 1, first_rank: int | None = None) -> SimpleNamespace:
    """Return a row of `db.comparisons.lost`."""
    return SimpleNamespace(text=text, was_rank=was_rank, first_rank=first_rank)


def must_pass(outcome: Outcome = Outcome.SCORED, **fields: Any) -> SimpleNamespace:  # noqa: ANN401 - columns
    """Return a row of `db.results.must_pass_details`, with a hit unless `measured` says else."""
    scored = outcome is Outcome.SCORED
    known = {
        "position": 0, "external_id": None, "question_id": 41, "text": "Where is it?",
        "tenant": None, "category": None, "language": None, "source": "manual",
        "kind": "answerable", "must_pass": True, "expected": {"d:0": 1}, "missing": [],
        "retrieved": ["d:0", "e:1"], "scores": [0.5, 0.25], "outcome": outcome.value,
        "first_rank": 1, "error": None, "measured": [1.0, 1.0] if scored else None,
        "exact_retrieved": None, "exact_measured": None,
    }  # fmt: skip
    staged: dict[str, Any] = {"first_in_stages": None, "returned": None, "leaked": []}
    return SimpleNamespace(**{**known, **staged, **fields})
