"""Read TREC files: judgments, runs, and the figures that trec_eval prints."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

Judgments = dict[str, dict[str, int]]
Rankings = dict[str, list[str]]
Figures = dict[tuple[str, str], str]


def read_qrels(path: Path) -> Judgments:
    """Return topic -> document -> grade."""
    qrels: Judgments = defaultdict(dict)
    for topic, _iteration, document, grade, *_ in _rows(path):
        qrels[topic][document] = int(grade)
    return qrels


def read_run(path: Path) -> Rankings:
    """Return topic -> documents in trec_eval's order: score descending, then name descending.

    trec_eval ignores the rank column, keeps scores in single precision, and anything after the
    sixth column of a line is junk.
    """
    scored: dict[str, list[tuple[np.float32, str]]] = defaultdict(list)
    for topic, _iteration, document, _rank, similarity, *_ in _rows(path):
        scored[topic].append((np.float32(similarity), document))
    return {
        topic: [document for _, document in sorted(rows, reverse=True)]
        for topic, rows in scored.items()
    }


def read_figures(path: Path) -> Figures:
    """Return (measure, topic or "all") -> the figure as printed."""
    return {(measure, topic): figure for measure, topic, figure, *_ in _rows(path)}


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the columns of each line that has any; some files use tabs, some blanks."""
    for line in path.read_text(encoding="utf-8").splitlines():
        columns = line.split()
        if columns:
            yield columns
