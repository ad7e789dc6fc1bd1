"""A finished run as a section of Markdown, for a CI job's summary."""

from collections.abc import Iterable, Iterator
from typing import Any

from cli.evidence import Evidence
from cli.markdown import changes_table, plain, question_list, table
from cli.notes import comparison_notes, exact_notes, fact_notes, source_notes
from cli.output import Column, one_line
from cli.report import CAUSES, HEADLINE, mixes_sources, verdict_name
from db.models import Run
from pipeline.alerts.compose import eval_line
from pipeline.errors import RecallwatchError
from pipeline.types import Level
from pipeline.verdict.compare import Change, Comparison
from pipeline.verdict.gate import Cause, Finding

REASON_WIDTH = 500
"""Characters of what a rule said, or of a name."""

WORST_CATEGORIES = 10


def section(evidence: Evidence) -> str:
    """Return everything that a reviewer asks of a run: verdict, figures, questions, command."""
    run = evidence.found.run
    parts = (
        _heading(evidence),
        _findings(evidence),
        _metrics(evidence),
        _sources(run),
        _notes(run),
        *(_compared(run, name, values) for name, values in evidence.comparisons),
        _lost(evidence),
        _again(evidence),
    )
    return "".join("\n".join([*part, "", ""]) for part in map(list, parts) if part)


def failed_section(error: RecallwatchError) -> str:
    """Return what there is to say of an evaluation that came to no verdict."""
    said = (plain(line, REASON_WIDTH) for line in str(error).splitlines())
    return "\n\n".join(["## recallwatch: no verdict", *said, ""])


def _heading(evidence: Evidence) -> Iterator[str]:
    found, run = evidence.found, evidence.found.run
    cause = f" ({CAUSES[Cause(run.cause)]})" if run.cause else ""
    yield f"## {plain(evidence.subject, REASON_WIDTH)}: {verdict_name(run)}{cause}"
    yield ""
    scored = "" if run.n_scored is None else f", scored {run.n_scored}/{run.size}"
    failed = f", failed {run.n_failed}" if run.n_failed else ""
    ineligible = f", ineligible {run.n_ineligible}" if run.n_ineligible else ""
    commit = f", commit {plain(run.git_sha[:10])}" if run.git_sha else ""
    yield (
        f"run {run.id}, k {run.k}, {run.level}s, golden version {found.version.id}"
        f"{scored}{failed}{ineligible}{commit}"
    )


def _findings(evidence: Evidence) -> list[str]:
    rows = [[each.rule, _answer(each), plain(each.text, REASON_WIDTH)]
            for each in evidence.findings]  # fmt: skip
    return table(["rule", "verdict", "what it says"], rows)


def _answer(finding: Finding) -> str:
    if finding.warning:
        return "warning"
    return f"**{finding.verdict}**" if finding.counts else "note"


def _metrics(evidence: Evidence) -> list[str]:
    """Return the run's own means, where no comparison shows them."""
    run, metrics = evidence.found.run, evidence.found.run.metrics or {}
    if evidence.comparisons:
        return []
    names = [f"{name}@{run.k}" for name in HEADLINE]
    rows = [[name, f"{metrics[name]:.4f}"] for name in names if name in metrics]
    return table(["metric", Column(f"run {run.id}", right=True)], rows) if rows else []


def _sources(run: Run) -> list[str]:
    """Return the means of each source, where questions of several are in the run's own."""
    if not mixes_sources(run):
        return []
    names = [f"{name}@{run.k}" for name in HEADLINE if f"{name}@{run.k}" in run.measures]
    rows = [
        [source, values["scored"], *(_mean(values["metrics"].get(name)) for name in names)]
        for source, values in sorted((run.by_source or {}).items())
    ]
    return table(["source", *(Column(name, right=True) for name in ("scored", *names))], rows)


def _mean(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _notes(run: Run) -> list[str]:
    """Return what exact search finds beside the index, and what else a reader should know."""
    return _items([*exact_notes(run), *fact_notes(run), *source_notes(run)])


def _items(notes: Iterable[str]) -> list[str]:
    return [f"- {plain(note, REASON_WIDTH)}" for note in notes]


def _compared(run: Run, name: str, values: dict[str, Any]) -> Iterator[str]:
    found = Comparison.from_json(values)
    yield f"### Against {name}"
    yield ""
    yield from _items(comparison_notes(name, values))
    if found.changes:
        yield ""
        yield from changes_table(run, found)
    yield from _exact(run, found)
    yield from _categories(found)


def _exact(run: Run, found: Comparison) -> Iterator[str]:
    """Say whether texts and vectors changed, or only the index: exact search has no index."""
    exact = found.exact
    if exact is None or not exact.shared:
        return
    loss = Change("index loss", exact.loss_now, exact.loss_before)
    rows = [
        [f"exact {change.metric}", *_moved(change)]
        for change in exact.changes
        if change.metric == f"recall@{run.k}"
    ]
    rows.append(["index loss (exact less served recall)", *_moved(loss)])
    names = (f"run {found.reference}", f"run {run.id}", "difference")
    figures = (Column(name, right=True) for name in names)
    yield ""
    yield from table([f"of {exact.shared} questions", *figures], rows)


def _moved(change: Change) -> list[str]:
    return [f"{change.previous:.4f}", f"{change.current:.4f}", f"{change.difference:+.4f}"]


def _categories(found: Comparison) -> Iterator[str]:
    fell = [each for each in found.categories if each.difference < 0]
    if not fell:
        return
    worst = sorted(fell, key=lambda each: (each.difference, each.name))[:WORST_CATEGORIES]
    rows = [[plain(each.name), each.metric, f"{each.difference:+.4f}", each.n] for each in worst]
    right = (Column("difference", right=True), Column("shared questions", right=True))
    yield ""
    yield from table(["category", "metric", *right], rows)


def _lost(evidence: Evidence) -> list[str]:
    if not evidence.lost:
        return []
    return ["### Worst lost questions", "",
            *question_list("lost", evidence.lost, evidence.found.run.k)]  # fmt: skip


def _again(evidence: Evidence) -> list[str]:
    run = evidence.found.run
    level = Level(run.level)
    return [
        "```sh",
        one_line(eval_line(evidence.found.version.set_name, run.strategy, run.k, level)),
        f"recallwatch runs show {run.id} --lost --failures",
        "```",
    ]
