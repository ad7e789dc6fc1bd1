"""`recallwatch golden remap`: move keys to where the texts are that were judged."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cli.context import Context, pass_context
from cli.golden.checking import judgments_table, record
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import print_json
from cli.servers import open_servers
from pipeline.types import KeyState

SHOWN = 5
"""Questions that a warning names."""

if TYPE_CHECKING:
    from workers.remapping import Checked, Remapped


@click.command("remap", epilog=examples(
    "recallwatch golden remap",
    "recallwatch golden remap --apply",
    "recallwatch golden remap --include split --apply",
))  # fmt: skip
@set_option
@click.option("--apply", "write", is_flag=True, help="Write the new keys, as one edit.")
@click.option(
    "--include",
    multiple=True,
    type=click.Choice([KeyState.SPLIT.value, KeyState.CHANGED.value]),
    help="Write these too, after you have looked at them; repeat for both.",
)
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, metavar="N",
              help="Judgments to list.")  # fmt: skip
@json_option
@pass_context
def remap(
    context: Context,
    set_name: str | None,
    write: bool,
    include: Sequence[str],
    limit: int,
    as_json: bool,
) -> None:
    """Propose new keys for judgments whose texts moved; with --apply, write them.

    A text that stands under another key, or lies inside a larger chunk, is safe: the new chunk
    holds all that was judged. A text that was split is proposed with the share that each chunk
    holds, an edited one with the chunk that is most like it: look at these, then --include them. A
    new key keeps the grade of the old one. recallwatch golden undo takes an edit back.
    """
    from cli.person import person

    name = set_name or context.settings.eval.set
    states = [KeyState(each) for each in include]
    with open_servers(context) as opened:
        from workers import remapping

        checked = remapping.check(opened.work, name)
        done = None
        if write:
            done = remapping.remap(opened.work, name, checked, include=states, by=person())
    if as_json:
        print_json(_record(name, checked, states, done))
        return
    _say(context, checked, states, limit=limit)
    if done is not None:
        _say_written(context, done)


def _say(
    context: Context, checked: Sequence["Checked"], include: Sequence[KeyState], *, limit: int
) -> None:
    """Print what is written, then what a person has to look at."""
    moving = [each for each in checked if each.moves(include)]
    left = [each for each in checked if not each.is_live and not each.moves(include)]
    for title, some in (("new keys", moving), ("for review, or lost", left)):
        if not some:
            continue
        context.console.print(f"{title}: {len(some)} judgments")
        if limit:
            context.console.print(judgments_table(some[:limit]))
        if len(some) > limit:
            context.console.print(f"and {len(some) - limit} more; --json lists all")
    if not moving and not left:
        context.console.print("every key stands for what was judged: nothing to remap")


def _say_written(context: Context, done: "Remapped") -> None:
    _warn_of(context, done.twins, "they would be the same as another one: reject one of each")
    _warn_of(
        context, done.blocked,
        "a key with another text stands in the way: include split or changed, or edit by hand",
    )  # fmt: skip
    if done.edit_id is None:
        context.console.print("nothing was written", soft_wrap=True)
        return
    context.console.print(
        f"edit {done.edit_id}: new keys for {len(done.questions)} questions; to take it back:"
        f" recallwatch golden undo {done.edit_id}",
        soft_wrap=True,
    )


def _warn_of(context: Context, questions: Sequence[int], why: str) -> None:
    if questions:
        ids = ", ".join(map(str, questions[:SHOWN])) + ", ..." * (len(questions) > SHOWN)
        context.err.print(
            f"warning: {len(questions)} questions stay as they are, for {why} ({ids})",
            soft_wrap=True,
        )


def _record(
    name: str, checked: Sequence["Checked"], include: Sequence[KeyState], done: "Remapped | None"
) -> dict[str, object]:
    return {
        "set": name,
        "edit": None if done is None else done.edit_id,
        "questions": [] if done is None else done.questions,
        "twins": [] if done is None else done.twins,
        "blocked": [] if done is None else done.blocked,
        "new_keys": [record(each) for each in checked if each.moves(include)],
        "left": [record(each) for each in checked if not each.is_live and not each.moves(include)],
    }
