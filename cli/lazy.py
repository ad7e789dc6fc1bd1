"""Commands that are imported when they are run, not when they are listed."""

import gc
from importlib import import_module
from typing import Any

import click


class LazyCommand(click.Command):
    """Stands for the command at "module:attribute" and becomes it when it is called.

    Help, completion and spelling hints need only the name and the short help.
    """

    def __init__(self, name: str, target: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._target = target

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self._target.partition(":")
        gc.disable()  # modules are no garbage, and looking for some takes a tenth of the time
        try:
            command: click.Command = getattr(import_module(module), attribute)
        finally:
            gc.enable()
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> click.Context:
        """Hand over to the real command: the context returned is its own."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


class OrderedGroup(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of use, which help shows them in."""
        return list(self.commands)


def examples(*lines: str) -> str:
    """Return an epilog that shows these command lines as they are written."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
