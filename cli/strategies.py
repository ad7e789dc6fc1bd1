"""`recallwatch strategies`: the named ways to retrieve, and what one returns now."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from cli.context import Context, pass_context
from cli.lazy import OrderedGroup, examples
from cli.options import strategy_names
from cli.output import Column, one_line, print_json, table
from cli.servers import open_servers
from pipeline.retrieval.strategies import Strategy, parts_of
from pipeline.types import Failure, Ranking

if TYPE_CHECKING:
    from workers.trying import Tried

BEGINNING = 120
"""Characters of a chunk's text that are shown."""


@click.group(
    cls=OrderedGroup,
    epilog=examples(
        "recallwatch strategies list",
        'recallwatch strategies probe hybrid "How do I reset the router?"',
        'recallwatch strategies probe vector "Reset?" --tenant acme --k 10 --explain',
    ),
)
def strategies() -> None:
    """List the named ways to retrieve, and try one."""


@strategies.command("list", epilog=examples("recallwatch strategies list --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def list_strategies(context: Context, as_json: bool) -> None:
    """List the strategies: those with a star are evaluated by default."""
    settings = context.settings
    named, by_default = settings.strategies, settings.eval.strategies
    if as_json:
        print_json([
            {"name": name, "evaluated": name in by_default, **each.model_dump(mode="json")}
            for name, each in named.items()
        ])  # fmt: skip
        return
    rows = [
        [f"{name} *" if name in by_default else name, each.kind, ", ".join(parts_of(each)),
         _told(each)]
        for name, each in named.items()
    ]  # fmt: skip
    columns: list[str | Column] = ["strategy", "kind", "asks", Column("settings", wrap=True)]
    context.console.print(table(None, columns, rows))


def _told(strategy: Strategy) -> str:
    """Return the settings that are not the default, each as `key=value`."""
    fields = type(strategy).model_fields
    given = strategy.model_dump(mode="json")
    return ", ".join(
        f"{name}={one_line(str(value))}"
        for name, value in given.items()
        if name != "kind" and value != fields[name].get_default(call_default_factory=True)
    )


@strategies.command(
    epilog=examples(
        'recallwatch strategies probe hybrid "How do I reset the router?"',
        'recallwatch strategies probe vector "Reset?" --tenant acme --explain',
        'recallwatch strategies probe mine "Reset?" --json',
    )
)
@click.argument("name", shell_complete=strategy_names)
@click.argument("question")
@click.option("--tenant", metavar="NAME", help="Whose question it is.")
@click.option("--language", metavar="CODE", help="The question's language, as en.")
@click.option("-k", "--k", type=click.IntRange(1, 1000), help="Default: [eval] k.")
@click.option("--explain", is_flag=True, help="Show PostgreSQL's plans too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_context
def probe(
    context: Context,
    name: str,
    question: str,
    tenant: str | None,
    language: str | None,
    k: int | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Ask the strategy NAME a QUESTION, and show what comes back now."""
    from pipeline.errors import PermanentError
    from pipeline.retrieval.tree import tree_of
    from workers.trying import Query, try_strategy

    tree_of(name, context.settings.strategies)
    query = Query(question, tenant, language, k or context.settings.eval.k)
    with open_servers(context) as opened:
        tried = try_strategy(opened.work, name, query, explain=explain)
    found = tried.found
    if isinstance(found, Failure):
        raise PermanentError(f"strategy {name} cannot answer it: {found.reason}")
    if as_json:
        print_json(_record(tried, found))
        return
    _show(context.console, tried, found)


def _record(tried: "Tried", found: Ranking) -> Mapping[str, Any]:
    """Return all that is known of what came back."""
    return {
        "strategy": tried.strategy,
        "ms": tried.ms,
        "results": [
            {
                "rank": rank,
                "key": key,
                "score": score,
                "tenants": _owners(tried, key),
                "content": tried.contents.get(key),
            }
            for rank, key, score in _ranked(found)
        ],
        "stages": {
            stage: [
                {"rank": rank, "key": key, "score": score} for rank, key, score in _ranked(each)
            ]
            for stage, each in found.stages.items()
        },
        "plans": list(tried.plans),
        "notes": list(tried.notes),
    }


def _ranked(ranking: Ranking) -> Iterator[tuple[int, str, float]]:
    for rank, (key, score) in enumerate(zip(ranking.keys, ranking.scores, strict=True), start=1):
        yield rank, key, score


def _show(console: Console, tried: "Tried", found: Ranking) -> None:
    with_tenants = any(_owners(tried, key) for key in found.keys)
    columns: list[str | Column] = [
        Column("", right=True), "key", Column("score", right=True),
        *(["tenant"] if with_tenants else []), *found.stages, Column("text", wrap=True),
    ]  # fmt: skip
    rows = [
        [rank, key, f"{score:.4g}", *([", ".join(_owners(tried, key))] if with_tenants else []),
         *(_rank_in(stage, key) for stage in found.stages.values()), _beginning(tried, key)]
        for rank, key, score in _ranked(found)
    ]  # fmt: skip
    console.print(table(None, columns, rows) if rows else "it returns nothing")
    took = f"{tried.ms:.1f} ms for this first search, embedding not counted"
    stages = [f"{name} {len(each.keys)}" for name, each in found.stages.items()]
    console.print(f"{took}; results of stages: {', '.join(stages)}" if stages else took,
                  soft_wrap=True)  # fmt: skip
    for note in tried.notes:
        console.print(note, soft_wrap=True)
    for number, plan in enumerate(tried.plans, start=1):
        console.print(f"\nplan {number} of {len(tried.plans)}:\n{plan}", soft_wrap=True)


def _owners(tried: "Tried", key: str) -> list[str]:
    return sorted(owner for owner in tried.tenants.get(key, ()) if owner is not None)


def _rank_in(stage: Ranking, key: str) -> int | None:
    """Return a key's rank in a stage; None: it is not there."""
    return list(stage.keys).index(key) + 1 if key in stage.keys else None


def _beginning(tried: "Tried", key: str) -> str:
    text = tried.contents.get(key)
    if text is None:
        return "(not in the corpus)"
    line = one_line(text)
    return line if len(line) <= BEGINNING else line[:BEGINNING] + "..."
