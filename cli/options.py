"""Options that several commands have in common."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cli.context import Context
from pipeline.errors import RecallwatchError
from pipeline.types import Level

Command = TypeVar("Command", bound=Callable[..., Any])

Decorator = Callable[[Any], Any]

VERDICT = "for the verdict, which gives the exit code"


class Number(click.FloatRange):
    """A number in a range: neither `nan`, which is in every range, nor `inf`."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number; fails where it is none or out of the range."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return float(number)


def strategy_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Sequence[str]:
    """Return the strategies that a shell may complete a name to; none where settings are faulty."""
    context = Context(ctx.find_root().params.get("config_path"))
    try:
        named = context.settings.strategies
    except RecallwatchError:
        return []
    return [name for name in named if name.startswith(incomplete)]


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
            shell_complete=strategy_names,
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

    return adding(options)


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
            type=Number(0, min_open=True),
            metavar="SECONDS",
            help="Give up waiting after this time. Default: [queue] deadline.",
        ),
    )
    return adding(options)


def is_waited_for(wait: bool, *, message_batches: bool) -> bool:
    """Say whether to wait: for message batches, which take up to a day, only where --wait is given.

    Of the command that runs.
    """
    given = click.get_current_context().get_parameter_source("wait")
    return wait and not (message_batches and given is ParameterSource.DEFAULT)


def adding(options: Sequence[Decorator]) -> Callable[[Command], Command]:
    """Return a decorator that adds the options, shown in the order given."""

    def add(command: Command) -> Command:
        # As decorators stand: the last is applied first.
        for option in reversed(options):
            command = option(command)
        return command

    return add
