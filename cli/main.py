"""The `recallwatch` command: its global options, its subcommands, and how each way out ends."""

import atexit
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

import click
from click.exceptions import NoArgsIsHelpError
from click.shell_completion import shell_complete

from cli.context import Context
from cli.lazy import LazyCommand, OrderedGroup, examples
from pipeline.errors import RecallwatchError

PROGRAM = "recallwatch"
COMPLETE_VARIABLE = "_RECALLWATCH_COMPLETE"

# At its end Python looks for garbage in all that was imported: a fifth of a short command's time.
atexit.register(gc.freeze)

EXIT_USAGE = 2
EXIT_BUG = os.EX_SOFTWARE
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141

COMMANDS = (
    ("init", "cli.config:init", "Write a commented recallwatch.toml."),
    ("config", "cli.config:config", "Show the effective settings."),
    ("corpus", "cli.corpus:corpus", "Load chunks, or look at the chunks table."),
    ("golden", "cli.golden.group:golden", "Import, generate, review and check questions."),
    ("strategies", "cli.strategies:strategies", "List the ways to retrieve, and try one."),
    ("eval", "cli.eval:eval_command", "Evaluate retrieval and compare with before."),
    ("runs", "cli.runs:runs", "List, show, chart, export, cancel and resume."),
    ("compare", "cli.compare:compare", "Compare any two runs, question by question."),
    (
        "compare-embeddings",
        "cli.compare_embeddings:compare_embeddings",
        "Compare embedding models over your questions.",
    ),
    (
        "compare-chunkings",
        "cli.compare_chunkings:compare_chunkings",
        "Compare sizes and overlaps of chunks.",
    ),
    ("alerts", "cli.alerts:alerts", "List, try and resend alerts."),
    ("baseline", "cli.baseline:baseline", "Pin the runs that others are held against."),
    ("tune", "cli.tune:tune", "Find better settings on what runs stored."),
    ("calibrate", "cli.calibrate:calibrate", "Measure how noisy the measurement itself is."),
    ("schedule", "cli.schedule:schedule", "Show the batches that start by themselves."),
    ("reindexed", "cli.reindexed:reindexed_command", "Evaluate once re-indexing is over."),
    ("up", "cli.stack:up", "Run servers, workers and schedule in the foreground."),
    ("status", "cli.stack:status", "Show what is running on this machine."),
    ("doctor", "cli.doctor:doctor", "Check servers, tables, models; say what to do."),
    ("migrate", "cli.migrate:migrate", "Bring recallwatch's own tables up to date."),
    ("demo", "cli.demo.command:demo", "See a planted regression being caught."),
    ("completion", "cli.completion:completion", "Print the completion script of a shell."),
)

EPILOG = (
    examples(
        "recallwatch init",
        "recallwatch corpus load chunks.jsonl",
        "recallwatch golden import golden.jsonl",
        "recallwatch eval --strategy vector --strategy hybrid --k 5",
    )
    + """

\b
Exit codes:
  0   done; no regression
  1   retrieval regressed
  2   wrong usage, settings or input
  3   could not be measured, or not in time
  70  a bug in recallwatch
  130 interrupted
"""
)


@click.group(
    PROGRAM,
    cls=OrderedGroup,
    commands={name: LazyCommand(name, target, text) for name, target, text in COMMANDS},
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings file. Default: $RECALLWATCH_CONFIG, else the first recallwatch.toml "
    "in this folder or above it.",
)
@click.option(
    "-v",
    "--verbose",
    count=True,
    envvar="RECALLWATCH_DEBUG",
    show_envvar=True,
    help="Log more (-vv: all), and show the traceback of an unexpected error.",
)
@click.version_option(package_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_obj
def root(context: Context, config_path: Path | None, verbose: int) -> None:
    """Tell whether retrieval got worse, and why, before the users do."""
    context.config_path = config_path
    context.verbosity = verbose


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code (see the epilog of --help)."""
    _make_streams_total()
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(root, {"obj": Context()}, PROGRAM, COMPLETE_VARIABLE, instruction)
    context = Context()
    try:
        code = _invoke(list(sys.argv[1:] if arguments is None else arguments), context)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort
        return _explain(error, context)
    return code


def _explain(error: BaseException, context: Context) -> int:
    """Say in one line why the command ended, and return its exit code."""
    match error:
        case RecallwatchError():
            return _fail(context.mask(str(error)), error.exit_code)
        case KeyboardInterrupt() | click.Abort():
            return _fail("; ".join(["interrupted", *map(str, error.args)]), EXIT_INTERRUPTED)
        case click.ClickException():
            return _fail_usage(error, context)
        case BrokenPipeError():
            return _leave_quietly()
    return _fail_unexpectedly(error, context)


def _invoke(arguments: list[str], context: Context) -> int:
    """Run the command. click's own `main` would end a closed pipe with 1, our "regressed"."""
    try:
        with root.make_context(PROGRAM, arguments, obj=context) as ctx:
            root.invoke(ctx)
    except click.exceptions.Exit as way_out:
        return way_out.exit_code
    return 0


def _make_streams_total() -> None:
    """Let no character of a chunk or a path raise where the terminal's encoding lacks it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, code: int) -> int:
    from rich.text import Text

    from cli.output import make_console, one_line

    console = make_console(stderr=True)
    for line in message.splitlines() or [""]:
        text = Text.assemble(("error", "bold red"), f": {one_line(line)}")
        console.print(text, soft_wrap=True)
    return code


def _fail_usage(error: click.ClickException, context: Context) -> int:
    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return EXIT_USAGE
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f" (see {error.ctx.command_path} --help)"
    return _fail(context.mask(f"{_reason(error)}{hint}"), EXIT_USAGE)


def _reason(error: click.ClickException) -> str:
    """Word click's message as ours are: one line, no capital, no full stop."""
    if isinstance(error, click.NoSuchCommand):
        near = f"; did you mean {error.possibilities[0]}?" if error.possibilities else ""
        return f"no such command {error.command_name!r}{near}"
    message = " ".join(error.format_message().split())
    return message[:1].lower() + message[1:].removesuffix(".")


def _leave_quietly() -> int:
    """End as a program that SIGPIPE ends: the reader, such as `head`, has had enough."""
    # Python flushes standard output once more at exit, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_PIPE_CLOSED


def _fail_unexpectedly(error: BaseException, context: Context) -> int:
    from pipeline.safe_text import clean

    if context.verbosity:
        sys.stderr.write(clean(context.mask("".join(traceback.format_exception(error)))))
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    how = "" if context.verbosity else " (-v or RECALLWATCH_DEBUG=1 shows the traceback)"
    return _fail(context.mask(f"this is a bug in recallwatch: {what}{how}"), EXIT_BUG)


if __name__ == "__main__":
    sys.exit(main())
