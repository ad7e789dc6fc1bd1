"""A generation as it is shown: what it asked for, cost and gave."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from cli.context import Context
from cli.output import Column, print_json, table
from cli.servers import Opened
from db import generations
from db.generation_figures import Figures, figures
from db.models import Generation
from pipeline.embedding.pricing import dollars
from pipeline.generation.base import GenerationStatus


def record(found: Generation, seen: Figures) -> dict[str, Any]:
    """Return a generation as JSON values."""
    plan = found.settings
    return {
        "generation": found.id, "set": found.set_name, "status": found.status,
        "error": found.error, "model": plan["generation"]["model"],
        "prompt_version": plan["prompt_version"], "seed": plan["seed"],
        "message_batches": found.message_batches, "requests": seen.counts.requests,
        "candidates": seen.counts.candidates, "rejections": seen.rejections,
        "faults": seen.faults, "unchecked": seen.unchecked, "spent": seen.spent,
        "max_cost": found.max_cost,
        "input_tokens": seen.input_tokens, "output_tokens": seen.output_tokens,
        "requested_by": found.requested_by, "created_at": found.created_at,
        "finished_at": found.finished_at,
    }  # fmt: skip


def show(console: Console, found: Generation, seen: Figures) -> None:
    """Print a generation, what was rejected and what went wrong."""
    rows = list(_facts(found, seen))
    columns: list[str | Column] = [f"generation {found.id}", Column("", wrap=True)]
    console.print(table(None, columns, rows))
    _print_counts(console, "rejected because of", "questions", seen.rejections)
    _print_counts(console, "without questions", "requests", seen.faults)
    _print_counts(console, "could not be checked", "questions", seen.unchecked)


def _facts(found: Generation, seen: Figures) -> Iterator[list[object]]:
    candidates, plan = seen.counts.candidates, found.settings
    yield ["status", found.status]
    if found.error:
        yield ["stopped because", found.error]
    yield ["set", found.set_name]
    yield ["model", f"{plan['generation']['model']} ({plan['prompt_version']})"]
    yield ["seed", plan["seed"]]
    yield ["requests", _listed(seen.counts.requests)]
    yield ["questions", f"{sum(candidates.values())}: {_listed(candidates)}"]
    yield ["tokens", f"{seen.input_tokens:,} in, {seen.output_tokens:,} out"]
    cap = "" if found.max_cost is None else f" of {dollars(found.max_cost)}"
    yield ["spent", f"{dollars(seen.spent)}{cap}"]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {state}" for state, n in counts.items()) or "none"


def _print_counts(console: Console, title: str, what: str, counts: Mapping[str, int]) -> None:
    if counts:
        console.print()
        columns = [Column(title, wrap=True), Column(what, right=True)]
        console.print(table(None, columns, [list(each) for each in counts.items()]))


def next_steps(found: Generation, seen: Figures) -> Iterator[str]:
    """Yield what a person may do next, in a line each."""
    resume = f"recallwatch golden generations resume {found.id}"
    requests, candidates = seen.counts.requests, seen.counts.candidates
    kept, unknown = candidates.get("kept", 0), requests.get("unknown", 0)
    left = sum(requests.get(state, 0) for state in ("failed", "pending", "leased"))
    if kept and not found.settings["activate"]:
        yield f"{kept} proposed; see: recallwatch golden review --set {found.set_name}"
    if found.status not in generations.OVER:
        return
    if left or candidates.get("drafted"):
        yield f"to send what was not sent, and filter what was not filtered: {resume}"
    if unknown:
        yield (
            f"{unknown} may have been paid for and have no answer; to look for answers in message"
            f" batches: {resume}; to send them again, and perhaps pay twice: {resume} --ask-again"
            if found.message_batches
            else f"{unknown} may have been paid for and have no answer; to send them again, and"
            f" perhaps pay twice: {resume} --ask-again"
        )
    if not (kept or left or unknown or candidates.get("drafted")):
        yield "nothing was kept: see what was rejected, and [generation] in recallwatch.toml"


def report(context: Context, opened: Opened, generation_id: int, *, as_json: bool) -> bool:
    """Print a generation as it is now; return whether it is completed."""
    with opened.work.database.begin() as session:
        found, seen = generations.get(session, generation_id), figures(session, generation_id)
    if as_json:
        print_json(record(found, seen))
    else:
        show(context.console, found, seen)
        for step in next_steps(found, seen):
            context.console.print(f"\n{step}", soft_wrap=True)
    return found.status == GenerationStatus.COMPLETED
