"""`recallwatch golden list` and `show`: what a set holds."""

import click

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.output import Column, print_json, table
from cli.report import shorten
from cli.servers import open_servers
from db import golden as stored
from pipeline.types import Status


@click.command("list", epilog=examples(
    "recallwatch golden list", "recallwatch golden list --set faq --tenant acme --json",
))  # fmt: skip
@set_option
@click.option("--sets", is_flag=True, help="List the sets, not the questions of one.")
@click.option("--category", help="Only this category.")
@click.option("--tenant", help="Only this tenant.")
@click.option(
    "--status",
    type=click.Choice([*(s.value for s in Status), "all"]),
    default=Status.ACTIVE.value,
    show_default=True,
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@json_option
@pass_context
def list_questions(
    context: Context,
    set_name: str | None,
    sets: bool,
    category: str | None,
    tenant: str | None,
    status: str,
    limit: int,
    as_json: bool,
) -> None:
    """List a set's questions, or the sets there are."""
    name = set_name or context.settings.eval.set
    with open_servers(context) as opened, opened.work.database.begin() as session:
        if sets:
            _show_sets(context, stored.sets(session), as_json=as_json)
            return
        found = list(stored.questions(
            session, name, category=category, tenant=tenant,
            status=None if status == "all" else Status(status), limit=limit,
        ))  # fmt: skip
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = [
        Column("id", right=True), Column("question", wrap=True), "category", "tenant",
        Column("expected", right=True),
    ]  # fmt: skip
    rows = [[q.id, shorten(q.question.text), q.question.category, q.question.tenant,
             len(q.question.expected)] for q in found]  # fmt: skip
    none = f"no such question in golden set {name}; see: recallwatch golden list --sets"
    context.console.print(table(None, columns, rows) if rows else none)


def _show_sets(context: Context, found: list[stored.SetSummary], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    columns: list[str | Column] = ["set", *(Column(name, right=True) for name in (
        "active", "unanswerable", "other", "judgments", "versions"))]  # fmt: skip
    rows = [[s.set_name, s.active, s.unanswerable, s.other, s.judgments, s.versions]
            for s in found]  # fmt: skip
    context.console.print(table(None, columns, rows) if rows else "no golden sets yet")


@click.command("show", epilog=examples("recallwatch golden show 17"))
@click.argument("question_id", metavar="ID", type=int)
@json_option
@pass_context
def show_question(context: Context, question_id: int, as_json: bool) -> None:
    """Show one question and its judgments."""
    with open_servers(context) as opened, opened.work.database.begin() as session:
        found = stored.question(session, question_id)
    if as_json:
        print_json(found)
        return
    question = found.question
    facts = {
        "question": question.text, "status": found.status, "kind": question.kind,
        "category": question.category, "tenant": question.tenant, "language": question.language,
        "source": question.source, "must pass": "yes" if question.must_pass else "no",
        "external id": question.external_id, "notes": question.notes,
    }  # fmt: skip
    rows = [[name, value] for name, value in facts.items() if value is not None]
    rows += [["expected", f"{key}  (grade {grade})"] for key, grade in question.expected.items()]
    columns: list[str | Column] = [f"question {found.id}", Column("", wrap=True)]
    context.console.print(table(None, columns, rows))
