"""`recallwatch golden review`: proposed questions, one a screen or all in a file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import print_json
from cli.person import person
from cli.servers import Opened, open_servers
from db import reviews
from pipeline.errors import InputError, UsageError
from pipeline.types import Source, Status

if TYPE_CHECKING:
    from workers.review_files import Imported


@click.command("review", epilog=examples(
    "recallwatch golden review",
    "recallwatch golden review --category how --no-search",
    "recallwatch golden review 17 18",
    "recallwatch golden review --export proposals.csv",
    "recallwatch golden review --import proposals.csv",
))  # fmt: skip
@click.argument("question_ids", metavar="[ID]...", type=int, nargs=-1)
@set_option
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status]),
    default=Status.PROPOSED.value,
    show_default=True,
    help="Review questions of this status.",
)
@click.option("--category", help="Only this category.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--source", type=click.Choice([source.value for source in Source]),
              help="Only this source.")  # fmt: skip
@click.option("--generation", type=int, metavar="ID", help="Only what this generation wrote.")
@click.option("-s", "--strategy", "strategies", multiple=True, metavar="NAME",
              help="Strategy whose answers are shown. Default: [eval] strategies.")  # fmt: skip
@click.option("--no-search", is_flag=True, help="Do not show what the strategies return.")
@click.option("--export", "exported", type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE", help="Write the questions to a CSV file instead.")  # fmt: skip
@click.option("--import", "imported", type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE", help="Take over the decisions of such a file.")  # fmt: skip
@json_option
@pass_context
def review(
    context: Context,
    question_ids: Sequence[int],
    set_name: str | None,
    status: str,
    category: str | None,
    tenant: str | None,
    source: str | None,
    generation: int | None,
    strategies: Sequence[str],
    no_search: bool,
    exported: Path | None,
    imported: Path | None,
    as_json: bool,
) -> None:
    """Accept, edit or reject questions, by keyboard or by file.

    Shows one question a screen with its chunks, chunks that say almost the same, and what each
    strategy returns now. Every decision is stored at once: interrupt it and go on any time.

    By file: fill the column decision (accept, reject or change) in a spreadsheet, edit what is
    wrong, and import it. All rows are taken over, or none.
    """
    wanted = reviews.Filter(Status(status), category, tenant, source, generation)
    _check(exported, imported, question_ids, strategies, as_json=as_json)
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened:
        if imported is not None:
            _import(context, opened, name, imported, as_json=as_json)
            return
        ids = _selected(opened, name, question_ids, wanted)
        if exported is not None:
            _export(context, opened, ids, exported, as_json=as_json)
            return
        shown = [] if no_search else list(strategies or context.settings.eval.strategies)
        _by_keyboard(context, opened, name, ids, shown)


def _check(
    exported: Path | None,
    imported: Path | None,
    question_ids: Sequence[int],
    strategies: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Refuse what does not go together, before any server starts."""
    if exported is not None and imported is not None:
        raise UsageError("--export and --import cannot be had at once")
    if exported is not None and strategies:
        raise UsageError("--export writes what no strategy returns: leave --strategy out")
    if imported is not None and (question_ids or strategies):
        raise UsageError("--import takes what the file holds: leave ids and strategies out")
    if exported is None and imported is None:
        if as_json:
            raise UsageError("--json goes with --export and --import")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "a review needs a terminal; by file: recallwatch golden review --export FILE"
            )


def _selected(
    opened: Opened, set_name: str, question_ids: Sequence[int], wanted: reviews.Filter
) -> list[int]:
    with opened.work.database.begin() as session:
        if not question_ids:
            return reviews.waiting(session, set_name, wanted)
        found = reviews.known(session, set_name, list(dict.fromkeys(question_ids)))
    for question_id in question_ids:
        if question_id not in found:
            raise InputError(
                f"golden set {set_name} has no question {question_id}; see: recallwatch golden list"
                f" --set {set_name} --status all"
            )
    return found


def _by_keyboard(
    context: Context, opened: Opened, set_name: str, ids: Sequence[int], strategies: Sequence[str]
) -> None:
    from cli.golden.review_keys import Terminal, review_all
    from workers.looking import Looker
    from workers.reviewing import Review

    settings = context.settings
    unknown = next((name for name in strategies if name not in settings.strategies), None)
    if unknown is not None:
        known = ", ".join(settings.strategies)
        raise UsageError(f"unknown strategy {unknown!r}; the strategies are: {known}")
    if not ids:
        context.console.print(f"no question of golden set {set_name} waits for review")
        return
    review = Review(opened.work.database, set_name, ids, by=person())
    looker = Looker(opened.work, strategies, settings.eval.k)
    with Terminal() as keyboard:
        review_all(review, looker, context.console, keyboard)
    done = ", ".join(f"{count} {what}" for what, count in review.done.items()) or "nothing decided"
    context.console.print(f"golden set {set_name}: {done}", soft_wrap=True)


def _export(
    context: Context, opened: Opened, ids: Sequence[int], path: Path, *, as_json: bool
) -> None:
    from db.session import allow_idling
    from workers.review_files import export_proposals

    if not ids:
        raise InputError("there is no such question to review; nothing was written")
    try:
        with (
            path.open("x", encoding="utf-8", newline="") as stream,
            opened.work.database.begin() as session,
        ):
            # The corpus is asked meanwhile, which may take its time.
            allow_idling(session, context.settings.queue.deadline)
            written, missing = export_proposals(opened.work, session, ids, stream)
    except FileExistsError as error:
        raise UsageError(f"{path} exists, and may hold decisions: name another file") from error
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from error
    if missing:
        context.err.print(f"warning: without the chunks' texts: {missing}", soft_wrap=True)
    if as_json:
        print_json({"file": str(path), "questions": written})
        return
    questions = "question" if written == 1 else "questions"
    context.console.print(
        f"{written} {questions} to {path}; fill the column decision, then:"
        f" recallwatch golden review --import {path}",
        soft_wrap=True,
    )


def _import(context: Context, opened: Opened, set_name: str, path: Path, *, as_json: bool) -> None:
    from db.session import allow_idling
    from workers.review_files import import_decisions

    with opened.work.database.begin() as session:
        allow_idling(session, context.settings.queue.deadline)
        found = import_decisions(opened.work, session, set_name, path, by=person())
    if as_json:
        print_json({"set": set_name, "edit": found.edit_id, "rows": found.counts})
        return
    context.console.print(f"golden set {set_name}: {_said(found)}", soft_wrap=True)


def _said(found: "Imported") -> str:
    names = {"accept": "accepted", "reject": "rejected", "change": "changed", "open": "left open"}
    said = ", ".join(f"{found.counts.get(key, 0)} {name}" for key, name in names.items())
    if found.edit_id is None:
        return said
    return f"{said}; to take it back: recallwatch golden undo {found.edit_id}"
