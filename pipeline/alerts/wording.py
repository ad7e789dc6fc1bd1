"""What an alert says, in words, for every channel that people read.

Lines come out clean (no control characters) and single, but otherwise raw: a channel escapes them
for its own markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.alerts.message import Alert, LostQuestion
from pipeline.safe_text import clean
from pipeline.types import AlertKind
from pipeline.verdict.compare import Change

_FIRST = {
    AlertKind.REGRESSED: "retrieval regressed",
    AlertKind.UNMEASURED: "retrieval could not be measured",
    AlertKind.RECOVERED: "retrieval recovered",
    AlertKind.GOLDEN_STALE: "golden set is stale",
}
_AGAIN = {
    AlertKind.REGRESSED: "still regressed",
    AlertKind.UNMEASURED: "still unmeasured",
    AlertKind.RECOVERED: "still recovered",
    AlertKind.GOLDEN_STALE: "golden set still stale",
}

WHAT_CHANGED = "What changed"

_TEENS = range(11, 14)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A title and the lines under it; never without lines."""

    title: str
    lines: Sequence[str]


def one_line(text: str) -> str:
    """Return the text without control characters, on one line, "(blank)" where nothing is left."""
    return " ".join(clean(text).split()) or "(blank)"


def headline(alert: Alert) -> str:
    """Return "support / vector: retrieval regressed", or "...: still regressed, 3rd run"."""
    names = [alert.set_name] if alert.strategy is None else [alert.set_name, alert.strategy]
    subject = " / ".join(map(one_line, names))
    if alert.repeat == 1:
        return f"{subject}: {_FIRST[alert.kind]}"
    return f"{subject}: {_AGAIN[alert.kind]}, {ordinal(alert.repeat)} run"


def summary(alert: Alert) -> str:
    """Return the headline with the metric that moved worst: all that a repeated alert says."""
    changes = changes_at_k(alert)
    if not changes:
        return headline(alert)
    return f"{headline(alert)}; {moved(min(changes, key=lambda change: change.difference))}"


def changes_at_k(alert: Alert) -> Sequence[Change]:
    """Return the changes at the run's own k; all of them where none is named so."""
    at_k = [change for change in alert.changes if change.metric.endswith(f"@{alert.k}")]
    return at_k or alert.changes


def paragraphs(alert: Alert) -> list[Paragraph]:
    """Return the body of a full message, without the command and the link."""
    why = "How sure" if alert.changes else "Why"
    drops = [
        f"{one_line(c.name)}: {c.difference:+.4f} ({c.n} {_questions(c.n)})"
        for c in alert.categories
    ]
    found = (
        (WHAT_CHANGED, [moved(change) for change in changes_at_k(alert)]),
        (why, [*map(one_line, alert.reasons), *_statistics(alert), *_counts(alert)]),
        ("By category", drops),
        ("Worst lost questions", [_lost(question) for question in alert.lost_questions]),
        ("Corpus", [one_line(line) for line in alert.corpus]),
    )
    return [Paragraph(title, lines) for title, lines in found if lines]


def footer(alert: Alert) -> str:
    """Return "run 41 against run 38, k 5, chunk level, git 1a2b3c4, 2026-03-02 06:00 UTC"."""
    against = f" against run {alert.compared_to}" if alert.compared_to is not None else ""
    known = (
        f"run {alert.run_id}{against}" if alert.run_id is not None else None,
        f"k {alert.k}" if alert.k is not None else None,
        f"{alert.level} level" if alert.level is not None else None,
        f"git {one_line(alert.git_sha)[:10]}" if alert.git_sha else None,
        f"{datetime.fromisoformat(alert.created_at):%Y-%m-%d %H:%M %Z}",
    )
    return ", ".join(part for part in known if part)


def link_label(alert: Alert) -> str:
    """Return what the link to the run is called."""
    return "Open" if alert.run_id is None else f"Open run {alert.run_id}"


def moved(change: Change) -> str:
    """Return "recall@5 0.9100 -> 0.8800 (-0.0300)"."""
    return f"{one_line(change.metric)} {figures(change)}"


def figures(change: Change) -> str:
    """Return "0.9100 -> 0.8800 (-0.0300)"."""
    return f"{change.previous:.4f} -> {change.current:.4f} ({change.difference:+.4f})"


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th, ... 11th, ... 21st."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in _TEENS else endings.get(number % 10, "th")
    return f"{number}{ending}"


def _statistics(alert: Alert) -> list[str]:
    """Return interval and p-value of the metric that moved worst, where they were computed."""
    for change in sorted(changes_at_k(alert), key=lambda change: change.difference):
        if change.interval is not None and change.p is not None:
            low, high = change.interval
            interval = f"95 % interval {low:+.4f} to {high:+.4f}"
            return [f"{one_line(change.metric)}: {interval}, p = {change.p:.2g}"]
    return []


def _counts(alert: Alert) -> list[str]:
    """Return the questions behind the figures, as far as they are known."""
    lines = []
    if alert.shared is not None:
        lines.append(f"{alert.lost} lost and {alert.won} won of {alert.shared} shared questions")
    if alert.n_scored is not None:
        lines.append(f"{alert.n_scored} of {alert.size} questions scored")
    return lines


def _lost(question: LostQuestion) -> str:
    where = "no longer found" if question.rank is None else f"now at rank {question.rank}"
    return f"{one_line(question.text)} (expected {one_line(question.expected)}: {where})"


def _questions(n: int) -> str:
    return "question" if n == 1 else "questions"
