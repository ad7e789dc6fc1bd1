"""`recallwatch golden check`: what every expected key stands for in the corpus now."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
from rich.table import Table

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.servers import open_servers
from pipeline.types import KeyState

if TYPE_CHECKING:
    from pipeline.golden.rechunking import Found
    from workers.remapping import Checked

MEANS = {
    KeyState.LIVE: "the chunk has the text that was judged",
    KeyState.CHANGED: "the text was edited",
    KeyState.MOVED: "the same text stands under another key",
    KeyState.SPLIT: "the text spans several chunks now",
    KeyState.MERGED: "the text lies inside a larger chunk",
    KeyState.LOST: "the text is not in the corpus",
}


@click.command("check", epilog=examples(
    "recallwatch golden check", "recallwatch golden check --set faq --json",
))  # fmt: skip
@set_option
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, metavar="N",
              help="Judgments that are not live to list.")  # fmt: skip
@json_option
@pass_context
def check(context: Context, set_name: str | None, limit: int, as_json: bool) -> None:
    """Look for the text of every judgment in the corpus as it is now.

    Each judgment keeps the text that it was made on, from the first eval on. The corpus is read
    only where keys are gone or stand for another text, once for each 20,000 such texts. Nothing is
    written; recallwatch golden remap moves keys to where their texts are.
    """
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened:
        from workers import remapping

        checked = remapping.check(opened.work, name)
    if as_json:
        print_json(_record(name, checked))
        return
    _say(context, name, checked, limit=limit)


def _say(context: Context, name: str, checked: Sequence["Checked"], *, limit: int) -> None:
    questions = len({each.judgment.question_id for each in checked})
    context.console.print(
        f"golden set {name}: {len(checked)} judgments of {questions} questions", soft_wrap=True
    )
    context.console.print(_counts(checked))
    dead = [each for each in checked if not each.is_live]
    if dead and limit:
        context.console.print(judgments_table(dead[:limit]))
    if len(dead) > limit:
        context.console.print(f"and {len(dead) - limit} more; --json lists all")
    if unseen := _without_evidence(checked):
        context.console.print(
            f"{unseen} judgments are known by their keys alone: the next eval keeps their texts",
            soft_wrap=True,
        )
    if dead:
        context.console.print("see: recallwatch golden remap", soft_wrap=True)


def _counts(checked: Sequence["Checked"]) -> Table:
    counts = Counter(each.found.state for each in checked)
    columns: list[str | Column] = [
        "state", Column("judgments", right=True), Column("share", right=True),
        Column("meaning", wrap=True),
    ]  # fmt: skip
    rows = [
        [state, counts[state], f"{counts[state] / len(checked):.1%}", MEANS[state]]
        for state in KeyState
    ]
    return table(None, columns, rows)


def judgments_table(checked: Iterable["Checked"]) -> Table:
    """Return a row a judgment: where its text is now."""
    columns: list[str | Column] = [
        Column("question", right=True), Column("key", wrap=True), "state", Column("now", wrap=True),
    ]  # fmt: skip
    rows = [
        [each.judgment.question_id, each.key, each.found.state, places(each.found)]
        for each in checked
    ]
    return table(None, columns, rows)


def places(found: "Found") -> str | None:
    """Return where a text is, with the shares of it where a chunk has not all."""
    if not found.places:
        return None
    shown = ", ".join(
        place.key if place.share == 1 else f"{place.key} ({place.share:.0%})"
        for place in found.places
    )
    return f"one of {shown}" if found.ambiguous else shown


def _without_evidence(checked: Sequence["Checked"]) -> int:
    return sum(each.is_live and each.judgment.judged.evidence_hash is None for each in checked)


def _record(name: str, checked: Sequence["Checked"]) -> dict[str, object]:
    counts = Counter(each.found.state for each in checked)
    return {
        "set": name,
        "judgments": len(checked),
        "states": {state: counts[state] for state in KeyState},
        "without_evidence": _without_evidence(checked),
        "not_live": [record(each) for each in checked if not each.is_live],
    }


def record(checked: "Checked") -> dict[str, object]:
    """Return a judgment as --json prints it."""
    found = checked.found
    return {
        "question": checked.judgment.question_id,
        "key": checked.key,
        "grade": checked.judgment.grade,
        "state": found.state,
        "scored": found.usable,
        "safe": found.safe,
        "places": found.places,
    }
