"""Runs as a person reads them: tables, failures, verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.notes import cost_notes, run_notes
from cli.output import Column, one_line, table
from cli.records import live_expected
from db.models import Run
from db.runs import RunContext
from pipeline.types import Level, RunStatus, Verdict
from pipeline.verdict.compare import Change
from pipeline.verdict.gate import Cause

STYLES = {
    Verdict.REGRESSED: "bold red",
    Verdict.UNMEASURED: "bold yellow",
    Verdict.INCOMPARABLE: "yellow",
    Verdict.IMPROVED: "bold green",
    Verdict.WATCH: "bold yellow",
    Verdict.OK: "green",
    Verdict.BASELINE: "cyan",
}

CAUSES = {
    Cause.CORPUS: "corpus: texts or vectors",
    Cause.INDEX: "index only",
    Cause.BOTH: "corpus and index",
}

HEADLINE = ("hit", "recall", "precision", "mrr", "map", "ndcg")
QUESTION_WIDTH = 90

FOUND_AT = 3
"""The place of that column among those of misses."""

WIDER = "*"
"""Marks a rank that only a search wider than the served one gives."""


def verdict_name(run: Run) -> str:
    """Return a run's verdict as people read it: one that somebody cancelled is "cancelled"."""
    return run.status if run.status == RunStatus.CANCELLED else run.verdict or run.status


def verdict_text(run: Run) -> Text:
    """Return a run's verdict in its colour, or its status while it has none."""
    style = "dim" if run.verdict is None else STYLES[Verdict(run.verdict)]
    return Text(verdict_name(run), style=style)


def print_run(console: Console, found: RunContext, *, cutoffs: bool = False) -> None:
    """Print a run's heading, its metrics beside the reference's, its counts and its reasons."""
    run = found.run
    set_name = f"{found.version.set_name} v{found.version.id}"
    heading = f"run {run.id}: {run.strategy}, k={run.k}, {run.level}s, {set_name}: "
    console.print(Text.assemble((one_line(heading) + " ", "bold"), verdict_text(run), _cause(run)))
    if run.metrics:
        console.print(Padding(_metrics(run, cutoffs=cutoffs), (0, 0, 0, 2), expand=False))
    if mixes_sources(run):
        shown = groups_table(run, "source", run.by_source or {})
        console.print(Padding(shown, (1, 0, 1, 2), expand=False))
    for note in (*run_notes(run), *cost_notes(found.batch)):
        # Where it is too long, it goes on under its own beginning.
        text = Text(one_line(note.text), style=note.style)
        console.print(Padding(text, (0, 0, 0, 2), expand=False))


def _cause(run: Run) -> str:
    """Return what a regression comes from, where exact search tells."""
    return f" ({CAUSES[Cause(run.cause)]})" if run.cause else ""


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


def misses_table(run: Run, rows: Iterable[Any], *, title: str) -> Table:
    """Return question, expected, got, and the rank at which an expected key was found deeper."""
    columns: list[str | Column] = [
        Column("question", wrap=True),
        Column("expected", wrap=True, max_width=22),
        Column("got", wrap=True, max_width=22),
        Column("found at", right=True),
    ]
    listed = list(rows)
    staged = any(getattr(row, "first_in_stages", None) for row in listed)
    columns += [Column("in stages", wrap=True, max_width=18)] if staged else []
    cells = [_miss(run, row) for row in listed]
    shown = [cell if staged else cell[: FOUND_AT + 1] for cell in cells]
    note = wider_note([cell[FOUND_AT] for cell in cells], run.k)
    return with_note(table(title, columns, shown), note)


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
        _stages(getattr(row, "first_in_stages", None)),
    ]


def _stages(ranks: Mapping[str, int | None] | None) -> str | None:
    """Say at which rank each stage had an expected key: where it was lost."""
    if not ranks:
        return None
    return ", ".join(f"{stage} {rank or 'none'}" for stage, rank in sorted(ranks.items()))


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


def mixes_sources(run: Run) -> bool:
    """Tell whether a run's means blend questions of several sources, as people's and made ones."""
    return len(run.by_source or {}) > 1


_COMPARED = {"category": "categories", "tenant": "tenants", "source": "sources"}


def groups_table(run: Run, name: str, groups: dict[str, Any]) -> Table:
    """Return the headline metrics for each category, tenant or source.

    And how much the metric that the gate goes by moved on the questions shared with the reference.
    """
    metrics = [f"{metric}@{run.k}" for metric in ("hit", "recall", "mrr", "ndcg")]
    moved = {each["name"]: each for each in (run.comparison or {}).get(_COMPARED[name], ())}
    columns: list[str | Column] = [
        name,
        Column("n/N", right=True),
        *(Column(m, right=True) for m in metrics),
    ]
    if moved:
        compared = next(iter(moved.values()))["metric"]
        columns.append(Column(f"{compared.partition('@')[0]} moved", right=True))
    rows = []
    for group, values in sorted(groups.items()):
        total = values["scored"] + values["failed"] + values["ineligible"]
        means = [values["metrics"].get(metric) for metric in metrics]
        shown = [None if mean is None else f"{mean:.4f}" for mean in means]
        since = [f"{moved[group]['difference']:+.4f}" if group in moved else None]
        rows.append([group, f"{values['scored']}/{total}", *shown, *(since if moved else ())])
    return table(None, columns, rows)
