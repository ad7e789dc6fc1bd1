"""`recallwatch runs trend`: how a metric went from run to run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from cli.chart import ASCII, BLOCKS, Bar, chart, room
from cli.context import Context, pass_context
from cli.lazy import examples
from cli.output import one_line, print_json
from cli.report import STYLES, verdict_name
from cli.servers import open_servers
from db import baselines, runs
from db.baselines import Pinned
from db.models import Run
from db.runs import RunContext
from pipeline.errors import UsageError
from pipeline.scoring import CONVENTION, NAMES, Measure
from pipeline.types import Level, RunStatus, Verdict

SYMBOLS = {
    Verdict.BASELINE: "b",
    Verdict.OK: ".",
    Verdict.WATCH: "w",
    Verdict.IMPROVED: "+",
    Verdict.REGRESSED: "R",
    Verdict.INCOMPARABLE: "?",
    Verdict.UNMEASURED: "x",
}
"""Marks a run's verdict where there are no colours."""

CANCELLED = "c"
"""Marks a run that somebody cancelled, whose verdict is unmeasured too."""


@dataclass(frozen=True, slots=True)
class Series:
    """Runs that may be compared, oldest first, and the baseline pinned among them."""

    metric: str
    found: Sequence[RunContext]
    baseline: Run | None

    @property
    def last(self) -> RunContext:
        """The newest run."""
        return self.found[-1]

    def value(self, run: Run) -> float | None:
        """Return the metric of a run; None when it was not measured."""
        if run.verdict == Verdict.UNMEASURED or run.metrics is None:
            return None
        return run.metrics.get(self.metric)


@click.command(
    epilog=examples(
        "recallwatch runs trend",
        "recallwatch runs trend --metric recall@3 --strategy hybrid --last 52",
        "recallwatch runs trend --metric ndcg --set faq --json",
    )
)
@click.option(
    "--metric",
    default="recall",
    show_default=True,
    metavar="NAME",
    help="A metric at each run's k, as recall, or at a cutoff, as recall@3.",
)
@click.option("--set", "set_name", metavar="NAME", help="Only this golden set.")
@click.option("-s", "--strategy", metavar="NAME", help="Only this strategy.")
@click.option("-k", "--k", type=click.IntRange(1), help="Only runs at this k.")
@click.option("--level", type=click.Choice([level.value for level in Level]), help="Only these.")
@click.option("--last", type=click.IntRange(1), default=20, show_default=True, metavar="N",
              help="Runs of each strategy.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def trend(
    context: Context,
    metric: str,
    set_name: str | None,
    strategy: str | None,
    k: int | None,
    level: str | None,
    last: int,
    as_json: bool,
) -> None:
    """Chart a metric over the last runs of each strategy, with each run's verdict.

    Runs at another k or level, or of another golden set, make a chart of their own. A run that
    could not be measured is a gap.
    """
    _check(metric)
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = runs.series(
            session, set_name=set_name, strategy=strategy, k=k, level=level, last=last
        )
        drawn = [*_series(metric, found, baselines.pinned(session))]
    if found and not any(each.value(one.run) is not None for each in drawn for one in each.found):
        raise UsageError(f"no run has a {metric}; {_there_are(found)}")
    if as_json:
        print_json([_record(each) for each in drawn])
    elif not drawn:
        context.console.print("no finished runs yet")
    else:
        _print(context.console, drawn)


def _check(metric: str) -> None:
    """Raise UsageError for a metric that no run can have."""
    try:
        Measure.parse(metric if "@" in metric else f"{metric}@1")
    except ValueError:
        known = ", ".join(NAMES)
        raise UsageError(
            f"unknown metric {metric!r}; the metrics are {known}, also at a cutoff, as recall@3"
        ) from None


def _there_are(found: Sequence[RunContext]) -> str:
    names = sorted({name for each in found for name in each.run.metrics or {}}, key=Measure.parse)
    return f"there are {', '.join(names)}" if names else "none of them was measured"


def _series(
    metric: str, found: Sequence[RunContext], pins: Sequence[Pinned]
) -> Iterator[Series]:  # fmt: skip
    pinned = {_place(pin.baseline.set_name, pin.run): pin.run for pin in pins}
    by_place = groupby(found, key=lambda each: _place(each.version.set_name, each.run))
    for place, members in by_place:
        runs_of = list(members)
        name = metric if "@" in metric else f"{metric}@{runs_of[0].run.k}"
        yield Series(name, runs_of, pinned.get(place))


def _place(set_name: str, run: Run) -> tuple[object, ...]:
    """Return what runs of one series have in common; see `db.runs.series`."""
    return (set_name, run.strategy, run.k, run.level, run.relevance_threshold, run.convention)


def _record(series: Series) -> dict[str, Any]:
    run, baseline = series.last.run, series.baseline
    return {
        "set": series.last.version.set_name,
        "strategy": run.strategy,
        "k": run.k,
        "level": run.level,
        "relevance_threshold": run.relevance_threshold,
        "convention": run.convention,
        "metric": series.metric,
        "baseline": baseline and {"run": baseline.id, "value": series.value(baseline)},
        "runs": [
            {"id": one.run.id, "created_at": one.run.created_at, "verdict": one.run.verdict,
             "status": one.run.status, "value": series.value(one.run)}
            for one in series.found
        ],
    }  # fmt: skip


def _print(console: Console, drawn: Sequence[Series]) -> None:
    for number, each in enumerate(drawn):
        if number:
            console.print()
        for line in _lines(each, console):
            console.print(line, soft_wrap=True)
    seen = {_symbol(one.run): verdict_name(one.run) for each in drawn for one in each.found}
    marks = [*SYMBOLS.values(), CANCELLED]
    console.print()
    console.print("  ".join(f"{mark} {seen[mark]}" for mark in marks if mark in seen))


def _lines(series: Series, console: Console) -> Iterator[Text]:
    yield Text(_heading(series), style="bold")
    glyphs = BLOCKS if BLOCKS.fit(console.encoding) else ASCII
    shown = series.found[-room(console.width) :]
    bars = [_bar(series, one.run) for one in shown]
    mark = None if series.baseline is None else series.value(series.baseline)
    if any(bar.value is not None for bar in bars):
        yield from chart(bars, mark, width=console.width, glyphs=glyphs)
    first, last = (f"run {one.run.id}, {one.run.created_at.astimezone():%Y-%m-%d}"
                   for one in (shown[0], shown[-1]))  # fmt: skip
    yield Text(first if len(shown) == 1 else f"{first}, to {last}")
    if mark is not None and series.baseline is not None:
        yield Text(f"{glyphs.line}{glyphs.line} baseline, run {series.baseline.id}: {mark:.4f}")


def _heading(series: Series) -> str:
    run = series.last.run
    values = [value for one in series.found if (value := series.value(one.run)) is not None]
    ends = f", {min(values):.4f} to {max(values):.4f}" if values else ": never measured"
    threshold = f", threshold {run.relevance_threshold}" if run.relevance_threshold > 1 else ""
    convention = f", {run.convention}" if run.convention != CONVENTION else ""
    at = "" if series.metric.endswith(f"@{run.k}") else f", k {run.k}"
    place = f"{one_line(series.last.version.set_name)} / {run.strategy}: {series.metric}"
    return f"{place}{at}, {run.level}s{threshold}{convention}{ends}"


def _bar(series: Series, run: Run) -> Bar:
    return Bar(series.value(run), _symbol(run), STYLES[_verdict(run)])


def _symbol(run: Run) -> str:
    return CANCELLED if run.status == RunStatus.CANCELLED else SYMBOLS[_verdict(run)]


def _verdict(run: Run) -> Verdict:
    return Verdict(run.verdict or Verdict.UNMEASURED)
