"""Command lines of the deployment files, parsed by the programs that they start."""

import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import click
from celery import Celery
from celery.bin.celery import celery

from cli.context import Context
from cli.main import PROGRAM, root


def celery_options(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the subcommand of a `celery` command line and its options, as Celery reads them."""
    program, flag, module, name, *rest = words
    assert (program, flag) == ("celery", "--app")
    app = importlib.import_module(module).app
    assert isinstance(app, Celery)
    parent = click.Context(celery, obj=SimpleNamespace(app=app, quiet=False))
    return name, celery.commands[name].make_context(name, list(rest), parent=parent).params


def is_recallwatch(words: Sequence[str]) -> bool:
    """Say whether a command line is one of ours, down to its options."""
    program, name, *rest = words
    with root.make_context(PROGRAM, [name, *rest], obj=Context()) as context:
        command = root.get_command(context, name)
        return program == PROGRAM and command is not None and bool(
            command.make_context(name, rest, parent=context)
        )  # fmt: skip
