"""Runs and results as plain data, for --json and for export."""

from collections.abc import Mapping, Sequence
from typing import Any

from db.models import Run
from db.runs import RunContext
from pipeline.types import Level, document_of

Record = dict[str, Any]


def run_record(found: RunContext) -> Record:
    """Return everything that is stored of a run."""
    run = found.run
    return {
        "id": run.id,
        "batch": run.batch_id,
        "trigger": found.batch.trigger,
        "requested_by": found.batch.requested_by,
        "set": found.version.set_name,
        "version": run_version(found),
        "strategy": run.strategy,
        "k": run.k,
        "level": run.level,
        "convention": run.convention,
        "status": run.status,
        "verdict": run.verdict,
        "reasons": run.reasons,
        "findings": run.findings,
        "cause": run.cause,
        "questions": run.size,
        "scored": run.n_scored,
        "failed": run.n_failed,
        "ineligible": run.n_ineligible,
        "metrics": run.metrics,
        "by_category": run.by_category,
        "by_tenant": run.by_tenant,
        "by_source": run.by_source,
        "compared_to": run.compared_to,
        "comparison": run.comparison,
        "baseline_run": run.baseline_run,
        "baseline_comparison": run.baseline_comparison,
        "exact": run.exact,
        "facts": run.facts,
        "latency": run.latency,
        "cost": run.cost,
        "batch_spent": found.batch.spent,
        "batch_max_cost": found.batch.max_cost,
        "gate": run.gate,
        "relevance_threshold": run.relevance_threshold,
        "settings": run.settings,
        "embedding_model": run.embedding_model,
        "corpus": run.corpus_fingerprint,
        "git_sha": run.git_sha,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def run_version(found: RunContext) -> Record:
    """Return which golden version a run evaluated."""
    version = found.version
    return {"id": version.id, "fingerprint": version.fingerprint, "size": version.size}


def result_record(run: Run, row: Any) -> Record:  # noqa: ANN401 - a row of db.results.details
    """Return one question's result; `expected` holds the keys that were live, at the run's level.

    `first_rank_in_stages`: at which rank the first of them came in each stage of the strategy, None
    where in none; None in all for a strategy of one stage. `returned`: rows that came back, before
    they were cut and collapsed. Its metrics are at full precision and None where the question was
    not scored; those of exact search are None where it was not asked.
    """
    measured = row.measured or [None] * len(run.measures)
    return {
        "position": row.position,
        "id": row.external_id or str(row.question_id),
        "question": row.text,
        "tenant": row.tenant,
        "category": row.category,
        "language": row.language,
        "source": row.source,
        "kind": row.kind,
        "must_pass": row.must_pass,
        "expected": live_expected(row.expected, row.missing, Level(run.level)),
        "missing": row.missing,
        "retrieved": row.retrieved,
        "scores": row.scores,
        "outcome": row.outcome,
        "first_rank": row.first_rank,
        "first_rank_in_stages": row.first_in_stages,
        "returned": row.returned,
        "leaked": row.leaked,
        "error": row.error,
        "metrics": dict(zip(run.measures, measured, strict=True)),
        "exact_retrieved": row.exact_retrieved,
        "exact_metrics": row.exact_measured
        and dict(zip(run.measures, row.exact_measured, strict=True)),
    }


def live_expected(
    expected: Mapping[str, int], missing: Sequence[str], level: Level
) -> dict[str, int]:
    """Return what was scored against: live keys, the best grade a document at document level."""
    best: dict[str, int] = {}
    for key, grade in expected.items():
        name = document_of(key) if level is Level.DOCUMENT else key
        best[name] = max(grade, best.get(name, grade))
    return {name: grade for name, grade in best.items() if name not in set(missing)}
