"""What every command has at hand: settings, loaded when first asked for, and the two consoles."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.settings import Settings
    from pipeline.settings_loading import LoadedSettings


class Context:
    """The object behind click's `ctx.obj`; `pass_context` hands it to a command.

    `config_path` is the value of --config; `verbosity` counts the -v.
    """

    def __init__(self, config_path: Path | None = None, verbosity: int = 0) -> None:
        self.config_path = config_path
        self.verbosity = verbosity

    @cached_property
    def loaded(self) -> "LoadedSettings":
        """The settings and where each came from; logging is configured by the way.

        Raises SettingsError.
        """
        from pipeline.log import configure
        from pipeline.settings_loading import load_settings

        loaded = load_settings(self.config_path)
        configure(loaded.settings.log, secrets=loaded.secret_values(), verbosity=self.verbosity)
        return loaded

    def mask(self, text: str) -> str:
        """Return the text without passwords in URLs and, once settings are loaded, any secret."""
        from pipeline.safe_text import Masker

        loaded: LoadedSettings | None = self.__dict__.get("loaded")
        return Masker(loaded.secret_values() if loaded else ())(text)

    @property
    def settings(self) -> "Settings":
        """The effective settings. Raises SettingsError."""
        return self.loaded.settings

    @cached_property
    def console(self) -> "Console":
        """Standard output: results."""
        from cli.output import make_console

        return make_console()

    @cached_property
    def err(self) -> "Console":
        """Standard error: notes, warnings, progress."""
        from cli.output import make_console

        return make_console(stderr=True)


pass_context = click.make_pass_decorator(Context, ensure=True)
"""Decorator: the command's first argument is the `Context`."""
