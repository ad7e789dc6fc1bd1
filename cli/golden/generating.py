"""`recallwatch golden generate`: have Claude write questions from chunks."""

from collections.abc import Mapping

import click
from rich.console import Console

from cli.context import Context, pass_context
from cli.golden.options import json_option, set_option
from cli.lazy import examples
from cli.options import Number, is_waited_for, waiting
from cli.output import print_json
from cli.person import person
from cli.servers import Opened, open_servers
from pipeline.embedding.pricing import dollars
from pipeline.generation.base import Category
from pipeline.generation.estimate import Estimate
from pipeline.generation.settings import GenerationSettings
from pipeline.settings import Settings
from workers.drawing import Wanted
from workers.generating import Prepared, prepare
from workers.generating import start as start_generation

FAILED = 3


class CategoryMix(click.ParamType[Mapping[str, int]]):
    """`factual=3,comparison=1`: category -> weight."""

    name = "mix"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[str, int]:
        """Return the weights; fails where one is no number from 1 to 100, or stands twice."""
        mix: dict[str, int] = {}
        for part in str(value).split(","):
            name, _, weight = part.strip().partition("=")
            if name not in list(Category):
                self.fail(f"no category {name!r}; there are {', '.join(Category)}", param, ctx)
            if name in mix or not weight.isdecimal() or not 1 <= int(weight) <= 100:  # noqa: PLR2004 - said below
                self.fail(f"{part.strip()!r}: write NAME=WEIGHT, from 1 to 100, once", param, ctx)
            mix[name] = int(weight)
        return mix


@click.command("generate", epilog=examples(
    "recallwatch golden generate --sample 50 --dry-run",
    "recallwatch golden generate --sample 50 --per-chunk 2 --max-cost 2.00",
    "recallwatch golden generate --multi-chunk 20 --unanswerable 10",
    "recallwatch golden generate --category-mix factual=3,procedural=1",
    "recallwatch golden generate --sample 500 --message-batches",
))  # fmt: skip
@set_option
@click.option(
    "--sample", type=click.IntRange(0, 100_000), default=50, show_default=True, metavar="N",
    help="Chunks to write questions from, one by one.",
)  # fmt: skip
@click.option(
    "--per-chunk", type=click.IntRange(1, 3), default=1, show_default=True, metavar="N",
    help="Questions from each of them, 1 to 3.",
)  # fmt: skip
@click.option(
    "--multi-chunk", type=click.IntRange(0, 100_000), default=0, metavar="N",
    help="Questions that need two chunks: neighbours, or similar ones.",
)  # fmt: skip
@click.option(
    "--unanswerable", type=click.IntRange(0, 100_000), default=0, metavar="N",
    help="Questions that readers might ask and no chunk answers.",
)  # fmt: skip
@click.option("--tenant", metavar="NAME", help="Only this tenant's chunks.")
@click.option(
    "--category-mix", type=CategoryMix(), metavar="NAME=WEIGHT,...",
    help=f"How often each category is asked for: {', '.join(Category)}. Default: all alike.",
)  # fmt: skip
@click.option(
    "--min-characters", type=click.IntRange(1), metavar="N",
    help="Shortest chunk. Default: [generation] min_characters.",
)  # fmt: skip
@click.option("--forbid-terms", is_flag=True, help="No question may use its chunk's rarest words.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another draw of chunks.")
@click.option("--again", is_flag=True, help="Also draw chunks that the set was generated from.")
@click.option(
    "--max-cost", type=Number(0), metavar="DOLLARS",
    help="Stop before more is spent. Default: [generation] max_cost.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would be asked and cost; ask nothing.")
@click.option("--activate", is_flag=True, help="Take what passes the filters without a review.")
@click.option(
    "--message-batches", is_flag=True,
    help="Half the list price, done within a day; not waited for without --wait.",
)  # fmt: skip
@waiting(by_default=True, until="until it is finished")
@json_option
@pass_context
def generate(
    context: Context,
    set_name: str | None,
    sample: int,
    per_chunk: int,
    multi_chunk: int,
    unanswerable: int,
    tenant: str | None,
    category_mix: Mapping[str, int] | None,
    min_characters: int | None,
    forbid_terms: bool,
    seed: int,
    again: bool,
    max_cost: float | None,
    dry_run: bool,
    activate: bool,
    message_batches: bool,
    wait: bool,
    start: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Have Claude write questions from a sample of chunks, and filter them.

    The sample gives each tenant and each document its share, and never holds two chunks that say
    the same. What passes the filters is proposed: recallwatch golden review decides. Workers read
    the key from ANTHROPIC_API_KEY. The same seed draws the same chunks; those that the set was
    generated from before are left out.
    """
    wanted = Wanted(
        set_name=set_name or context.settings.eval.set,
        generation=_settings(context.settings, max_cost, min_characters),
        sample=sample, per_chunk=per_chunk, multi_chunk=multi_chunk, unanswerable=unanswerable,
        categories=category_mix or dict.fromkeys(Category, 1), seed=seed, tenant=tenant,
        forbid_terms=forbid_terms, activate=activate, message_batches=message_batches,
        again=again, requested_by=person(),
    )  # fmt: skip
    wait = is_waited_for(wait, message_batches=message_batches)
    _check(context.settings, wanted, key_needed=wait and start and not dry_run)
    with open_servers(context) as opened:
        prepared = prepare(opened.work, wanted)
        _announce(context.err, prepared)
        if dry_run:
            _show_plan(context.console, prepared, as_json=as_json)
            return
        queued = start_generation(opened.work, prepared)
        if wait:
            _finish(context, opened, queued, start, timeout, as_json=as_json)
        else:
            _say_started(context.console, queued, as_json=as_json)


def _check(settings: Settings, wanted: Wanted, *, key_needed: bool) -> None:
    """Refuse what can be refused before any server starts."""
    if not wanted.chunks:
        raise click.UsageError("nothing to ask for: give --sample, --multi-chunk or --unanswerable")
    if key_needed:
        _check_key(settings)


def _settings(
    settings: Settings, max_cost: float | None, min_characters: int | None
) -> GenerationSettings:
    given = {"max_cost": max_cost, "min_characters": min_characters}
    changed = {name: value for name, value in given.items() if value is not None}
    return settings.generation.model_copy(update=changed)


def _check_key(settings: Settings) -> None:
    """Refuse what no worker that this command starts could do; raises SettingsError."""
    from pipeline.generation.address import address_of, usable_key

    usable_key(settings.anthropic_api_key, address_of(settings.generation.base_url))


def _announce(err: Console, prepared: Prepared) -> None:
    for warning in prepared.warnings:
        err.print(f"warning: {warning}", soft_wrap=True)
    err.print(_in_words(prepared.estimate), soft_wrap=True)


def _in_words(estimated: Estimate) -> str:
    tokens = f"{estimated.input_tokens:,} tokens in and {estimated.output_tokens:,} out"
    asked = f"{estimated.questions} questions in {estimated.requests} requests, about {tokens}"
    if estimated.cost is None or estimated.most is None:
        return f"{asked}; no price is known: see [generation.prices]"
    return (
        f"{asked}; estimated cost: about {dollars(estimated.cost)}, at most"
        f" {dollars(estimated.most)}, by {estimated.by}"
    )


def _show_plan(console: Console, prepared: Prepared, *, as_json: bool) -> None:
    if as_json:
        asks = [
            {"keys": [chunk.key for chunk in ask.chunks], "kind": ask.kind,
             "categories": ask.categories, "forbidden": ask.forbidden}
            for ask in prepared.asks
        ]  # fmt: skip
        print_json({"estimate": prepared.estimate, "requests": asks})
        return
    for ask in prepared.asks:
        keys = " + ".join(chunk.key for chunk in ask.chunks)
        console.print(f"{keys}: {', '.join(ask.categories)} ({ask.kind})", soft_wrap=True)


def _say_started(console: Console, generation_id: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"generation": generation_id})
        return
    console.print(
        f"generation {generation_id} is queued; it goes on when workers and beat run (recallwatch"
        f" up); see: recallwatch golden generations show {generation_id}",
        soft_wrap=True,
    )


def _finish(
    context: Context, opened: Opened, generation_id: int, start: bool,
    timeout: float | None, *, as_json: bool,
) -> None:  # fmt: skip
    from cli.golden.generation_report import report
    from cli.golden.generation_waiting import follow

    follow(opened, generation_id, start=start, timeout=timeout)
    completed = report(context, opened, generation_id, as_json=as_json)
    click.get_current_context().exit(0 if completed else FAILED)
