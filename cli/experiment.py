"""Experiments as a table, in one sentence, and as a record: candidates against a baseline."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table

from cli.output import Column, table
from pipeline.experiment import LEVEL, Difference, Experiment, Row


def experiment_record(experiment: Experiment) -> dict[str, Any]:
    """Return everything that was found, at full precision; the first row is the baseline."""
    return {
        "questions": experiment.n,
        "measure": experiment.measure,
        "level": LEVEL,
        "baseline": experiment.rows[0].name,
        "best": experiment.best,
        "rows": [_record(row) for row in experiment.rows],
    }


def experiment_tables(experiment: Experiment) -> Group:
    """Return the table of the measure that decides and, below it, other measures and facts.

    Both fit 80 columns while there are few other measures and facts.
    """
    deciding, others = _deciding(experiment), _others(experiment)
    return Group(deciding) if others is None else Group(deciding, "", others)


def conclusion(experiment: Experiment) -> str:
    """Say in one line whether something is better than the baseline, and by how much."""
    baseline, measure = experiment.rows[0], experiment.measure
    leader = max(experiment.rows, key=lambda row: row.means[measure])
    if experiment.best is not None:
        lead = leader.differences[measure]
        return (
            f"{leader.name} is better than {baseline.name}: {measure} {lead.mean:+.4f}"
            f" ({_interval(lead)}) over {experiment.n} questions"
        )
    if leader is baseline:
        return f"nothing is better than {baseline.name} over these {experiment.n} questions"
    lead = leader.differences[measure]
    return (
        f"{leader.name} leads {baseline.name} by {lead.mean:+.4f} {measure}, but over"
        f" {experiment.n} questions that may be luck ({_interval(lead)})"
    )


def _record(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "means": dict(row.means),
        "differences": {measure: asdict(each) for measure, each in row.differences.items()},
        "facts": dict(row.facts),
    }


def _deciding(experiment: Experiment) -> Table:
    measure = experiment.measure
    figures = (measure, "difference", f"{100 * LEVEL:.0f} % interval", "p", "better", "worse")
    columns = [Column("", wrap=True), *(Column(name, right=True) for name in figures)]
    return table(
        f"{experiment.n} questions, held against {experiment.rows[0].name}",
        columns,
        [[_name(row, experiment), *_cells(row, measure)] for row in experiment.rows],
    )


def _cells(row: Row, measure: str) -> list[object]:
    mean = f"{row.means[measure]:.4f}"
    difference = row.differences.get(measure)
    if difference is None:
        return [mean, None, None, None, None, None]
    return [
        mean, f"{difference.mean:+.4f}", _interval(difference), f"{difference.p:.2g}",
        difference.better, difference.worse,
    ]  # fmt: skip


def _others(experiment: Experiment) -> Table | None:
    """Return what does not decide; None where there is nothing else."""
    first = experiment.rows[0]
    measures = [measure for measure in first.means if measure != experiment.measure]
    facts = list(dict.fromkeys(name for row in experiment.rows for name in row.facts))
    if not (measures or facts):
        return None
    columns = [Column("", wrap=True), *(Column(each, right=True) for each in [*measures, *facts])]
    return table(
        None,
        columns,
        [[_name(row, experiment), *_other_cells(row, measures, facts)] for row in experiment.rows],
    )


def _other_cells(row: Row, measures: Sequence[str], facts: Sequence[str]) -> list[object]:
    return [
        *(f"{row.means[measure]:.4f}" for measure in measures),
        *(row.facts.get(name) for name in facts),
    ]


def _name(row: Row, experiment: Experiment) -> str:
    return f"{row.name} *" if row.name == experiment.best else row.name


def _interval(difference: Difference) -> str:
    low, high = difference.interval
    return f"{low:+.4f} to {high:+.4f}"
