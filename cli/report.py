"""Runs as a person reads them: tables, failures, verdicts."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.output import Column, one_line, table
from cli.records import live_expected
from db.models import Run
from db.runs import RunContext
from pipeline.types import Level, Verdict
from pipeline.verdict.compare import Change

STYLES = {
    Verdict.REGRESSED: "bold red",
    Verdict.UNMEASURED: "bold yellow",
    Verdict.INCOMPARABLE: "yellow",
    Verdict.IMPROVED: "bold green",
    Verdict.OK: "green",
    Verdict.BASELINE: "cyan",
}

HEADLINE = ("hit", "recall", "precision", "mrr", "map", "ndcg")
QUESTION_WIDTH = 90

WIDER = "*"
"""Marks a rank that only a search wider than the served one gives."""


def verdict_text(run: Run) -> Text:
    """Return a run's verdict in its colour, or its status while it has none."""
    if run.verdict is None:
        return Text(run.status, style="dim")
    return Text(run.verdict, style=STYLES[Verdict(run.verdict)])


def print_run(console: Console, found: RunContext, *, cutoffs: bool = False) -> None:
    """Print a run's heading, its metrics beside the reference's, its counts and its reasons."""
    run = found.run
    set_name = f"{found.version.set_name} v{found.version.id}"
    heading = f"run {run.id}: {run.strategy}, k={run.k}, {run.level}s, {set_name}: "
    console.print(Text.assemble((one_line(heading) + " ", "bold"), verdict_text(run)))
    if run.metrics:
        console.print(Padding(_metrics(run, cutoffs=cutoffs), (0, 0, 0, 2), expand=False))
    _print_notes(console, run)


def _metrics(run: Run, *, cutoffs: bool) -> Table:
    """Metric, current, previous, difference; the last two over the shared questions."""
    metrics, comparison = run.metrics or {}, run.comparison or {}
    changes = {change["metric"]: change for change in comparison.get("changes", [])}
    partial = bool(changes) and comparison["pairing"]["shared"] != run.n_scored
    columns: list[str | Column] = ["metric", Column("current", right=True)]
    columns += [Column("on shared", right=True)] if partial else []
    if changes:
        columns += [Column("previous", right=True), Column("difference", right=True)]
        columns += [Column("95 % interval", right=True), Column("p", right=True)]
    return table(None, columns, [
        _metric_row(name, metrics[name], changes.get(name), partial=partial)[:len(columns)]
        for name in _shown(run, cutoffs=cutoffs) if name in metrics
    ])  # fmt: skip


def _metric_row(
    name: str, value: float, change: dict[str, Any] | None, *, partial: bool
) -> list[object]:
    if change is None:
        return [name, f"{value:.4f}", *([None] if partial else []), None, None, None, None]
    shared = [f"{change['current']:.4f}"] if partial else []
    difference = change["difference"]
    # Rounding is for display; a change too small to show is none to a reader.
    style = "" if abs(difference) < 5e-5 else "red" if difference < 0 else "green"  # noqa: PLR2004
    return [
        name, f"{value:.4f}", *shared, f"{change['previous']:.4f}",
        Text(f"{difference:+.4f}", style=style), *statistics(Change.from_json(change)),
    ]  # fmt: skip


def statistics(change: Change) -> list[object]:
    """Return interval and p-value to three digits, which the metrics below k do not have."""
    if change.interval is None or change.p is None:
        return [None, None]
    low, high = change.interval
    p = "<.001" if change.p < 0.001 else f"{change.p:.3f}"  # noqa: PLR2004 - the last digit shown
    return [f"{low:+.3f} {high:+.3f}", p]


def _shown(run: Run, *, cutoffs: bool) -> Sequence[str]:
    return run.measures if cutoffs else [f"{name}@{run.k}" for name in HEADLINE]


def _print_notes(console: Console, run: Run) -> None:
    if run.n_scored is not None:
        counts = f"scored {run.n_scored}/{run.size}"
        counts += f", failed {run.n_failed}" if run.n_failed else ""
        counts += f", ineligible {run.n_ineligible}" if run.n_ineligible else ""
        _print_note(console, counts)
    for note in [*(run.reasons or []), *_comparison_notes(run), *_fact_notes(run)]:
        _print_note(console, note)


def _print_note(console: Console, note: str) -> None:
    """Print a line that, where it is too long, goes on under its own beginning."""
    console.print(Padding(Text(one_line(note)), (0, 0, 0, 2), expand=False))


def _comparison_notes(run: Run) -> Iterable[str]:
    if run.comparison:
        yield from _against(f"run {run.compared_to}", run.comparison)
    if run.baseline_comparison:
        yield from _against(f"the baseline, run {run.baseline_run}", run.baseline_comparison)


def _against(reference: str, comparison: dict[str, Any]) -> Iterable[str]:
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
    if comparison["corpus"]:
        yield f"corpus since then: {', '.join(comparison['corpus'])}"


def _fact_notes(run: Run) -> Iterable[str]:
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
    if facts.get("underfilled"):
        yield (
            f"{facts['underfilled']:.0f} questions got fewer than k results though the corpus has"
            " more: raise ef_search, or set iterative_scan"
        )
    if facts.get("unanswerable"):
        yield _unanswerable(facts)


def _unanswerable(facts: dict[str, Any]) -> str:
    said = f"{facts['unanswerable']} unanswerable questions"
    if facts["unanswerable_best_score"] is None or facts["scored_best_score"] is None:
        return said
    return (
        f"{said}: mean best score {facts['unanswerable_best_score']:.3f}, of scored ones"
        f" {facts['scored_best_score']:.3f}"
    )


def misses_table(run: Run, rows: Iterable[Any], *, title: str) -> Table:
    """Return question, expected, got, and the rank at which an expected key was found deeper."""
    columns: list[str | Column] = [
        Column("question", wrap=True),
        Column("expected", wrap=True, max_width=22),
        Column("got", wrap=True, max_width=22),
        Column("found at", right=True),
    ]
    cells = [_miss(run, row) for row in rows]
    return with_note(table(title, columns, cells), wider_note([c[-1] for c in cells], run.k))


def deeper(rank: int | None, k: int) -> object:
    """Return at which rank a miss was found, marked where only a wider search gives that rank."""
    return f"{rank}{WIDER}" if rank and rank <= k else rank


def wider_note(ranks: Iterable[object], k: int) -> str | None:
    """Return what the marked ones of the ranks mean; None: none is marked."""
    marked = any(str(rank).endswith(WIDER) for rank in ranks)
    return f"{WIDER} a wider search finds it within {k}: the index missed it" if marked else None


def with_note(listed: Table, note: str | None) -> Table:
    """Put a note under a table."""
    listed.caption, listed.caption_justify = note, "left"
    return listed


def _miss(run: Run, row: Any) -> list[object]:  # noqa: ANN401 - a row of db.results
    expected = live_expected(row.expected, row.missing, Level(run.level))
    best = sorted(expected, key=lambda key: (-expected[key], key))
    return [
        shorten(row.text),
        _few(best),
        row.error if row.outcome == "failed" else _few(row.retrieved),
        deeper(row.first_rank, run.k),
    ]


def _few(keys: Sequence[str]) -> str:
    """Return the first key and how many more there are."""
    if not keys:
        return "nothing"
    more = f" +{len(keys) - 1}" if len(keys) > 1 else ""
    return f"{keys[0]}{more}"


def shorten(text: str, width: int = QUESTION_WIDTH) -> str:
    """Return a question on one line, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def groups_table(run: Run, name: str, groups: dict[str, Any]) -> Table:
    """Return the headline metrics for each category or tenant."""
    metrics = [f"{metric}@{run.k}" for metric in ("hit", "recall", "mrr", "ndcg")]
    columns: list[str | Column] = [
        name,
        Column("n/N", right=True),
        *(Column(m, right=True) for m in metrics),
    ]
    rows = []
    for group, values in sorted(groups.items()):
        total = values["scored"] + values["failed"] + values["ineligible"]
        means = [values["metrics"].get(metric) for metric in metrics]
        shown = [None if mean is None else f"{mean:.4f}" for mean in means]
        rows.append([group, f"{values['scored']}/{total}", *shown])
    return table(None, columns, rows)
