"""Options that several commands have in common."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from pipeline.types import Level

Command = TypeVar("Command", bound=Callable[..., Any])

Decorator = Callable[[Any], Any]

VERDICT = "for the verdict, which gives the exit code"


def what_to_evaluate(verb: str) -> Callable[[Command], Command]:
    """Add --strategy, --set, -k and --level; the command gets strategies, set_name, k and level.

    `verb` says in the help what is done with a strategy.
    """
    options = (
        click.option(
            "-s",
            "--strategy",
            "strategies",
            multiple=True,
            metavar="NAME",
            help=f"Strategy to {verb}; repeat for several. Default: [eval] strategies.",
        ),
        click.option("--set", "set_name", metavar="NAME", help="Golden set. Default: [eval] set."),
        click.option("-k", "--k", type=int, help="How many results count. Default: [eval] k."),
        click.option(
            "--level",
            type=click.Choice([level.value for level in Level]),
            help="Score chunks or documents. Default: [eval] level.",
        ),
    )

    return _adding(options)


def waiting(*, by_default: bool, until: str = VERDICT) -> Callable[[Command], Command]:
    """Add --wait, --start and --timeout; the command gets wait, start and timeout.

    `until` says in the help what is waited for.
    """
    options = (
        click.option(
            "--wait/--no-wait",
            default=by_default,
            show_default=True,
            help=f"Wait {until}.",
        ),
        click.option(
            "--start/--no-start",
            default=True,
            show_default=True,
            help="While waiting: start worker processes, or rely on workers that run elsewhere.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="Give up waiting after this time. Default: [queue] deadline.",
        ),
    )
    return _adding(options)


def _adding(options: Sequence[Decorator]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        # As decorators stand: the last is applied first.
        for option in reversed(options):
            command = option(command)
        return command

    return add
