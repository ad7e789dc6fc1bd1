"""What is said of a run under its table, a line each: counts, findings, comparisons, warnings."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from db.models import Batch, Run
from pipeline.embedding.pricing import dollars
from pipeline.types import Source, Verdict

SPOKE = {
    Verdict.REGRESSED: "red",
    Verdict.UNMEASURED: "yellow",
    Verdict.INCOMPARABLE: "yellow",
    Verdict.WATCH: "yellow",
    Verdict.IMPROVED: "green",
}


@dataclass(frozen=True, slots=True)
class Note:
    """A line, and the style of its text."""

    text: str
    style: str = ""


def run_notes(run: Run) -> Iterator[Note]:
    """Yield what is to be said of a run, what its verdict hangs on first."""
    if run.n_scored is not None:
        yield Note(_counts(run))
    yield from map(_finding, run.findings or [])
    yield from map(Note, exact_notes(run))
    yield from map(Note, _compared(run))
    yield from map(Note, fact_notes(run))
    yield from map(Note, latency_notes(run.latency or {}))
    yield from map(Note, source_notes(run))


def cost_notes(batch: Batch) -> Iterator[Note]:
    """Yield what the vectors of a run's batch cost, where they were not free."""
    if batch.spent:
        cap = "" if batch.max_cost is None else f" of at most {dollars(batch.max_cost)}"
        yield Note(f"embedding cost {dollars(batch.spent)}{cap}, for all runs of batch {batch.id}")


def _counts(run: Run) -> str:
    counts = f"scored {run.n_scored}/{run.size}"
    counts += f", failed {run.n_failed}" if run.n_failed else ""
    return counts + (f", ineligible {run.n_ineligible}" if run.n_ineligible else "")


def _finding(finding: dict[str, Any]) -> Note:
    """Colour what made the verdict, mark what warns, and dim what is only shown beside."""
    if finding["warning"]:
        return Note(f"warning: {finding['text']}", "yellow")
    if not finding["counts"]:
        return Note(finding["text"], "dim")
    return Note(finding["text"], SPOKE.get(Verdict(finding["verdict"]), ""))


_NOT_APART = "exact search failed, so index and corpus are not told apart"

_NO_TIME = "; nothing wider was tried in time"

WIDEST = 1000
"""The widest ef_search that there is."""


def exact_notes(run: Run) -> Iterable[str]:
    """Say what exact search finds beside the index, and what would bring the index nearer."""
    exact = run.exact
    if not exact:
        return
    if exact["error"]:
        part = "a part of exact search failed" if exact["n"] else _NOT_APART
        yield f"{part}: {exact['error']}"
    if not exact["n"]:
        return
    name = f"recall@{run.k}"
    sample = f" (sample of {exact['n']:,} of {exact['of']:,})" if exact["sampled"] else ""
    yield (
        f"{name} served {exact['served'][name]:.4f}, by exact search"
        f" {exact['metrics'][name]:.4f}: index loss {100 * exact['index_loss']:.1f} points{sample}"
    )
    yield from _ladder(exact["ef_search"])


def _ladder(looked: dict[str, Any] | None) -> Iterable[str]:
    """Say which ef_search would bring the index loss under a point, and its price."""
    if not looked or len(looked["ladder"]) < 2:  # noqa: PLR2004 - nothing wider was tried
        return
    first, last = looked["ladder"][0], looked["ladder"][-1]
    cost = f"{last['ms']:.1f} ms a question, now {first['ms']:.1f}"
    if looked["suggested"] is not None:
        yield f"ef_search {looked['suggested']} would bring it under a point ({cost})"
    else:
        loss = f"{100 * last['loss']:.1f} points"
        tried_all = last["ef_search"] >= WIDEST
        then = ": rebuild the index with a larger m or ef_construction" if tried_all else _NO_TIME
        yield f"ef_search {last['ef_search']} still loses {loss} ({cost}){then}"


def _compared(run: Run) -> Iterable[str]:
    if run.comparison:
        yield from comparison_notes(f"run {run.compared_to}", run.comparison)
    if run.baseline_comparison:
        yield from comparison_notes(
            f"the baseline, run {run.baseline_run}", run.baseline_comparison
        )


def comparison_notes(reference: str, comparison: dict[str, Any]) -> Iterable[str]:
    """Say what a comparison rests on, and what else changed since then."""
    pairing = comparison["pairing"]
    said = [f"{pairing['shared']} shared"]
    names = {"relived": "with other live keys", "unscored": "not scored in both"}
    said += [
        f"{pairing[part]} {names.get(part, part)}"
        for part in ("new", "changed", "gone", "relived", "unscored")
        if pairing[part]
    ]
    hits = f"hits lost {comparison['lost']}, won {comparison['won']}"
    yield f"compared to {reference}: {', '.join(said)}; {hits}"
    if comparison.get("setup"):
        yield f"settings since then: {', '.join(comparison['setup'])}"
    if comparison["corpus"]:
        yield f"corpus since then: {', '.join(comparison['corpus'])}"


def fact_notes(run: Run) -> Iterable[str]:
    """Say what a reader should know beside the means."""
    facts = run.facts or {}
    if facts.get("missing_keys"):
        yield (
            f"{facts['missing_keys']} expected keys are not in the corpus; {facts['partly_live']}"
            " scored questions lack some of theirs"
        )
    if facts.get("more_expected_than_k"):
        yield (
            f"{facts['more_expected_than_k']} questions expect more than {run.k} keys: their"
            f" recall@{run.k} cannot reach 1"
        )
    if facts.get("empty"):
        yield f"{facts['empty']} questions got no result at all (scored 0)"
    yield from map(_underfilled, facts.get("underfilled") or ())
    if facts.get("unknown_keys"):
        yield (
            f"{facts['unknown_keys']:.0f} results are not in the corpus: are their keys spelled"
            " document_id:chunk_index, and is it the same corpus?"
        )
    if facts.get("unanswerable"):
        yield _unanswerable(facts)


def _underfilled(found: dict[str, Any]) -> str:
    stage = f" from {found['stage']}" if found["stage"] else ""
    return (
        f"{found['questions']} questions got fewer results{stage} than the corpus has for them:"
        f" {found['cause']}"
    )


PERCENTILES = ("p50", "p95", "p99")


def latency_notes(latency: dict[str, Any]) -> Iterable[str]:
    """Say how long a search takes by itself, and took before."""
    now, before = latency.get("search_ms"), latency.get("search_ms_before")
    if now:
        was = (
            f"; before {', '.join(f'{before[name]:.1f}' for name in PERCENTILES)}" if before else ""
        )
        took = ", ".join(f"{name} {now[name]:.1f}" for name in PERCENTILES)
        yield f"one search {took} ms{was}"
        yield f"timed by the worker, {now['n']:.0f} one by one, embedding not counted"


def source_notes(run: Run) -> Iterable[str]:
    """Say so where nobody asked any of the questions: their figures tell of made ones alone."""
    if list(run.by_source or {}) == [Source.SYNTHETIC]:
        yield "all questions are synthetic: add some that people asked before you trust the level"


def _unanswerable(facts: dict[str, Any]) -> str:
    said = f"{facts['unanswerable']} unanswerable questions"
    if facts["unanswerable_best_score"] is None or facts["scored_best_score"] is None:
        return said
    return (
        f"{said}: mean best score {facts['unanswerable_best_score']:.3f}, of scored ones"
        f" {facts['scored_best_score']:.3f}"
    )
