"""What an alert says, in words, for every channel that people read.

Lines come out clean (no control characters) and single, but otherwise raw: a channel escapes them
for its own markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.alerts.message import Alert, LostQuestion, WiderSearch
from pipeline.safe_text import clean
from pipeline.types import AlertKind
from pipeline.verdict.compare import Change, ExactComparison, p_text
from pipeline.verdict.exact_rule import POINT
from pipeline.verdict.gate import Cause, Rule

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

_COMES_FROM = {
    Cause.CORPUS: "texts or vectors",
    Cause.INDEX: "the index",
    Cause.BOTH: "texts or vectors, and the index",
}
_CAUSES = {
    Cause.CORPUS: "texts or vectors: exact search finds less too",
    Cause.INDEX: "the index: texts and vectors find what they found, the index misses more of it",
    Cause.BOTH: "both: exact search finds less, and the index misses more of what is left",
}
_NO_INDEX = "texts or vectors: this search uses no index that could miss them"

_QUALITY = ("hit", "recall", "precision", "mrr", "map", "ndcg")
"""Metrics of which less is worse; others, as the share of duplicates, say something else."""

_SAID_APART = (Rule.EXACT, Rule.INDEX, Rule.INTERVAL, Rule.THRESHOLD)
"""Rules whose figures stand in other paragraphs."""

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
    """Return the headline, the metric that moved worst, and the cause: all a repeat says."""
    changes = changes_at_k(alert)
    worst = min(changes, key=lambda change: change.difference, default=None)
    said = (
        headline(alert),
        moved(worst) if worst else None,
        f"comes from {_COMES_FROM[alert.cause]}" if alert.cause else None,
    )
    return "; ".join(part for part in said if part)


def changes_at_k(alert: Alert) -> Sequence[Change]:
    """Return the changes of quality at the run's own k; all changes where none is named so."""
    names = [f"{name}@{alert.k}" for name in _QUALITY]
    at_k = [change for change in alert.changes if change.metric in names]
    return at_k or alert.changes


def paragraphs(alert: Alert) -> list[Paragraph]:
    """Return the body of a full message, without the command and the link."""
    why = [each.text for each in alert.spoke] if alert.findings else alert.reasons
    sure = [*_statistics(alert), *_beside(alert), *_counts(alert)]
    found = (
        (WHAT_CHANGED, [moved(change) for change in changes_at_k(alert)]),
        ("Why", [*map(one_line, why), *(() if alert.changes else sure)]),
        ("Where it comes from", _origin(alert)),
        ("How sure", sure if alert.changes else ()),
        ("By category", _drops(alert)),
        ("Worst lost questions", [_lost(question) for question in alert.lost_questions]),
        ("Changed meanwhile", [one_line(line) for line in (*alert.corpus, *alert.setup)]),
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


def command_title(alert: Alert) -> str:
    """Return what the command is good for."""
    return "To see which" if alert.kind is AlertKind.GOLDEN_STALE else "How to reproduce"


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


def _origin(alert: Alert) -> list[str]:
    """Return the cause in plain words, with recall by exact search and what the index loses."""
    lines = []
    if alert.cause is not None:
        no_index = alert.cause is Cause.CORPUS and alert.exact is None
        lines.append(_NO_INDEX if no_index else _CAUSES[alert.cause])
    if alert.exact is not None and alert.exact.shared:
        lines += _exact(alert.exact, f"recall@{alert.k}")
    if alert.ef_search is not None:
        lines.append(_wider(alert.ef_search))
    return lines


def _exact(exact: ExactComparison, metric: str) -> list[str]:
    before, now = 100 * exact.loss_before, 100 * exact.loss_now
    return [
        *(
            f"exact search: {moved(change)}, over {exact.shared} {_questions(exact.shared)}"
            for change in exact.changes
            if change.metric == metric
        ),
        f"index loss: {before:.1f} -> {now:.1f} points of recall ({now - before:+.1f})",
    ]


def _wider(search: WiderSearch) -> str:
    cost = f"{search.wider_ms:.1f} ms a question, now {search.now_ms:.1f}"
    if search.loss < POINT:
        return f"ef_search {search.wider} would bring the index loss under a point ({cost})"
    still = f"ef_search {search.wider} still loses {100 * search.loss:.1f} points ({cost})"
    return f"{still}: rebuild the index with a larger m or ef_construction"


def _statistics(alert: Alert) -> list[str]:
    """Return interval and p-value of the metric that moved worst, where they were computed."""
    for change in sorted(changes_at_k(alert), key=lambda change: change.difference):
        if change.interval is not None and change.p is not None:
            low, high = change.interval
            where = f"{low:+.4f} to {high:+.4f} (95 % interval, {p_text(change.p)})"
            return [f"with other questions of this kind {one_line(change.metric)}: {where}"]
    return []


def _beside(alert: Alert) -> list[str]:
    """Return what the rules said that did not make the verdict, the blind spot among it."""
    others = [each for each in alert.findings if each not in alert.spoke]
    # The plain rule says one thing a metric, and their figures stand above.
    plain = {
        f"the plain rule (max_drop {each.figures.get('max_drop')}) says {each.verdict}": None
        for each in others
        if each.rule is Rule.THRESHOLD
    }
    return [one_line(each.text) for each in others if each.rule not in _SAID_APART] + list(plain)


def _counts(alert: Alert) -> list[str]:
    """Return the questions behind the figures, as far as they are known."""
    lines = []
    if alert.shared is not None:
        lines.append(f"{alert.lost} lost and {alert.won} won of {alert.shared} shared questions")
    if alert.n_scored is not None:
        lines.append(f"{alert.n_scored} of {alert.size} questions scored")
    return lines


def _drops(alert: Alert) -> list[str]:
    return [
        f"{one_line(c.name)}: {one_line(c.metric)} {c.difference:+.4f} ({c.n} {_questions(c.n)})"
        for c in alert.categories
    ]


def _lost(question: LostQuestion) -> str:
    where = "no longer found" if question.rank is None else f"now at rank {question.rank}"
    return f"{one_line(question.text)} (expected {one_line(question.expected)}: {where})"


def _questions(n: int) -> str:
    return "question" if n == 1 else "questions"
