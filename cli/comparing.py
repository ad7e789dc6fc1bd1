"""What `compare-embeddings` and `compare-chunkings` have in common."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console

from cli.options import Command, Number, adding

if TYPE_CHECKING:
    from workers.comparing.budget import Estimate

USUAL_SAMPLE = 5000
METRICS = ("ndcg", "recall", "hit", "mrr", "map", "precision")


def costs() -> Callable[[Command], Command]:
    """Add --seed, --max-cost, --dry-run and --json; the command gets as_json for the last."""
    return adding((
        click.option("--seed", type=int, default=1, show_default=True, help="Another draw."),
        click.option(
            "--max-cost", type=Number(0), default=1.0, show_default=True, metavar="DOLLARS",
            help="Send nothing that could cost more than this in all.",
        ),
        click.option("--dry-run", is_flag=True, help="Show what it would cost; embed nothing."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ))  # fmt: skip


def announce(err: Console, estimates: Sequence["Estimate"]) -> None:
    """Say what embedding will cost, a line a model."""
    for each in estimates:
        err.print(f"to embed: {each}", soft_wrap=True)
