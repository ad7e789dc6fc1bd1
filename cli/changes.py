"""What changed between two runs, as cells: metrics with their statistics, ranks of questions."""

from collections.abc import Iterable
from typing import Any

from cli.report import HEADLINE, deeper, statistics
from pipeline.verdict.compare import Change


def change_rows(k: int, changes: Iterable[Change]) -> list[list[object]]:
    """Return metric, before, after, difference, interval and p-value of the headline metrics."""
    wanted = {f"{name}@{k}" for name in HEADLINE}
    return [_row(change) for change in changes if change.metric in wanted]


def _row(change: Change) -> list[object]:
    return [
        change.metric, f"{change.previous:.4f}", f"{change.current:.4f}",
        f"{change.difference:+.4f}", *statistics(change),
    ]  # fmt: skip


def ranks(name: str, row: Any, k: int) -> tuple[object, object]:  # noqa: ANN401 - a row of db.comparisons
    """Return the first expected key's rank before and after; on one side it was missed at k."""
    if name == "lost":
        return row.was_rank, deeper(row.first_rank, k)
    return deeper(row.was_rank, k), row.first_rank
